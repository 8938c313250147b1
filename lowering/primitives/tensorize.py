"""The primitive that puts an intrinsic in the place of loops: tensorize."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from ...base.dataclass import dataclass
from ...base.errors import ScheduleError
from ..report import schedule_error
from ..rules.loops import require_serial, require_unattached, stage_with_changeable_loops
from ..rules.ragged import has_ragged_loops
from ..stage import Tensorized
from ..state import ScheduleState
from ..step import StageStep
from ..tile_intrinsics import require_intrinsic


@dataclass(frozen=True, slots=True, repr=False)
class Tensorize(StageStep):
    """Replace a loop and all loops inside it by the code of an intrinsic.

    Arguments: ``intrinsic``, the name under which ``lw.declare_intrinsic`` keeps it.
    Preconditions: the loop stands; it and the loops inside it are serial, of constant extents, and nothing is computed
    at them; no loop around them is vectorized; they compute just what the intrinsic's compute says, on tiles of any
    strides. That is compared: the same operations on the same dtypes, over axes of the same extents, each read moving
    with the same axes. From then on, these loops cannot be scheduled, and steps that would change what they compute are
    refused. Where a split does not divide its loop, the last tile is not full, and runs as the loops that were there.
    A reduction begins with the intrinsic's reset if it has one, and its tile is full.

    Rewrite, with an intrinsic of 4 elements that adds with one vector instruction::

        for i_outer in range(2):                  for i_outer in range(2):
            for i_inner in range(4):         →        B[ramp(i_outer * 4, 1, 4)] = A[ramp(i_outer * 4, 1, 4)] + …
                B[i_outer * 4 + i_inner] = …
    """

    primitive: ClassVar[str] = "tensorize"

    loop: str
    intrinsic: str

    def apply(self, state: ScheduleState) -> ScheduleState:
        stage = stage_with_changeable_loops(state, self.stage, (self.loop,))
        try:
            require_intrinsic(self.intrinsic)
        except ScheduleError as error:
            raise schedule_error(state, f"cannot tensorize: {error}", "Declare it first.", [self.loop]) from None
        if stage.tensorized is not None:
            raise schedule_error(
                state,
                f"cannot tensorize {stage.name}: its inner loops are those of {stage.tensorized.intrinsic} already",
                "A stage has one intrinsic; a stage of its own, by cache_write, may have another.",
                [self.loop, stage.tensorized.loop],
            )
        if has_ragged_loops(stage) or stage.along is not None:
            raise schedule_error(
                state,
                f"cannot tensorize {stage.name}: the bounds of its reduction are not the same for all elements",
                "An intrinsic has a tile of constant size: give constant bounds, and choose terms by where.",
                [self.loop],
            )
        new = replace(stage, tensorized=Tensorized(self.loop, self.intrinsic))
        for leaf in new.tensorized_leaves:
            require_serial(state, stage, leaf, "tensorize")
            require_unattached(state, stage, leaf, "tensorize")
        return state.with_stage(new)
