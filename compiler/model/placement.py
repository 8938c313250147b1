"""Where the values of a model lie: each has a slot of the frame; intermediate ones are in the memory of the stage that
writes them first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field

from ...artifact.block import (
    Birth,
    BornDimension,
    BornOutput,
    DerivedExtent,
    FrameLayout,
    Intermediate,
    Slice,
    StepResult,
)
from ...artifact.extents import Extent, extent_of
from ...artifact.function import TensorSpec
from ...base.dataclass import dataclass
from ...base.errors import ModelError
from ...graph.node import Constant, Function, ImportedValue, Var
from ...graph.types import TensorType, Type
from ...ir.contents import free_vars
from ...ir.expr import Dimension, Expr
from ...ir.makers import as_index
from ...ir.simplify import simplify
from ..symbols import Symbol
from .units import BirthUnit, Ordered, Unit, Value, type_of, units_of
from .views import View


@dataclass(slots=True, eq=False)
class StagePlan:
    """The units of a stage, behind the births that begin it, and the values that have slots of its own. Mutable while
    it is made."""

    births: list[BirthUnit] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)
    born: list[Birth] = field(default_factory=list)
    derived: list[DerivedExtent] = field(default_factory=list)
    intermediates: list[Intermediate] = field(default_factory=list)
    slices: list[Slice] = field(default_factory=list)
    outputs: list[BornOutput] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """The slot of each value and of each extent that functions take as a dimension; the constants, and the stages."""

    layout: FrameLayout
    slots: Mapping[Value, int]
    dims: Mapping[Expr, int]
    constants: tuple[Constant, ...]
    stages: tuple[StagePlan, ...]
    known: Mapping[str, int]
    """The number of the stage that a dimension is known from, by its name; 0 for those that are not there."""

    def stage_of(self, names: Sequence[str]) -> int:
        """The first stage that knows all of these dimensions."""
        return max((self.known.get(name, 0) for name in names), default=0)


def place_values(
    function: Function,
    ordered: Sequence[Ordered],
    results: Sequence[Value],
    views: Mapping[Value, View],
    names: Mapping[Symbol, str],
) -> Placement:
    """``views`` has the values that lie in others, ``names`` the symbolic dimensions of the function, those that a run
    computes last."""
    units = list(units_of(ordered))
    _check_known(function, units)
    stages = _stages(ordered)
    read = (views[value].base if value in views else value for unit in units for value in unit.inputs)
    constants = dict.fromkeys(value for value in read if isinstance(value[0], Constant))
    born = {symbol for stage in stages for birth in stage.births for symbol in birth.symbols}
    given = tuple(name for symbol, name in names.items() if symbol not in born)
    layout = FrameLayout(len(function.params), len(results), len(constants), given, len(stages) > 1)
    fixed = [*((p, 0) for p in function.params), *results, *constants]
    placer = _Placer(stages, names, views, {value: slot for slot, value in enumerate(fixed)}, layout)
    placer.place(results)
    nodes = tuple(node for node, _ in constants if isinstance(node, Constant))
    known = {names[symbol]: number for symbol, number in placer.known.items()}
    return Placement(layout, placer.slots, placer.dims, nodes, tuple(stages), known)


def _stages(ordered: Sequence[Ordered]) -> list[StagePlan]:
    """A birth begins a stage, unless one has just begun."""
    stages = [StagePlan()]
    for each in ordered:
        if isinstance(each, Unit):
            stages[-1].units.append(each)
        elif each.symbols:
            if stages[-1].units or len(stages) == 1:
                stages.append(StagePlan())
            stages[-1].births.append(each)
    return stages


def _check_known(function: Function, units: Sequence[Unit]) -> None:
    known = set(function.params)
    for node, _ in (value for unit in units for value in unit.inputs):
        if isinstance(node, Var) and node not in known:
            raise ModelError(f"{node.name}: {node.type} is used, but is none of the parameters of {function.name}")


class _Placer:
    """Gives slots, stage by stage. Mutable."""

    def __init__(
        self,
        stages: Sequence[StagePlan],
        names: Mapping[Symbol, str],
        views: Mapping[Value, View],
        slots: dict[Value, int],
        layout: FrameLayout,
    ) -> None:
        self._stages, self._names, self._views = stages, names, views
        self.slots = slots
        self._fixed = frozenset(slots)
        self._next = layout.first_local
        self._written: dict[int, int] = {}
        self.known: dict[Symbol, int] = {}
        self.dims: dict[Expr, int] = {}
        numbered = dict(zip(layout.dims, range(layout.first_dim, layout.memory), strict=True))
        own = {symbol: name for symbol, name in names.items() if not isinstance(symbol, Dimension) or symbol.unit == 1}
        self.dims.update({symbol: numbered[name] for symbol, name in own.items() if name in numbered})

    def place(self, results: Sequence[Value]) -> None:
        """Fill in what the stages have slots for."""
        for number, stage in enumerate(self._stages):
            for birth in stage.births:
                for symbol in birth.symbols:
                    self.known[symbol] = number
                    self.dims[symbol] = self._slot()
        for unit in (unit for stage in self._stages for unit in stage.units):
            for extent in unit.symbols.values():
                if extent not in self.dims:
                    self._derive(extent)
        self._place_values()
        for value, view in self._views.items():
            self._place_view(value, view)
        for stage in self._stages:
            stage.born = [self._birth(birth) for birth in stage.births]
        for number, value in enumerate(results):
            if stage_number := self._stage_of(type_of(value).shape):
                self._stages[stage_number].outputs.append(BornOutput(number, self._size(value)))

    def _slot(self) -> int:
        self._next += 1
        return self._next - 1

    def _stage_of(self, extents: Sequence[Expr]) -> int:
        """The first stage that knows these extents."""
        return max((self.known.get(symbol, 0) for e in extents for symbol in free_vars(e)), default=0)

    def _derive(self, extent: Expr) -> None:
        self.dims[extent] = slot = self._slot()
        self._stages[self._stage_of([extent])].derived.append(DerivedExtent(slot, extent_of(extent, self._names)))

    def _base(self, value: Value) -> Value:
        return self._views[value].base if value in self._views else value

    def _place_values(self) -> None:
        """Values with memory of their own live from the first unit that writes to them to the last one that reads
        them."""
        first: dict[Value, tuple[int, int]] = {}
        last: dict[Value, tuple[int, int]] = {}
        for number, stage in enumerate(self._stages):
            for value in (birth.values for birth in stage.births):
                last[self._base(value)] = number, 0
            for position, unit in enumerate(stage.units):
                for value in map(self._base, unit.outputs):
                    first.setdefault(value, (number, position))
                for value in map(self._base, (*unit.inputs, *unit.outputs)):
                    last[value] = number, position
        for value, (number, position) in first.items():
            if value not in self._fixed:
                self.slots[value] = slot = self._slot()
                self._written[slot] = number
                end, until = last[value]
                until = until if end == number else len(self._stages[number].units) - 1
                self._stages[number].intermediates.append(Intermediate(slot, self._size(value), position, until))

    def _place_view(self, value: Value, view: View) -> None:
        """Give a view the beginning of what it is of, which others may have placed. A constant that nobody reads has
        none."""
        if (base := self.slots.get(view.base)) is None:
            return
        if view.base in self._fixed:
            self.slots[value] = base
            return
        self.slots[value] = slot = self._slot()
        begin = extent_of(view.begin, self._names)
        self._stages[max(self._written[base], self._stage_of([view.begin]))].slices.append(Slice(slot, base, begin))

    def _birth(self, unit: BirthUnit) -> Birth:
        dims = tuple(BornDimension(self._names[symbol], self.dims[symbol]) for symbol in unit.symbols)
        return Birth(self.slots[unit.values], dims, unit.birth.meaning, unit.origin)

    def _size(self, value: Value) -> Extent:
        return byte_size(type_of(value), self._names)


def byte_size(tensor: TensorType, names: Mapping[Symbol, str]) -> Extent:
    """The bytes of a tensor, as a formula over the dimensions that have ``names``."""
    return extent_of(simplify(math.prod(tensor.shape, start=as_index(tensor.dtype.storage_bytes))), names)


def tensor_spec(name: str, kind: Type, names: Mapping[Symbol, str]) -> TensorSpec:
    """An input or output of a model as plain data."""
    if not isinstance(kind, TensorType):
        raise ModelError(f"{name} is a {kind}; inputs and outputs of a compiled model are tensors")
    return TensorSpec(name, tuple(extent_of(extent, names) for extent in kind.shape), kind.dtype)


def step_result(value: ImportedValue, tensor: TensorType, slot: int, names: Mapping[Symbol, str]) -> StepResult:
    """A value of the imported model as a step leaves it in a slot."""
    shape = tensor.shape if value.shape is None else value.shape
    stored, plain = (tuple(extent_of(extent, names) for extent in extents) for extents in (tensor.shape, shape))
    return StepResult(slot, value.name, tensor.dtype, stored, value.order, plain)
