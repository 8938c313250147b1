"""The rules of where stages may stand: checked by each primitive that places a stage, or changes who reads whom."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...ir.constants import ZERO
from ...ir.facts import prove
from ...te.tensor import ComputeOp
from ..nest.bodies import who_reads
from ..nest.finished import UnfinishedError, finished
from ..nest.inference import Inference
from ..nest.nesting import Nesting, Reads, enclosing_loops, is_inside, readers_of
from ..nest.regions import infer
from ..nest.scans import scan_of
from ..report import literal, schedule_error
from ..stage import After, At, Before, Inlined, Place, Stage
from ..state import ScheduleState


def readers(state: ScheduleState, stage: Stage) -> list[Stage]:
    """The stages that read this one once inlined stages are put in."""
    return readers_of(state, who_reads(state), stage)


def check_placements(state: ScheduleState, before: ScheduleState, verb: str) -> None:
    """Raise ``ScheduleError`` where a stage would read what is not computed yet, or not in its loop.

    ``before`` is what the error shows, ``verb`` what the user asked for.
    """
    if not any(isinstance(s.place, (At, After)) for s in state.stages):
        return
    reads = who_reads(state)
    if outside := _read_outside(state, reads):
        raise _outside_error(state, before, *outside, verb)
    if not any(isinstance(s.place, After) for s in state.stages):
        return
    if on_demand := _after_on_demand(state):
        raise _on_demand_error(before, *on_demand, verb)
    if unordered := _out_of_order(state, reads):
        raise _order_error(state, before, *unordered, verb)
    try:
        _check_finished(state)
    except UnfinishedError as error:
        raise schedule_error(before, f"cannot {verb}: {error.problem}", error.advice, error.loops) from None


def loop_around_readers(state: ScheduleState, stage: Stage) -> tuple[str, str] | None:
    """The innermost loop, as (stage, loop), at which a stage could be computed for all of its readers."""
    found = readers(state, stage)
    if not found:
        return None
    first = found[0]
    loops = [*enclosing_loops(state, first.place), *((first, leaf) for leaf in first.leaves)]
    common: tuple[str, str] | None = None
    for holder, leaf in loops:
        if not all(is_inside(state, reader, holder.name, leaf) for reader in found):
            break
        if leaf not in holder.tensorized_leaves and _could_be(state, stage, At(holder.name, leaf)):
            common = holder.name, leaf
    return common


def call_inside(state: ScheduleState, stage: Stage, target: str, loop: str) -> str | None:
    """A call that puts a stage into a loop, if there is one."""
    places: dict[str, Place] = {
        placed_by(stage, "reverse_compute_at", target, loop): After(target, loop),
        placed_by(stage, "compute_at", target, loop): At(target, loop),
    }
    for call, place in places.items():
        if (isinstance(place, After) or stage.name not in state.outputs) and _could_be(state, stage, place):
            return call
    return None


def placed_by(stage: Stage, primitive: str, target: str, loop: str) -> str:
    """The call that places a stage, for advice."""
    return f"s[{literal(stage.name)}].{primitive}(s[{literal(target)}], {literal(loop)})"


def _could_be(state: ScheduleState, stage: Stage, place: Place) -> bool:
    """Whether the places of all stages are legal together if this one is put there."""
    if isinstance(place, (At, After)):
        target = state.stage(place.stage)
        around = target.leaves[: target.leaves.index(place.loop) + 1]
        if stage in _holders(state, target) or any(target.kind(leaf) == "vectorized" for leaf in around):
            return False
        computes = isinstance(stage.op, ComputeOp) and isinstance(target.op, ComputeOp)
        if scan_of(state, stage) is not None or (isinstance(place, After) and not computes):
            return False
    state = state.with_stage(replace(stage, place=place))
    reads = who_reads(state)
    if _read_outside(state, reads) or _after_on_demand(state) or _out_of_order(state, reads):
        return False
    try:
        _check_finished(state)
    except UnfinishedError:
        return False
    return True


def _read_outside(state: ScheduleState, reads: Reads) -> tuple[Stage, At, Stage] | None:
    """A stage that is computed at a loop, the loop, and a stage that reads it outside that; there must be none."""
    for stage in state.stages:
        if isinstance(place := stage.place, At):
            for reader in readers_of(state, reads, stage):
                if not is_inside(state, reader, place.stage, place.loop):
                    return stage, place, reader
    return None


def _outside_error(
    state: ScheduleState, before: ScheduleState, stage: Stage, place: At, reader: Stage, verb: str
) -> Exception:
    loop = state.stage(place.stage).loops[place.loop].name
    return schedule_error(
        before,
        f"cannot {verb}: {stage.name} is computed at loop {loop} of {place.stage}, but {reader.name} would "
        "read it outside that loop",
        f"Place {stage.name} after this step: s[{literal(stage.name)}].compute_root() takes compute_at back.",
        [place.loop],
    )


def _after_on_demand(state: ScheduleState) -> tuple[Stage, After, At] | None:
    """A stage, its place after a loop of a stage that is computed on demand, and the latter's; there must be none."""
    for stage in state.stages:
        if isinstance(place := stage.place, After) and isinstance(demanded := state.stage(place.stage).place, At):
            return stage, place, demanded
    return None


