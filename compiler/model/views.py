"""Values that lie in the memory of others, found before memory is planned, so that nothing is copied.

The result of a reshape or of a slice may be part of its argument; what a concatenation puts side by side is written
where it belongs in the result. Operators say by their memory rules (``ops/definition/memory_view.py``) where that
holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import field

from ...base.dataclass import dataclass
from ...graph.node import Call, Var
from ...ir.constants import ZERO
from ...ir.contents import free_vars, substitute
from ...ir.expr import Expr
from ...ir.makers import as_index
from ...ir.simplify import simplify
from ...ops.definition.memory_view import MemoryView, RunOfArgument, RunsOfResult
from ...ops.definition.registry import op_of
from ..symbols import symbols_of
from .units import BirthUnit, Ordered, Unit, Value, copy_of, type_of, units_of


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """Where a value lies: in the memory of another, from a byte on."""

    base: Value
    begin: Expr


def find_views(units: Sequence[Ordered], results: Sequence[Value]) -> tuple[list[Ordered], dict[Value, View]]:
    """The units that are left to run, and the values that lie in others, which have memory of their own."""
    finder = _Finder({value for unit in units_of(units) for value in unit.outputs}.difference(results))
    left = [unit for given in units for unit in finder.enter(given)]
    return left, {value: finder.resolved(value) for value in finder.views}


@dataclass(slots=True, eq=False)
class _Finder:
    """``free`` are the values whose place is ours to choose. Extents are born one after the other: ``births`` counts
    those so far, ``born`` says when each symbol was, and ``written`` when memory had to be there. Mutable: filled in
    the order of the units."""

    free: set[Value]
    views: dict[Value, View] = field(default_factory=dict)
    births: int = 0
    born: dict[Expr, int] = field(default_factory=dict)
    written: dict[Value, int] = field(default_factory=dict)

    def enter(self, unit: Ordered) -> list[Ordered]:
        """The units to run in place of one."""
        if isinstance(unit, BirthUnit):
            self.births += 1
            self.born |= dict.fromkeys(unit.symbols, self.births)
            self.views[unit.witness] = View(unit.values, ZERO)
            return [unit]
        left = self._enter(unit)
        for value in (value for made in left for value in made.outputs):
            self.written.setdefault(self.resolved(value).base, self.births)
        return [*left]

    def _enter(self, unit: Unit) -> list[Unit]:
        value = unit.outputs[0]
        found = _view_of(unit) if value in self.free else None
        match found:
            case RunOfArgument(begin) if begin is ZERO or self.resolved(unit.inputs[0]).base in self.free:
                self.views[value] = View(unit.inputs[0], _bytes(begin, unit))
                return []
            case RunsOfResult(begins) if any(self._may_move(part, value) for part in unit.inputs):
                parts = zip(unit.inputs, begins, strict=True)
                return [copy for part, begin in parts for copy in self._put(part, View(value, _bytes(begin, unit)))]
            case _:
                return [unit]

    def _put(self, part: Value, place: View) -> list[Unit]:
        """Have a value written at a place; where it has a place already, by a copy."""
        if self._may_move(part, place.base):
            moved = self.resolved(part).base
            self.views[moved] = place
            self.written[place.base] = min(self.written.pop(moved), self.written.get(place.base, self.births))
            return []
        copy = copy_of(part)
        self.views[copy.outputs[0]] = place
        return [copy]

    def _may_move(self, part: Value, whole: Value) -> bool:
        """Whether the memory that a value lies in holds nothing else, and may be part of another's."""
        at = self.resolved(part)
        alone = at.begin is ZERO and _size(at.base) is _size(part)
        if not alone or at.base not in self.free or at.base == whole:
            return False
        return self._known_since(type_of(whole).shape) <= self.written[at.base]

    def _known_since(self, extents: Iterable[Expr]) -> int:
        """How many births it takes until extents are known."""
        return max((self.born.get(symbol, 0) for e in extents for symbol in free_vars(e)), default=0)

    def resolved(self, value: Value) -> View:
        """Where a value lies, in one that has memory of its own."""
        begin: Expr = ZERO
        while value in self.views:
            view = self.views[value]
            value, begin = view.base, simplify(view.begin + begin)
        return View(value, begin)


def _view_of(unit: Unit) -> MemoryView | None:
    """Where the results of a unit lie: those of one call of all that it is given, or of calls that each give a run of
    what the one before gives."""
    call, params = unit.function.body, unit.function.params
    if not isinstance(call, Call) or not params or not call.args:
        return None
    begin: Expr = ZERO
    while isinstance(inner := call.args[0], Call):
        run = _run_of(call, params)
        if run is None or not inner.args:
            return None
        call, begin = inner, begin + run.begin
    if inner is not params[0]:
        return None
    if (run := _run_of(call, params)) is not None:
        return RunOfArgument(simplify(begin + run.begin))
    each_once = len(call.args) == len(params) and all(a is p for a, p in zip(call.args, params, strict=True))
    return op_of(call).memory_view(call) if each_once and call is unit.function.body else None


def _run_of(call: Call, params: Sequence[Var]) -> RunOfArgument | None:
    """The run of the first argument that a call gives, if the others are parameters."""
    if any(all(argument is not param for param in params) for argument in call.args[1:]):
        return None
    view = op_of(call).memory_view(call)
    return view if isinstance(view, RunOfArgument) else None


def _bytes(elements: Expr, unit: Unit) -> Expr:
    """The bytes of so many elements of a unit's result; dimensions become those of the model."""
    own = symbols_of(node.type for node in (*unit.function.params, unit.function.body))
    symbols = {symbol: unit.symbols[symbol.name] for symbol in own}
    return simplify(substitute(elements, symbols) * _element_bytes(unit.outputs[0]))


def _size(value: Value) -> Expr:
    return simplify(math.prod(type_of(value).shape, start=as_index(_element_bytes(value))))


def _element_bytes(value: Value) -> int:
    return type_of(value).dtype.storage_bytes
