"""The rules of where stages may stand: checked by each primitive that places a stage, or changes who reads whom."""

from __future__ import annotations

from ..ir.facts import prove
from ..te.tensor import ComputeOp
from .finished import UnfinishedError, finished
from .inference import Inference
from .nesting import Nesting, Reads, is_inside, readers_of, reads_of
from .regions import infer, inline_bodies
from .report import schedule_error
from .state import After, At, ScheduleState, Stage


def readers(state: ScheduleState, stage: Stage) -> list[Stage]:
    """The stages that read this one once inlined stages are put in."""
    return readers_of(state, reads_of(state, inline_bodies(state)), stage)


def check_placements(state: ScheduleState, before: ScheduleState, verb: str) -> None:
    """Raise ``ScheduleError`` where a stage would read what is not computed yet, or not in its loop.

    ``before`` is what the error shows, ``verb`` what the user asked for.
    """
    reads = reads_of(state, inline_bodies(state))
    for stage in state.stages:
        if isinstance(stage.place, At):
            _check_at(state, before, reads, stage, stage.place, verb)
    placed_after = [s for s in state.stages if isinstance(s.place, After)]
    if placed_after:
        for stage in placed_after:
            _check_host(state, before, stage, verb)
        _check_order(state, before, reads, verb)
        _check_finished(state, before, placed_after, verb)


def _check_at(state: ScheduleState, before: ScheduleState, reads: Reads, stage: Stage, place: At, verb: str) -> None:
    """All readers of a stage that is computed at a loop are inside that loop."""
    for reader in readers_of(state, reads, stage):
        if not is_inside(state, reader, place.stage, place.loop):
            loop = state.stage(place.stage).loops[place.loop].name
            raise schedule_error(
                before,
                f"cannot {verb}: {stage.name} is computed at loop {loop} of {place.stage}, but {reader.name} would "
                "read it outside that loop",
                f"Place {stage.name} after this step: s[{stage.name!r}].compute_root() takes compute_at back.",
                [place.loop],
            )


def _check_host(state: ScheduleState, before: ScheduleState, stage: Stage, verb: str) -> None:
    """A stage that holds others after it is computed whole, or after another: by itself, not on demand."""
    assert isinstance(stage.place, After)
    host = state.stage(stage.place.stage)
    if isinstance(host.place, At):
        raise schedule_error(
            before,
            f"cannot {verb}: {host.name} is computed at a loop of {host.place.stage}, as much as is read there, and "
            f"{stage.name} after a loop of {host.name}",
            f"Compute {host.name} at the root, or {stage.name} at that loop of {host.place.stage} (compute_at).",
            [stage.place.loop],
        )


def _check_order(state: ScheduleState, before: ScheduleState, reads: Reads, verb: str) -> None:
    """No stage runs before one that it reads."""
    position = {stage.name: k for k, stage in enumerate(Nesting(state, reads).order())}
    for stage in state.stages:
        for name in reads.get(stage.name, ()):
            if position.get(name, -1) > position[stage.name]:
                raise _order_error(state, before, stage, state.stage(name), verb)


def _order_error(state: ScheduleState, before: ScheduleState, reader: Stage, source: Stage, verb: str) -> Exception:
    stage = reader
    while not isinstance(stage.place, After) and isinstance(stage.place, At):
        stage = state.stage(stage.place.stage)
    if isinstance(stage.place, After):
        target, loop = stage.place.stage, state.stage(stage.place.stage).loops[stage.place.loop].name
        advice = (
            f"Compute {source.name} in that loop too, before: "
            f"s[{source.name!r}].reverse_compute_at(s[{target!r}], {loop}) or compute_inline."
        )
        marked = [stage.place.loop]
    else:
        advice, marked = f"Compute {reader.name} after it (reverse_compute_at), or at the root.", []
    return schedule_error(
        before, f"cannot {verb}: {reader.name} would read {source.name} before that is computed", advice, marked
    )


def _check_finished(state: ScheduleState, before: ScheduleState, placed_after: list[Stage], verb: str) -> None:
    """What stages inside a loop that others are placed after read of it is finished in each iteration."""
    try:
        known = infer(state)
        for level in dict.fromkeys(s.place for s in placed_after if isinstance(s.place, After)):
            for stage in state.stages:
                if stage.name in known.reads and is_inside(state, stage, level.stage, level.loop):
                    finished(state, known, stage, level)
                    if isinstance(stage.place, At) and isinstance(stage.op, ComputeOp):
                        _check_needed(state, known, stage, level)
    except UnfinishedError as error:
        raise schedule_error(before, f"cannot {verb}: {error.problem}", error.advice, error.loops) from None


def _check_needed(state: ScheduleState, known: Inference, stage: Stage, level: After) -> None:
    """A stage computed on demand after others computes no more than what these have finished allows."""
    spans = finished(state, known, stage, level)
    if spans is None:
        return
    region, facts = known.regions[stage.name], known.facts
    for loops in known.loops.values():
        for leaf, var in loops.vars.items():
            facts = facts.with_range(var, 0, loops.extents[leaf])
    for dim, (span, axis) in enumerate(zip(spans, stage.compute.axis, strict=True)):
        end = region.lows[dim] + region.extents[dim]
        if not span.whole and not (
            prove(region.lows[dim] >= span.low, facts)
            and prove(end <= span.low + span.extent, facts)
            and all(prove(axis.extent <= limit, facts) for limit in span.limits)
        ):
            raise UnfinishedError(
                f"{stage.name} would compute elements along {axis.name} from what is not finished in its loop",
                f"Put it in by compute_inline, or after its producer: s[{stage.name!r}].reverse_compute_at.",
                [level.loop],
            )
