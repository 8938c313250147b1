"""A graph function as units in order: the closed functions to run, each with the values it reads and writes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ...base.errors import ModelError
from ...graph.node import Call, Function, ImportedValue, Node, Tuple, TupleGet, Var
from ...graph.types import TensorType, leaf_types, leaves_of_field
from ...ir.expr import Expr
from ..fusion.closed_function import as_function, is_inlined_constant, names_of
from ..fusion.partition import partition
from ..symbols import by_position, renamed, symbols_of

Value: TypeAlias = tuple[Node, int]
"""A tensor in memory: an input, a constant, or tensor number k of those that a call's result is made of."""


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """One function to run: what it reads, and what it writes. ``symbols`` are the extents in the model that the
    function's own symbolic dimensions stand for, by name."""

    function: Function
    symbols: Mapping[str, Expr]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    origin: tuple[str, ...]

    @property
    def imported(self) -> dict[int, ImportedValue]:
        """What the imported model calls the outputs, by their number; of those that are values of it."""
        found = {}
        for number, (node, index) in enumerate(self.outputs):
            if isinstance(node, Call) and node.value is not None and index == 0 and isinstance(node.type, TensorType):
                found[number] = node.value
        return found


def units_of(function: Function, unfused: Collection[str] = ()) -> tuple[list[Unit], list[Value]]:
    """The functions to run in order, and the values of the results, each of which is written by one of them; of a
    function whose tuples ``flatten_tuples`` has written out. Calls of the operators ``unfused`` are functions of their
    own."""
    units = []
    for group in partition(function, unfused):
        closed, dimensions = as_function(group, function.batch, function.batch_size)
        inputs = tuple(_value(n) for n in group.inputs if not is_inlined_constant(n))
        outputs = tuple(v for node in group.outputs for v in _outputs_of(node))
        origin = tuple(o for call in group.calls for o in call.origin)
        units.append(Unit(closed, dimensions, inputs, outputs, origin))
    written = {value for unit in units for value in unit.outputs}
    results: list[Value] = []
    body = function.body
    for node in body.fields if isinstance(body, Tuple) else (body,):
        value = _value(node)
        if value not in written or value in results:
            units.append(copy_of(value))
            (value,) = units[-1].outputs
        results.append(value)
    return units, results


def copy_of(value: Value) -> Unit:
    """The unit that makes another value of the same elements."""
    kind = type_of(value)
    symbols = by_position(symbols_of([kind]))
    param = Var("p0", renamed(kind, symbols))
    return Unit(Function((param,), param, "copy"), names_of(symbols), (value,), ((Var("copy", kind), 0),), ())


def _value(node: Node) -> Value:
    if not isinstance(node.type, TensorType):
        raise ModelError(f"a {node.type} cannot be a value of a compiled model")
    index = 0
    while isinstance(node, TupleGet):
        index += leaves_of_field(node.tuple.type, node.index).start
        node = node.tuple
    return node, index


def _outputs_of(node: Node) -> list[Value]:
    return [(node, k) for k in range(len(leaf_types(node.type)))]


def type_of(value: Value) -> TensorType:
    """The type of a value, which is one tensor."""
    node, index = value
    return leaf_types(node.type)[index]
