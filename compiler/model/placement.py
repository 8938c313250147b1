"""Where the values of a model lie: each has a slot of the entry's arguments; intermediate ones are in the arena."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from ...artifact.extents import Extent, extent_of
from ...artifact.model import Intermediate, Slice, StepResult, TensorSpec
from ...base.aligned import aligned
from ...base.errors import ModelError
from ...base.mapped import in_memory
from ...graph.node import Constant, Function, ImportedValue, Var
from ...graph.types import TensorType, Type
from ...ir.expr import Expr
from ...ir.makers import as_index
from ...ir.simplify import simplify
from ..symbols import Symbol
from .units import Unit, Value, type_of
from .views import View


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """The slot of each value, those of intermediates and of slices of them last, and behind them the slots of the
    symbolic dimensions, then of extents that are ``derived`` from them and are dimensions of functions."""

    slots: dict[Value, int]
    dims: dict[Expr, int]
    derived: tuple[Extent, ...]
    constants: tuple[npt.NDArray[Any], ...]
    intermediates: tuple[Intermediate, ...]
    slices: tuple[Slice, ...]


def place_values(
    function: Function,
    units: Sequence[Unit],
    results: Sequence[Value],
    views: Mapping[Value, View],
    names: Mapping[Symbol, str],
) -> Placement:
    """``views`` has the values that lie in others, ``names`` the symbolic dimensions of the function."""
    constants: dict[Value, npt.NDArray[Any]] = {}
    for unit in units:
        for value in unit.inputs:
            if isinstance(value[0], Constant):
                constants[value] = aligned(in_memory(value[0].value))
    fixed = dict.fromkeys([*((p, 0) for p in function.params), *results, *constants])
    _check_known(function, units)
    lives = {value: life for value, life in _lifetimes(units, views).items() if value not in fixed}
    slots = {value: number for number, value in enumerate((*fixed, *lives))}
    places = {value: number for number, value in enumerate(lives)}
    slices: list[Slice] = []
    for value, view in views.items():
        if view.base in places:
            slots[value] = len(fixed) + len(lives) + len(slices)
            slices.append(Slice(places[view.base], extent_of(view.begin, names)))
        else:
            slots[value] = slots[view.base]  # of what is not ours to place, a view has the same beginning
    taken = dict.fromkeys([*names, *(extent for unit in units for extent in unit.symbols.values())])
    dims = {extent: len(fixed) + len(lives) + len(slices) + number for number, extent in enumerate(taken)}
    derived = tuple(extent_of(extent, names) for extent in taken if extent not in names)
    intermediates = (_intermediate(type_of(value), *life, names) for value, life in lives.items())
    return Placement(slots, dims, derived, tuple(constants.values()), tuple(intermediates), tuple(slices))


def _check_known(function: Function, units: Sequence[Unit]) -> None:
    known = set(function.params)
    for node, _ in (value for unit in units for value in unit.inputs):
        if isinstance(node, Var) and node not in known:
            raise ModelError(f"{node.name}: {node.type} is used, but is none of the parameters of {function.name}")


def _lifetimes(units: Sequence[Unit], views: Mapping[Value, View]) -> dict[Value, tuple[int, int]]:
    """The first step that writes to each value with memory of its own, and the last one that reads it."""
    first: dict[Value, int] = {}
    last: dict[Value, int] = {}
    for number, unit in enumerate(units):
        for value in unit.outputs:
            base = views[value].base if value in views else value
            first.setdefault(base, number)
            last[base] = number
        for value in unit.inputs:
            last[views[value].base if value in views else value] = number
    return {value: (number, last[value]) for value, number in first.items()}


def _intermediate(tensor: TensorType, first: int, last: int, names: Mapping[Symbol, str]) -> Intermediate:
    size = simplify(math.prod(tensor.shape, start=as_index(tensor.dtype.storage_bytes)))
    return Intermediate(extent_of(size, names), first, last)


def tensor_spec(name: str, kind: Type, names: Mapping[Symbol, str]) -> TensorSpec:
    """An input or output of a model as plain data."""
    if not isinstance(kind, TensorType):
        raise ModelError(f"{name} is a {kind}; inputs and outputs of a compiled model are tensors")
    return TensorSpec(name, tuple(extent_of(extent, names) for extent in kind.shape), kind.dtype)


def step_result(value: ImportedValue, tensor: TensorType, slot: int, names: Mapping[Symbol, str]) -> StepResult:
    """A value of the imported model as a step leaves it in a slot."""
    shape = tensor.shape if value.shape is None else value.shape
    held, plain = (tuple(extent_of(extent, names) for extent in extents) for extents in (tensor.shape, shape))
    return StepResult(slot, value.name, tensor.dtype, held, value.order, plain)
