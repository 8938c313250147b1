"""Signed bytes that are quantized here and dequantized again become unsigned ones, with zero points 128 higher.

Both stand for the same numbers. Words of unsigned bytes are multiplied with words of signed weights as they are: no
sums of what is multiplied are to be taken off. Values that anything else reads stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...base.dtype import INT8
from ...graph.node import Call, Constant, Function, Node
from ...graph.types import TensorType
from ...graph.visit import inputs, post_order, users, with_inputs
from ...ops.definition.registry import op_of
from ...ops.families.pool import MAX_POOL
from ...ops.families.quantize import DEQUANTIZE, QUANTIZE
from ...ops.families.zero_points import unsigned_zero
from .sink_dequantize import CONCATENATE, MOVES

PASSED_ON = (*MOVES, CONCATENATE, MAX_POOL)


def unsigned_bytes(function: Function) -> Function:
    """The function without signed bytes that could be unsigned."""
    order = post_order(function.body)
    turned = _turned(order, users(function.body), function.body)
    if not turned:
        return function
    done: dict[Node, Node] = {}
    for node in order:
        rebuilt = with_inputs(node, tuple(done[n] for n in inputs(node)))
        if isinstance(rebuilt, Call) and (node in turned or _reads_first(node) in turned):
            rebuilt = _unsigned(rebuilt)
        done[node] = rebuilt
    return replace(function, body=done[function.body])


def _reads_first(node: Node) -> Node | None:
    return node.args[0] if isinstance(node, Call) and node.op is DEQUANTIZE else None


def _turned(order: list[Node], used_by: Mapping[Node, tuple[Node, ...]], result: Node) -> set[Node]:
    """The values of signed bytes that are made and read by calls that can do with unsigned ones."""
    found = {node for node in order if _makes_bytes(node) and node is not result}

    def stays(node: Node) -> bool:
        return _goes_along(node, found) and all(_takes(user, node, found) for user in used_by[node])

    changed = True
    while changed:
        kept = {node for node in found if stays(node)}
        changed = len(kept) < len(found)
        found = kept
    return found


def _makes_bytes(node: Node) -> bool:
    if not isinstance(node, Call) or not isinstance(node.type, TensorType) or node.type.dtype is not INT8:
        return False
    return node.op in PASSED_ON or (node.op is QUANTIZE and isinstance(node.args[2], Constant))


def _goes_along(node: Node, found: set[Node]) -> bool:
    """Whether all bytes that a call gives are made unsigned by what it reads, or by itself."""
    if not isinstance(node, Call) or node.op is QUANTIZE:
        return True
    read = node.args if node.op is CONCATENATE else node.args[:1]
    return found.issuperset(read)


def _takes(user: Node, node: Node, found: set[Node]) -> bool:
    """Whether a call reads a value as bytes that may be unsigned."""
    if not isinstance(user, Call):
        return False
    if user.op is DEQUANTIZE:
        return user.args[0] is node and isinstance(user.args[2], Constant)
    return user in found


def _unsigned(call: Call) -> Call:
    """A call whose bytes, those that it makes or those that it reads, are unsigned."""
    args = call.args
    if call.op in (QUANTIZE, DEQUANTIZE):
        middle = args[2]
        assert isinstance(middle, Constant)
        args = (*args[:2], unsigned_zero(middle))
    attrs = replace(call.attrs, dtype="uint8") if call.op is QUANTIZE else call.attrs
    value = call.value if call.op is DEQUANTIZE else None  # other bytes are none of the model's values any more
    return replace(op_of(call)(*args, attrs=attrs), origin=call.origin, value=value)
