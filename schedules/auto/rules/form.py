"""Whether a stage has memory of its own, or is computed where it is read."""

from __future__ import annotations

from ...default_schedule import worth_inlining
from ..sketch import ScheduleRule, StageSketch


def _inline(at: StageSketch) -> None:
    at.stage.compute_inline()


def _is_cheap(at: StageSketch) -> bool:
    return worth_inlining(at.schedule.state, at.state)


def _may_be_inlined(at: StageSketch) -> bool:
    state, stage = at.schedule.state, at.state
    readers = state.consumers(stage)
    spare = stage.name not in state.outputs and stage.compute.reduction is None
    return spare and not _is_cheap(at) and all(reader.is_compute for reader in readers)


def _keep(at: StageSketch) -> None:
    """Nothing is to be done."""


INLINE = ScheduleRule("inline", "form", _is_cheap, _inline)
KEEP = ScheduleRule("keep", "form", lambda at: True, _keep)
RECOMPUTE = ScheduleRule("recompute", "form", _may_be_inlined, _inline)
