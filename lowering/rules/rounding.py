"""The rules of what is rounded up: memory has room for it, and nothing is read beyond a tensor that has no more."""

from __future__ import annotations

from functools import reduce
from operator import mul

from ...base.errors import ScheduleError
from ...ir.constants import ZERO
from ...ir.facts import prove
from ...ir.simplify import simplify
from ..nest.inference import Inference, ReadBeyond
from ..nest.regions import infer
from ..nest.rounding import axis_behind, rounded_loops, rounds_up
from ..nest.scans import Steps, scan_of, steps_of
from ..report import literal, schedule_error
from ..stage import After, Before, Stage
from ..state import ScheduleState, once
from .annotations import check_annotated_extents


def check_rounding(state: ScheduleState, before: ScheduleState) -> None:
    """Raise ``ScheduleError`` where a stage that is rounded up, or what it reads then, may not be; ``before`` is what
    the error shows."""
    if not rounds_up(state) or _passed(state):
        return
    known = infer(state)
    computed = [stage for stage in state.stages if stage.name in known.unguarded]
    for stage in computed:
        _check_loops(stage, known, before)
    steps = steps_of(state, known.bodies)
    for stage in reversed(computed):
        if stage.name in steps:
            _check_time(stage, steps[stage.name], known, before)
        if any(not stage.loops[loop].reduce for loop in known.unguarded[stage.name]):
            _check_memory(state, stage, before)
    for stage in state.stages:
        for found in known.beyond.get(stage.name, ()):
            _check_read(stage, found, known, before)
        if known.beyond.get(stage.name):  # how far it is read may have become an open number
            check_annotated_extents(state, stage.name, before)
    _passed(state).append(True)


@once("bounds")
def _passed(_: ScheduleState) -> list[bool]:
    """Not empty once the state was found to keep the rules: mutable, and shared by states with the same bounds."""
    return []


def _check_loops(stage: Stage, known: Inference, before: ScheduleState) -> None:
    """Refuse a loop inside a tile: there is no room behind it, since its end is where the next tile begins."""
    extents = known.loops[stage.name].extents
    for relation, loop in rounded_loops(stage):
        made = simplify(reduce(mul, (extents[part] for part in relation.made)))
        if axis_behind(stage, loop) is None and made is not extents[loop]:
            name = stage.loops[loop].name
            raise schedule_error(
                before,
                f"cannot round up loop {name} of {stage.name}: it runs inside tiles of {extents[loop]}, and would "
                "reach into the next one",
                f"Choose a width of the tile that is a multiple, or another tail for {name}.",
                [loop],
            )


def _check_time(stage: Stage, steps: Steps, known: Inference, before: ScheduleState) -> None:
    """What depends on the state of a scan has the steps that there are so far, and none behind them."""
    time = next(loop for loop, axis in stage.axis_of.items() if axis is stage.compute.axis[steps.dim])
    if time in known.unguarded[stage.name]:
        raise schedule_error(
            before,
            f"{stage.name} cannot be rounded up along {stage.loops[time].name}, the time of the scan "
            f"{steps.scan.name}: later steps do not exist yet",
            "Round up loops along its other axes.",
            [time],
        )


def _check_memory(state: ScheduleState, stage: Stage, before: ScheduleState) -> None:
    """More elements than the tensor has are computed by loops, in memory that is ours, and read by loops."""
    others = [reader.name for reader in state.consumers(stage) if not reader.is_compute]
    if stage.name in state.outputs:
        problem = "it is an output, whose memory is the caller's"
        advice = f'Take the stage that s.cache_write({literal(stage.name)}, "local") puts before it.'
    elif others or not stage.is_compute or scan_of(state, stage) is not None:
        problem = f"{(others or ['a scan'])[0]} reads or computes it, which knows nothing of what lies beyond the end"
        advice = f"Put a copy between: s.cache_read({literal(stage.name)}, …)."
    elif isinstance(stage.place, (After, Before)):
        problem = "it is computed after its producer, which finishes no more than the tensor has"
        advice = "Place it by compute_at, or at the root."
    else:
        return
    raise schedule_error(before, f"{stage.name} cannot be rounded up: {problem}", advice)


def _check_read(source: Stage, found: ReadBeyond, known: Inference, before: ScheduleState) -> None:
    """What is read beyond an end is of a stage that is computed so far."""
    reader, dim = found.reader.name, found.dim
    what = f"{reader} would read {found.read} beyond the ends of {source.name}, along dimension {dim}"
    extent = found.read.tensor.shape[dim]
    if found.bounds is None or not prove(found.bounds[0] >= ZERO, known.facts):
        problem = f"{what}: the indices there depend on memory, or run backwards"
    elif source.is_input:
        problem = f"{what}: up to index {found.bounds[1]}, of {extent} elements of an input"
    elif not source.is_compute:
        problem = f"{what}: up to index {found.bounds[1]}, of {extent} elements, and it is not computed by loops"
    else:
        return
    raise _unread(before, problem, source, reader)


def _unread(before: ScheduleState, problem: str, source: Stage, reader: str) -> ScheduleError:
    call = f's.cache_read({literal(source.name)}, "global", [{literal(reader)}], pad=0)'
    return schedule_error(
        before,
        problem,
        f"Let it read a copy that goes on beyond the end, before this step: {call}; and round up only loops along "
        "which indices grow.",
    )
