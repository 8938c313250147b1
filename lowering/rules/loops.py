"""What primitives ask of the loops that they change: that they stand, are serial, and hold no other stage."""

from __future__ import annotations

from ...te.tensor import ScanOp
from ..report import literal, schedule_error, stale_loop_error
from ..stage import Inlined, Stage
from ..state import ScheduleState


def stage_with_changeable_loops(state: ScheduleState, stage_name: str, loops: tuple[str, ...]) -> Stage:
    """The stage, after a check that all the loops are leaves of it, each named once, and may be changed."""
    stage = stage_with_loops(state, stage_name, loops)
    if isinstance(stage.op, ScanOp):
        updates = ", ".join(dict.fromkeys(state.stage_of(t).name for t in stage.op.update))
        raise schedule_error(
            state,
            f"loop {stage.loop_names()} of {stage.name} runs over the steps of a scan: each reads what those before it "
            "wrote, so they stay one serial loop",
            f"Schedule the loops inside: those of its update, {updates}. The time loop itself can be unrolled.",
            stage.leaves,
        )
    return stage


def stage_with_loops(state: ScheduleState, stage_name: str, loops: tuple[str, ...]) -> Stage:
    """The stage, after a check that all the loops are leaves of it, each named once."""
    stage = state.stage(stage_name)
    if not isinstance(stage.op, ScanOp):
        stage.require_compute()
    if isinstance(stage.place, Inlined):
        raise schedule_error(
            state,
            f"{stage.name} is inlined: it has no loops",
            f"Schedule the stages that read it, or take the inlining back by s[{stage.name!r}].compute_root().",
        )
    for loop in loops:
        if loop not in stage.leaves:
            raise stale_loop_error(state, stage, loop)
        if loop in stage.tensorized_leaves:
            assert stage.tensorized is not None
            raise schedule_error(
                state,
                f"loop {stage.loops[loop].name} of {stage.name} is part of the intrinsic {stage.tensorized.intrinsic}",
                "Call tensorize last, when the loops inside are as the intrinsic needs them.",
                [loop],
            )
    if len(set(loops)) != len(loops):
        raise schedule_error(state, f"a loop of {stage.name} is named twice", "Name each loop once.", loops)
    return stage


def require_serial(state: ScheduleState, stage: Stage, loop: str, verb: str) -> None:
    """Refuse what would lose an annotation."""
    kind = stage.kind(loop)
    if kind != "serial":
        name = stage.loops[loop].name
        raise schedule_error(
            state,
            f"cannot {verb} loop {name} of {stage.name}: it is {kind} already",
            f"A loop has one annotation, its last step: split or fuse {name} before, and annotate what results.",
            [loop],
        )


def require_no_accumulation(state: ScheduleState, stage: Stage, loop: str) -> None:
    """Refuse what would take away the loop along which the stage accumulates."""
    if loop == stage.along:
        raise schedule_error(
            state,
            f"{stage.name} accumulates along loop {stage.loops[loop].name}, which stays one loop",
            "Split, fuse and round up the loops over other axes.",
            [loop],
        )


def require_unattached(state: ScheduleState, stage: Stage, loop: str, verb: str) -> None:
    """Refuse what would take away the loop that another stage is computed at, or that something is noted at."""
    name = stage.loops[loop].name
    prefetched = [p.tensor for p in stage.prefetches if p.loop == loop]
    if prefetched or loop in stage.notes:
        what = f"{prefetched[0]} is prefetched" if prefetched else f"{stage.notes[loop][0][0]!r} is noted"
        raise schedule_error(
            state,
            f"cannot {verb} loop {name} of {stage.name}: {what} at it",
            f"{verb.capitalize()} before.",
            [loop],
        )
    attached = state.attached(stage.name, loop)
    if attached:
        raise schedule_error(
            state,
            f"cannot {verb} loop {name} of {stage.name}: {attached[0].name} is computed at it",
            f"{verb.capitalize()} first, then compute {attached[0].name} at the loop that results: "
            f"s[{literal(attached[0].name)}].compute_root() takes it out.",
            [loop],
        )
