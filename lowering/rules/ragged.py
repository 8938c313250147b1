"""Ragged loops: those of reductions whose bounds differ from element to element, or are read from memory.

A ragged loop stands inside the loops that its extent depends on, and these run one iteration at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.expr import TensorRead
from ...ir.visit import tensor_reads, walk
from ..nest.inference import Inference
from ..nest.loops import StageLoops
from ..nest.regions import infer, loops_of
from ..report import schedule_error
from ..stage import At, Inlined, Stage
from ..state import ScheduleState


def has_ragged_loops(stage: Stage) -> bool:
    """Whether the stage is a reduction over an axis whose bounds differ from element to element, and has loops over it:
    one that accumulates has none."""
    return stage.is_compute and stage.along is None and bool(stage.compute.ragged_axes)


def refuse_ragged(state: ScheduleState, stage: Stage, loops: Sequence[str], verb: str) -> None:
    """Refuse what has no form for loops whose extent varies."""
    if not has_ragged_loops(stage):
        return
    found = loops_of(state, stage)
    ragged = [loop for loop in loops if _is_ragged(found, loop)]
    if ragged:
        name = stage.loops[ragged[0]].name
        raise schedule_error(
            state,
            f"cannot {verb} loop {name} of {stage.name}: its extent, {found.extents[ragged[0]]}, is not the same for "
            "all elements",
            f"Split {name} by a factor, and schedule the inner loop; or the loops over spatial axes.",
            ragged,
        )


def check_ragged_loops(state: ScheduleState, before: ScheduleState) -> None:
    """Raise ``ScheduleError`` where a ragged loop lacks what its extent depends on; ``before`` is what errors show."""
    stages = [s for s in state.stages if has_ragged_loops(s) and not isinstance(s.place, Inlined)]
    for stage in stages:
        _check_order(stage, loops_of(state, stage), before)
    if any(state.attached(stage.name) for stage in stages):
        known = infer(state)
        for stage in stages:
            _check_attached(state, stage, known, before)


def _is_ragged(loops: StageLoops, loop: str) -> bool:
    variables = set(loops.vars.values())
    return any(isinstance(node, TensorRead) or node in variables for node in walk(loops.extents[loop]))


def _check_order(stage: Stage, loops: StageLoops, before: ScheduleState) -> None:
    for position, leaf in enumerate(stage.leaves):
        needed = set(walk(loops.extents[leaf]))
        for other in stage.leaves:
            if loops.vars[other] not in needed:
                continue
            name, ragged = stage.loops[other].name, stage.loops[leaf].name
            if stage.leaves.index(other) > position:
                raise schedule_error(
                    before,
                    f"loop {ragged} of {stage.name} cannot stand outside loop {name}, which its extent "
                    f"{loops.extents[leaf]} depends on",
                    f"Reorder so that {name} stays outside {ragged}.",
                    [leaf, other],
                )
            if stage.kind(other) == "vectorized":
                raise schedule_error(
                    before,
                    f"cannot vectorize loop {name} of {stage.name}: loop {ragged} inside it has another extent in each "
                    f"iteration, {loops.extents[leaf]}",
                    f"Run {name} in parallel or unroll it, and vectorize a loop that {ragged} does not depend on.",
                    [other, leaf],
                )


def _check_attached(state: ScheduleState, stage: Stage, known: Inference, before: ScheduleState) -> None:
    """What the extent of a loop reads is not computed inside of it."""
    for position, leaf in enumerate(stage.leaves):
        for read in tensor_reads(known.loops[stage.name].extents[leaf]):
            source = next(s for s in state.stages if read.tensor in s.tensors)
            place = source.place
            if isinstance(place, At) and place.stage == stage.name and stage.leaves.index(place.loop) >= position:
                name = stage.loops[leaf].name
                raise schedule_error(
                    before,
                    f"cannot compute {source.name} at loop {stage.loops[place.loop].name} of {stage.name}: the extent "
                    f"of loop {name} reads it",
                    f"Compute it at a loop outside {name}, or at the root.",
                    [leaf, place.loop],
                )
