"""What computes that only move elements hand their schedules: of transposes, layouts, pixels of blocks."""

from __future__ import annotations

from ...base.dataclass import dataclass
from ...te.tensor import Tensor
from ..definition.implementation import Stages


@dataclass(frozen=True, slots=True, eq=False)
class RearrangedStages(Stages):
    """The result, and the ``source`` that it reads: the operand, or one with the same elements in other axes, which is
    inlined."""

    source: Tensor
