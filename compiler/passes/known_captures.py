"""What a loop captures is a constant of its body, if it is known: so weights are packed for the products of the body.

    loop(a, w: const): a ← a @ w   →   loop(a): a ← a @ const

``lift_constants`` makes operands of what is left of them in the end. Weights that are quantized stay outside until they
meet what reads them.
"""

from __future__ import annotations

from dataclasses import replace

from ...graph.node import Call, Constant, Function, Node, Tuple
from ...graph.visit import inputs, post_order, rewrite
from ...ops.families.loop import LOOP
from ...ops.families.quantize import DEQUANTIZE
from .effects import has_effect
from .fold_constants import Evaluate, fold_constants
from .loop_parts import LoopParts


def known_captures(function: Function, evaluate: Evaluate) -> Function:
    """The function whose loops, but for those in bodies, have what is known among their captures as constants."""
    loops = [node for node in post_order(function.body) if isinstance(node, Call) and node.op is LOOP]
    known = dict.fromkeys(arg for loop in loops for arg in _known(loop))
    if not known:
        return function
    folded = inputs(fold_constants(Function((), Tuple(tuple(known))), evaluate).body)
    values = {node: made for node, made in zip(known, folded, strict=True) if isinstance(made, Constant)}

    def with_known(node: Node) -> Node | None:
        return _with(node, values) if isinstance(node, Call) and node.op is LOOP else None

    body = rewrite(function.body, with_known)
    return function if body is function.body else replace(function, body=body)


def _known(loop: Call) -> list[Node]:
    """The captures that depend on constants alone, and on no weights that are to be read as they are."""
    trips = str(loop.attrs.trips)  # a formula over extents of arguments, x2_0
    captured = loop.attrs.parts_of(range(len(loop.args)))[2]
    return [loop.args[k] for k in captured if f"x{k}_" not in trips and _is_known(loop.args[k])]


def _is_known(node: Node) -> bool:
    made = post_order(node)
    calls = [each for each in made if isinstance(each, Call)]
    leaves = all(isinstance(each, (Call, Constant, Tuple)) for each in made)
    return leaves and all(call.args and call.op not in (LOOP, DEQUANTIZE) and not has_effect(call) for call in calls)


def _with(loop: Call, values: dict[Node, Constant]) -> Node | None:
    parts, known = LoopParts.of(loop), set(_known(loop))
    given: dict[Node, Node] = {param: values[arg] for arg, param in parts.captured if arg in known and arg in values}
    if not given:
        return None
    rest = tuple((arg, param) for arg, param in parts.captured if param not in given)
    return replace(parts.with_values(given), captured=rest).call(loop)
