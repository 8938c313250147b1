"""A fused group as a function of its own: closed, named for its operators, its parameters and symbolic dimensions for
their position.

So equal groups make equal functions, which are compiled once.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ...base.errors import InternalError, TypeInferenceError
from ...graph.node import Call, Constant, Function, Node, Tuple, TupleGet, Var
from ...graph.structural import graph_hash
from ...graph.visit import bodies_of, nested_order
from ...ir.constants import const_int
from ...ir.contents import free_vars
from ...ir.expr import Binary, Expr
from ...ir.visit import walk
from ...ops.definition.registry import op_of
from ...ops.families.quantize import DEQUANTIZE, QUANTIZE
from ..symbols import Symbol, by_position, extents_of, renamed, symbols_of
from .partition import Group

MAX_NAME = 80


def is_inlined_constant(node: Node) -> bool:
    """Constants of one element stand in the code, but for what numbers are quantized by; others are arguments."""
    return isinstance(node, Constant) and node.size == 1


def arguments_of(group: Group) -> tuple[Node, ...]:
    """The inputs of a group that its function takes as arguments. Control flow takes all of them, as it computes
    nothing itself."""
    if bodies_of(group.calls[0]):
        return group.inputs
    quantized = {node for call in group.calls for node in _quantized_by(call)}
    return tuple(node for node in group.inputs if node in quantized or not is_inlined_constant(node))


def _quantized_by(call: Call) -> Iterable[Node]:
    """The scales and zero points of a call: arguments too, as they are others in each layer, which then share code. But
    1 and 0 need no code at all."""
    if call.op not in (QUANTIZE, DEQUANTIZE):
        return ()
    constants = (a for a in call.args[1:] if isinstance(a, Constant))
    return (a for a in constants if a.size != 1 or a.value.item() not in (0, 1))


def names_of(dimensions: Mapping[Expr, Symbol]) -> dict[str, Expr]:
    """What the dimensions of a closed function stand for, by their names."""
    return {symbol.name: extent for extent, symbol in dimensions.items()}


def as_function(
    group: Group, batch: Iterable[Symbol] = (), batch_size: int | None = None
) -> tuple[Function, dict[str, Expr]]:
    """A group as a closed function, with all named by position, so that equal groups print alike; and the extents that
    its dimensions stand for, by name. ``batch`` are the dimensions that count samples, and ``batch_size`` how many, as
    for the function that the group is of.

    An extent of the inputs that is computed, but for products, becomes a dimension of its own, if the group does not
    tell what it is computed from: so one function serves images of several sizes.
    """
    samples = frozenset(batch)
    if batch_size is None:
        own = by_position(_atoms(group))
        function = _with_dimensions(group, own, samples, None)
        if function is not None:
            return function, names_of(own)
    symbols = by_position(symbols_of(node.type for node in (*group.inputs, *group.calls)))
    function = _with_dimensions(group, symbols, samples, batch_size)
    if function is None:
        raise InternalError(f"{function_name(group)} has other types with other names of its dimensions")
    return function, names_of(symbols)


def _atoms(group: Group) -> Iterable[Expr]:
    """What the extents of a group's inputs are made of: dimensions, and extents that are no products of these."""
    for extent in extents_of(node.type for node in group.inputs):
        if any(isinstance(e, Binary) and e.op != "*" for e in walk(extent)):
            yield extent
        else:
            yield from free_vars(extent)


def _with_dimensions(
    group: Group, dimensions: Mapping[Expr, Symbol], batch: frozenset[Symbol], batch_size: int | None
) -> Function | None:
    """The group with these dimensions; None if extents that are one in the group would be several, or if a call needs
    to know more of them, such as that one is a multiple of 4."""
    params = {
        node: Var(f"p{number}", renamed(node.type, dimensions)) for number, node in enumerate(arguments_of(group))
    }
    made: dict[Node, Node] = dict(params)
    for call in group.calls:
        args = tuple(_inside(a, made) for a in call.args)
        if not dimensions:
            made[call] = replace(call, args=args, origin=(), value=None)
            continue
        try:
            made[call] = op_of(call)(*args, attrs=call.attrs)
        except TypeInferenceError:
            return None
    if not _same_extents(made):
        return None
    outputs = tuple(made[o] for o in group.outputs)
    body = outputs[0] if len(outputs) == 1 else Tuple(outputs)
    samples = tuple(symbol for extent, symbol in dimensions.items() if not batch.isdisjoint(free_vars(extent)))
    size = batch_size if samples else None
    return Function(tuple(params.values()), body, function_name(group), batch=samples, batch_size=size)


def _same_extents(made: Mapping[Node, Node]) -> bool:
    """Whether each extent of the nodes is one and the same extent of what was made of them, and a number is itself."""
    found: dict[Expr, Expr] = {}
    pairs = zip(extents_of(n.type for n in made), extents_of(n.type for n in made.values()), strict=True)
    return all(found.setdefault(old, new) is new and (new is old or const_int(old) is None) for old, new in pairs)


def entry_symbol(function: Function) -> str:
    """The symbol of a closed function's code."""
    return f"{function.name}_{graph_hash(function)[:12]}"


def _inside(value: Node, made: Mapping[Node, Node]) -> Node:
    """An argument in terms of the function's own nodes."""
    if value in made:
        return made[value]
    match value:
        case Tuple(parts):
            return Tuple(tuple(_inside(part, made) for part in parts))
        case TupleGet(source, index):
            return TupleGet(_inside(source, made), index)
        case _:
            return value


def function_name(group: Group) -> str:
    """``fused_nn_conv2d_add_nn_relu``, cut at 80 characters with a digest of the rest; of control flow
    ``loop_nn_matmul_add``, by the calls of its bodies."""
    inside = [node for body in bodies_of(group.calls[0]) for node in nested_order(body.body)]
    words = [group.calls[0].op.name] if inside else ["fused"]
    words += [node.op.name for node in inside or group.calls if isinstance(node, Call)]
    name = "_".join(re.sub(r"\W", "_", word) for word in words)
    if len(name) <= MAX_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: MAX_NAME - 9]}_{digest}"
