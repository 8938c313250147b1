"""Stages that accumulate: how the loop along which they do may run, and that it runs over all elements."""

from __future__ import annotations

from ..nest.regions import infer
from ..nest.rounding import rounds_up
from ..report import schedule_error
from ..stage import At, Stage
from ..state import ScheduleState


def check_accumulation(state: ScheduleState, before: ScheduleState) -> None:
    """Raise ``ScheduleError`` where a stage could not go on from the element before; ``before`` is what errors show."""
    for stage in state.stages:
        if stage.along is not None:
            _check_loop(stage, stage.along, before)
            if isinstance(stage.place, At) or rounds_up(state):
                _check_whole(state, stage, stage.along, before)


def _check_loop(stage: Stage, along: str, before: ScheduleState) -> None:
    name = stage.loops[along].name
    if stage.kind(along) not in ("serial", "unrolled"):
        problem, advice = f"which cannot be {stage.kind(along)}", "Take loops over other axes for that."
    elif any(stage.kind(leaf) == "vectorized" for leaf in stage.leaves[: stage.leaves.index(along)]):
        problem, advice = "which stands in no vectorized loop", f"Reorder so that {name} stands around it."
    else:
        return
    raise schedule_error(before, f"{stage.name} accumulates along loop {name}, {problem}", advice, [along])


def _check_whole(state: ScheduleState, stage: Stage, along: str, before: ScheduleState) -> None:
    """All elements along the loop are computed where a stage is placed, so that each has the one before it, and none
    beyond the end."""
    dim = [loop for loop, axis in stage.axis_of.items() if axis.kind == "spatial"].index(along)
    if not infer(state).regions[stage.name].is_whole(dim, stage.axis_of[along].extent):
        name = stage.loops[along].name
        raise schedule_error(
            before,
            f"{stage.name} accumulates along loop {name}, but not just all of these elements would be computed",
            f"Compute {stage.name} where all elements along {name} are needed, or its reader after it, by "
            "reverse_compute_at, and leave readers that are not rounded up along them.",
            [along],
        )
