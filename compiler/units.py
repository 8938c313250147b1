"""A graph function as units in order: the closed functions to run, each with the values it reads and writes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..graph.node import Call, Constant, Function, ImportedValue, Node, Tuple, TupleGet, Var
from ..graph.types import TensorType, TupleType, Type
from ..ir.errors import ModelError
from .closed_function import as_function, is_inlined_constant, symbols_of_group
from .partition import partition
from .symbols import Symbol, by_position, position_name, renamed, symbols_of

Value: TypeAlias = tuple[Node, int]
"""A tensor in memory: an input, a constant, or output number k of a call."""


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """One function to run: what it reads, and what it writes. ``symbols`` are the dimensions of the model that the
    function's own symbolic dimensions stand for, by name."""

    function: Function
    symbols: Mapping[str, Symbol]
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
    """The functions to run in order, and the values of the results, each of which is written by one of them. Calls of
    the operators ``unfused`` are functions of their own."""
    units = []
    for group in partition(function, unfused):
        closed = as_function(group)
        inputs = tuple(_value(n) for n in group.inputs if not is_inlined_constant(n))
        outputs = tuple(v for node in group.outputs for v in _outputs_of(node))
        origin = tuple(o for call in group.calls for o in call.origin)
        units.append(Unit(closed, _named(symbols_of_group(group)), inputs, outputs, origin))
    written = {value for unit in units for value in unit.outputs}
    results: list[Value] = []
    for node in _fields(function.body):
        value = _value(node)
        if value not in written or value in results:
            units.append(copy_of(value))
            (value,) = units[-1].outputs
        results.append(value)
    return units, results


def copy_of(value: Value) -> Unit:
    """The unit that makes another value of the same elements."""
    kind = type_of(value)
    symbols = symbols_of([kind])
    param = Var("p0", renamed(kind, by_position(symbols)))
    node, index = value
    copied = TupleGet(node, index) if isinstance(node.type, TupleType) else node
    return Unit(Function((param,), param, "copy"), _named(symbols), (value,), ((Tuple((copied,)), 0),), ())


def _named(symbols: Sequence[Symbol]) -> dict[str, Symbol]:
    return {position_name(number): symbol for number, symbol in enumerate(symbols)}


def _fields(node: Node) -> list[Node]:
    if isinstance(node, Tuple):
        return [leaf for field in node.fields for leaf in _fields(field)]
    if isinstance(node.type, TupleType):
        return [TupleGet(node, k) for k in range(len(node.type.fields))]
    return [node]


def _value(node: Node) -> Value:
    match node:
        case TupleGet(Tuple(fields), index):
            return _value(fields[index])
        case TupleGet(Call() as call, index):
            return call, index
        case Var() | Constant() | Call():
            return node, 0
        case _:
            raise ModelError(f"a {node.type} cannot be a value of a compiled model")


def _outputs_of(node: Node) -> list[Value]:
    count = len(node.type.fields) if isinstance(node.type, TupleType) else 1
    return [(node, k) for k in range(count)]


def type_of(value: Value) -> Type:
    node, index = value
    return node.type.fields[index] if isinstance(node.type, TupleType) else node.type
