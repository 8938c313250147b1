"""A graph function as units in order: the closed functions to run, each with the values it reads and writes, and the
births of extents between them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeAlias

from ...base.dataclass import dataclass
from ...base.errors import ModelError
from ...graph.node import Call, Function, ImportedValue, Node, Tuple, TupleGet, Var
from ...graph.types import TensorType, leaf_types, leaves_of_field
from ...ir.expr import Expr
from ...ops.definition.extent_birth import ExtentBirth
from ...ops.definition.registry import op_of
from ..fusion.closed_function import arguments_of, as_function, names_of
from ..fusion.partition import Group, partition
from ..symbols import Symbol, by_position, renamed, symbols_of

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


@dataclass(frozen=True, slots=True, eq=False)
class BirthUnit:
    """Numbers that become extents: what is read, and the ``witness`` of them, whose elements nobody reads."""

    values: Value
    witness: Value
    birth: ExtentBirth
    origin: tuple[str, ...]

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """The extents that nobody knows before: one for each number, or none where all are known."""
        return tuple(extent for extent in self.birth.extents if isinstance(extent, Symbol))


Ordered: TypeAlias = Unit | BirthUnit


def in_order(function: Function, unfused: Collection[str] = ()) -> tuple[list[Ordered], list[Value]]:
    """What is run, in order, and the values of the results, each of which is written by one of the units; of a function
    whose tuples ``flatten_tuples`` has written out. Calls of the operators ``unfused`` are functions of their own."""
    units: list[Ordered] = [_unit(group, function) for group in partition(function, unfused)]
    written = {value for unit in units_of(units) for value in unit.outputs}
    results: list[Value] = []
    body = function.body
    for node in body.fields if isinstance(body, Tuple) else (body,):
        value = _value(node)
        if value not in written or value in results:
            units.append(copy := copy_of(value))
            (value,) = copy.outputs
        results.append(value)
    return units, results


def units_of(ordered: Sequence[Ordered]) -> Iterator[Unit]:
    """The functions among what is run."""
    return (unit for unit in ordered if isinstance(unit, Unit))


def _unit(group: Group, function: Function) -> Ordered:
    call = group.calls[0]
    if (birth := op_of(call).birth(call)) is not None:
        return BirthUnit(_value(call.args[0]), (call, 0), birth, call.origin)
    closed, dimensions = as_function(group, function.batch, function.batch_size)
    inputs = tuple(map(_value, arguments_of(group)))
    outputs = tuple(v for node in group.outputs for v in _outputs_of(node))
    origin = tuple(o for call in group.calls for o in call.origin)
    return Unit(closed, dimensions, inputs, outputs, origin)


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
