"""Why a stage of a model may not run: what its entry returns a code for, and errors are made of.

Both count by the same list: code k is refusal k - 1 of ``refusals_of``.
"""

from __future__ import annotations

from typing import TypeAlias

from ..base.dataclass import dataclass
from .block import Birth, BornDimension, BornOutput, Least, RunStage
from .extents import Extent

MAX_EXTENT = 1 << 47
"""No dimension is larger, nor has a stage or an output more bytes: as addresses have 47 bits."""


@dataclass(frozen=True, slots=True)
class NoExtent:
    """A number that a run has computed is negative, or larger than any extent."""

    birth: Birth
    dim: BornDimension


@dataclass(frozen=True, slots=True)
class TooSmallExtent:
    """A dimension is smaller than a call needs it, or another number than it must be."""

    least: Least


@dataclass(frozen=True, slots=True)
class NegativeExtent:
    """An extent that is computed from dimensions comes out negative."""

    extent: Extent


@dataclass(frozen=True, slots=True)
class TooManyBytes:
    """The values of the stage have more bytes than there are addresses."""


@dataclass(frozen=True, slots=True)
class NoStageMemory:
    """The memory of the stage was refused."""


@dataclass(frozen=True, slots=True)
class NoOutputMemory:
    """The memory of an output was refused, or the buffer that the caller gave for it is too small."""

    output: BornOutput


StageRefusal: TypeAlias = NoExtent | TooSmallExtent | NegativeExtent | TooManyBytes | NoStageMemory | NoOutputMemory


def refusals_of(stage: RunStage) -> tuple[StageRefusal, ...]:
    """All that a stage may be refused for, in the order of the codes."""
    return (
        *(NoExtent(birth, dim) for birth in stage.births for dim in birth.dims),
        *map(TooSmallExtent, stage.least),
        *map(NegativeExtent, stage.extents),
        TooManyBytes(),
        NoStageMemory(),
        *map(NoOutputMemory, stage.outputs),
    )
