"""Estimates of what implementations cost, in cycles of one core: what layouts are planned by.

They need not be right, but comparable: the planner weighs one way to run a graph against another, transforms included.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...base.dtype import DType
from ...base.target import Target
from ...graph.types import TensorType, TupleType, Type, leaf_types
from ...ir.constants import const_int
from ...ir.expr import Expr
from ...ir.open_extents import IN_COSTS
from ...schedules.machine import CORE


def elements(kind: Type) -> int:
    """How many elements a value has."""
    return sum(elements_of(tensor.shape) for tensor in leaf_types(kind))


def elements_of(shape: Sequence[Expr]) -> int:
    """How many elements a shape has, symbolic extents estimated."""
    return math.prod(IN_COSTS if (n := const_int(extent)) is None else n for extent in shape)


def moved(types: Sequence[Type]) -> float:
    """Cycles to go once through the memory of values: the least that an operator on them costs."""
    return sum(_bytes(kind) for kind in types) / CORE.copied_bytes


def _bytes(kind: Type) -> int:
    if isinstance(kind, TensorType):
        return elements(kind) * kind.dtype.storage_bytes
    return sum(map(_bytes, kind.fields)) if isinstance(kind, TupleType) else 0


def multiplied(count: int, kind: DType, target: Target, efficiency: float) -> float:
    """Cycles of ``count`` multiplications with additions, at a share ``efficiency`` of what a core can do."""
    return count / (target.fma_per_cycle * target.lanes(kind) * efficiency)