def _on_demand_error(before: ScheduleState, stage: Stage, place: After, demanded: At, verb: str) -> Exception:
    return schedule_error(
        before,
        f"cannot {verb}: of {place.stage}, each iteration of a loop of {demanded.stage} computes what it reads, so "
        f"that {stage.name} cannot be computed after a loop of {place.stage}",
        f"Keep {place.stage} at the root, or compute {stage.name} for {demanded.stage} too: "
        f"{placed_by(stage, 'compute_at', demanded.stage, demanded.loop)}.",
        [place.loop, demanded.loop],
    )


def _out_of_order(state: ScheduleState, reads: Reads) -> tuple[Stage, Stage] | None:
    """A stage that runs before another which it reads, and that other; there must be none.

    A stage that a ring of places would keep from running at all counts as the first of all.
    """
    if not any(isinstance(s.place, After) for s in state.stages):
        return None
    position = {stage.name: k for k, stage in enumerate(Nesting(state, reads).order())}
    for stage in state.stages:
        for name in reads.get(stage.name, ()):
            if position.get(name, -1) > position.get(stage.name, -1):
                return stage, state.stage(name)
    return None


def _order_error(state: ScheduleState, before: ScheduleState, reader: Stage, source: Stage, verb: str) -> Exception:
    holder = next((s for s in _holders(state, reader) if isinstance(s.place, After)), None)
    marked = [holder.place.loop] if holder is not None and isinstance(holder.place, After) else []
    return schedule_error(
        before,
        f"cannot {verb}: {reader.name} would read {source.name} before that is computed",
        _order_advice(state, before, reader, source, holder),
        marked,
    )


def _holders(state: ScheduleState, stage: Stage) -> Iterator[Stage]:
    """A stage, the one in whose nest it is, and so on."""
    yield stage
    while isinstance(stage.place, (At, After, Before)):
        stage = state.stage(stage.place.stage)
        yield stage


def _order_advice(
    state: ScheduleState, before: ScheduleState, reader: Stage, source: Stage, holder: Stage | None
) -> str:
    if holder is None or not isinstance(holder.place, After):
        return f"Compute {reader.name} after {source.name}: at the root, or by reverse_compute_at."
    if all(source.name != s.name for s in before.stages):
        return (
            f"First take reverse_compute_at back by s[{literal(holder.name)}].compute_root(), and place it afterwards."
        )
    places: dict[str, Place] = {
        placed_by(source, "reverse_compute_at", holder.place.stage, holder.place.loop): holder.place
    }
    inlinable = isinstance(source.op, ComputeOp) and source.op.reduction is None
    if inlinable and source.name not in state.outputs and not state.attached(source.name):
        places[f"s[{literal(source.name)}].compute_inline()"] = Inlined()
    for call, place in places.items():
        if _could_be(state, source, place):
            return f"Bring {source.name} in front of it first: {call}."
    return f"{holder.name} needs more of {source.name} than an iteration could give it: compute it at the root."


def _check_finished(state: ScheduleState) -> None:
    """What stages inside a loop that others are placed after read of it is finished in each iteration.

    Raises ``UnfinishedError`` else.
    """
    levels = list(dict.fromkeys(s.place for s in state.stages if isinstance(s.place, After)))
    if not levels:
        return
    known = infer(state)
    for level in levels:
        for stage in state.stages:
            if stage.name in known.reads and is_inside(state, stage, level.stage, level.loop):
                finished(state, known, stage, level)
                if isinstance(stage.place, At) and isinstance(stage.op, ComputeOp):
                    _check_needed(state, known, stage, level)


def _check_needed(state: ScheduleState, known: Inference, stage: Stage, level: After) -> None:
    """A stage computed on demand after others computes no more than what these have finished allows."""
    spans = finished(state, known, stage, level)
    if spans is None:
        return
    region, facts = known.regions[stage.name], known.facts
    for loops in known.loops.values():
        for leaf, var in loops.vars.items():
            facts = facts.with_range(var, ZERO, loops.extents[leaf])
    for dim, (span, axis) in enumerate(zip(spans, stage.compute.axis, strict=True)):
        low, end = region.lows[dim], region.lows[dim] + region.extents[dim]
        inside = (low >= span.low, end <= span.low + span.extent, *(axis.extent <= limit for limit in span.limits))
        if not span.whole and not all(prove(condition, facts) for condition in inside):
            raise UnfinishedError(
                f"{stage.name} would compute elements along {axis.name} from what is not finished in its loop",
                f"Put it in where it is read, s[{literal(stage.name)}].compute_inline(), or after the stages that it "
                f"reads, by reverse_compute_at.",
                [level.loop],
            )
