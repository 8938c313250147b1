"""What computes that only move elements hand their schedules: of transposes, layouts, pixels of blocks; and what it
costs to bring elements into another order."""

from __future__ import annotations

from ...base.dataclass import dataclass
from ...graph.types import Type
from ...te.tensor import Tensor
from ..definition.cost import elements
from ..definition.implementation import Stages

CYCLES_PER_ELEMENT = 1.1
"""Measured: an element is loaded and stored by itself."""
CYCLES_PER_CALL = 2000
"""What one more function to run takes."""


@dataclass(frozen=True, slots=True, eq=False)
class RearrangedStages(Stages):
    """The result, and the ``source`` that it reads: the operand, or one with the same elements in other axes, which is
    inlined."""

    source: Tensor


def rearranging_cycles(result: Type) -> float:
    """What it costs to bring elements into another order, by a function that does nothing else."""
    return CYCLES_PER_ELEMENT * elements(result) + CYCLES_PER_CALL
