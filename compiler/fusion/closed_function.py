"""A fused group as a function of its own: closed, named for its operators, its parameters and symbolic dimensions for
their position.

So equal groups make equal functions, which are compiled once.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ...graph.node import Constant, Function, Node, Tuple, TupleGet, Var
from ...graph.structural import graph_hash
from ...ops.definition.registry import op_of
from ..symbols import Symbol, by_position, renamed, symbols_of
from .partition import Group

MAX_NAME = 80


def is_inlined_constant(node: Node) -> bool:
    """Constants of one element stand in the code; others are arguments."""
    return isinstance(node, Constant) and node.value.size == 1


def symbols_of_group(group: Group) -> tuple[Symbol, ...]:
    """The symbolic dimensions of a group, in the order in which the names of its function number them."""
    return symbols_of(node.type for node in (*group.inputs, *group.calls))


def as_function(group: Group, batch: Iterable[Symbol] = (), batch_size: int | None = None) -> Function:
    """A group as a closed function, with all named by position, so that equal groups print alike. ``batch`` are the
    dimensions that count samples, and ``batch_size`` how many, as for the function that the group is of."""
    symbols = by_position(symbols_of_group(group))
    params = {
        node: Var(f"p{number}", renamed(node.type, symbols))
        for number, node in enumerate(n for n in group.inputs if not is_inlined_constant(n))
    }
    made: dict[Node, Node] = dict(params)
    for call in group.calls:
        args = tuple(_inside(a, made) for a in call.args)
        made[call] = (
            op_of(call)(*args, attrs=call.attrs) if symbols else replace(call, args=args, origin=(), value=None)
        )
    outputs = tuple(made[o] for o in group.outputs)
    body = outputs[0] if len(outputs) == 1 else Tuple(outputs)
    samples = tuple(symbols[symbol] for symbol in batch if symbol in symbols)
    size = batch_size if samples else None
    return Function(tuple(params.values()), body, function_name(group), batch=samples, batch_size=size)


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
    """``fused_nn_conv2d_add_nn_relu``, cut at 80 characters with a digest of the rest."""
    name = "_".join(["fused", *(re.sub(r"\W", "_", call.op.name) for call in group.calls)])
    if len(name) <= MAX_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: MAX_NAME - 9]}_{digest}"
