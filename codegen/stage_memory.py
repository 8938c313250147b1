"""Where the intermediates of a stage lie in its memory, as numbers or formulas over dimensions that machine code
evaluates."""

from __future__ import annotations

from collections.abc import Mapping

from ..artifact.block import RunStage
from ..artifact.extents import Extent
from ..artifact.formula_plan import SizedLife, plan_offsets
from ..base.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class StageMemory:
    """The offsets of the intermediates by their slots, and the size of all, in bytes."""

    offsets: Mapping[int, Extent]
    size: Extent


def plan_stage(stage: RunStage) -> StageMemory:
    """The memory of a stage, whatever its dimensions are."""
    values = stage.intermediates
    offsets, size = plan_offsets([SizedLife(value.size, value.first, value.last) for value in values])
    return StageMemory({value.slot: offset for value, offset in zip(values, offsets, strict=True)}, size)
