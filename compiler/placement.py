"""Where the values of a model lie: in the slot of an input, output or constant, or in the arena."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..codegen.entry import Operand
from ..codegen.model import TensorSpec
from ..graph.node import Constant, Function
from ..graph.types import TensorType, Type
from ..ir.errors import ModelError
from .memory_plan import Lifetime, plan_memory
from .units import Unit, Value, type_of


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Where each value lies."""

    places: dict[Value, Operand]
    constants: tuple[npt.NDArray[Any], ...]
    arena_bytes: int


def place_values(function: Function, units: Sequence[Unit], results: Sequence[Value]) -> Placement:
    places: dict[Value, Operand] = {}
    for node in (*((p, 0) for p in function.params), *results):
        places[node] = Operand(len(places))
    constants: dict[Value, npt.NDArray[Any]] = {}
    for unit in units:
        for value in unit.inputs:
            if isinstance(value[0], Constant) and value not in constants:
                places[value] = Operand(len(places))
                constants[value] = value[0].value
    arena = len(places)
    offsets, size = plan_memory(_lifetimes(units, places))
    places.update((value, Operand(arena, offset)) for value, offset in offsets.items())
    return Placement(places, tuple(np.ascontiguousarray(c) for c in constants.values()), size)


def _lifetimes(units: Sequence[Unit], placed: dict[Value, Operand]) -> dict[Value, Lifetime]:
    first: dict[Value, int] = {}
    last: dict[Value, int] = {}
    for number, unit in enumerate(units):
        for value in unit.outputs:
            first[value] = last[value] = number
        for value in unit.inputs:
            last[value] = number
    return {
        value: Lifetime(tensor_spec("an intermediate value", type_of(value)).size, first[value], last[value])
        for value in first
        if value not in placed
    }


def tensor_spec(name: str, kind: Type) -> TensorSpec:
    if not isinstance(kind, TensorType):
        raise ModelError(f"{name} is a {kind}; inputs and outputs of a compiled model are tensors")
    shape = kind.static_shape
    if shape is None:
        raise ModelError(f"{name} has the symbolic shape {kind}: give its extents, as in shapes={{{name!r}: (1, 3)}}")
    return TensorSpec(name, shape, kind.dtype)
