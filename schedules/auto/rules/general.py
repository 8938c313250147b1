"""The loops of a stage as ``default_schedule`` has them: what there is without anything to decide."""

from __future__ import annotations

from ...axis_choice import best_lanes, neighbouring
from ...default_schedule import schedule_stage
from ...streamed_reduction import is_streamed
from ..sketch import ScheduleRule, StageSketch


def _is_streamed(at: StageSketch) -> bool:
    op = at.op
    if not at.is_whole or op.reduction is None or not op.axis or op.ragged_axes:
        return False
    last = best_lanes(op, at.bodies) is op.axis[-1]
    return last and is_streamed(op, at.bodies, neighbouring(at.stage, op), at.target)


def _schedule(at: StageSketch) -> None:
    schedule_stage(at.stage, at.target)


STREAM = ScheduleRule("stream", "loops", _is_streamed, _schedule)
GENERAL = ScheduleRule("general", "loops", lambda at: not _is_streamed(at), _schedule)
