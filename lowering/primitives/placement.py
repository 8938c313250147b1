"""Primitives that say where a stage is computed: compute_at, compute_inline, compute_root."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from ...te.tensor import ExternOp, PlaceholderOp, StateOp
from ..regions import readers_of
from ..report import schedule_error
from ..scans import scan_of
from ..state import At, Before, Inlined, Root, ScheduleState, Stage
from ..step import Step, standing_loops
from .annotate import check_annotated_extents


def _refuse_output(state: ScheduleState, stage: Stage, verb: str) -> None:
    if stage.name in state.outputs:
        raise schedule_error(
            state,
            f"cannot {verb} {stage.name}: it is an output of the schedule, which must be written whole",
            f"Call {verb} on a stage that other stages read; cache_write gives an output such a stage.",
        )


def _placeable(state: ScheduleState, name: str, verb: str) -> Stage:
    """The stage, after a check that it is computed, and that where is not for a scan to say."""
    stage = state.stage(name)
    if isinstance(stage.op, (PlaceholderOp, StateOp)):
        stage.compute  # noqa: B018  raises
    scan = scan_of(state, stage)
    if scan is not None:
        raise schedule_error(
            state,
            f"cannot {verb} {stage.name}: it writes the output of the scan {scan.name}, in its place there",
            f"Schedule the loops of {stage.name}, or place {scan.name}.",
            [*stage.leaves, *scan.leaves],
        )
    return stage


def _is_inside(state: ScheduleState, stage: Stage, target: str, loop: str) -> bool:
    """Whether all of a stage's work happens inside the given loop of the target stage."""
    while stage.name != target:
        if isinstance(stage.place, Before):
            stage = state.stage(stage.place.stage)
            if stage.name == target:
                return False
            continue
        if not isinstance(stage.place, At):
            return False
        place, stage = stage.place, state.stage(stage.place.stage)
        if stage.name == target:
            return stage.leaves.index(place.loop) >= stage.leaves.index(loop)
    return True


def check_placements(state: ScheduleState, before: ScheduleState, verb: str) -> None:
    """Each stage that is computed at a loop has all its readers inside that loop; ``before`` is what an error shows."""
    for stage in state.stages:
        if not isinstance(stage.place, At):
            continue
        place = stage.place
        for reader in readers_of(state, stage):
            if not _is_inside(state, reader, place.stage, place.loop):
                loop = state.stage(place.stage).loops[place.loop].name
                raise schedule_error(
                    before,
                    f"cannot {verb}: {stage.name} is computed at loop {loop} of {place.stage}, but {reader.name} would "
                    "read it outside that loop",
                    f"Place {stage.name} after this step: s[{stage.name!r}].compute_root() takes compute_at back.",
                    [place.loop],
                )


@dataclass(frozen=True, slots=True)
class ComputeAt(Step):
    """Compute a stage inside a loop of another: in each iteration just the part that the iteration reads.

    Preconditions: the loop stands, every stage that reads this one runs inside that loop, the stage is no output and no
    input, and the loop is neither vectorized nor inside a vectorized loop.

    Rewrite, ``s[B].compute_at(s[C], i)``::

        for i in range(3):                 for i in range(3):
            for j in range(4):                 for j in range(4):
                B[i, j] = …           →            B[0, j] = …
        for i in range(3):                     for j in range(4):
            for j in range(4):                     C[i, j] = … B[0, j] …
                C[i, j] = … B[i, j] …
    """

    primitive: ClassVar[str] = "compute_at"

    target: str
    loop: str

    def apply(self, state: ScheduleState) -> ScheduleState:
        stage = _placeable(state, self.stage, "compute_at")
        target = standing_loops(state, self.target, (self.loop,))
        _refuse_output(state, stage, "compute_at")
        name = target.loops[self.loop].name
        if target.name == stage.name or isinstance(target.place, Inlined):
            raise schedule_error(
                state,
                f"cannot compute {stage.name} at a loop of {target.name}, which has no loops of its own to hold it",
                "Name a loop of a stage that reads it and is not inlined.",
            )
        for reader in readers_of(state, stage):
            if not _is_inside(state, reader, self.target, self.loop):
                raise schedule_error(
                    state,
                    f"cannot compute {stage.name} at loop {name} of {target.name}: "
                    f"{reader.name} reads it outside that loop",
                    f"Compute it at a loop around all of its readers, or compute {reader.name} inside {name} as well.",
                    [self.loop],
                )
        outside = target.leaves[: target.leaves.index(self.loop) + 1]
        if any(target.kind(leaf) == "vectorized" for leaf in outside):
            raise schedule_error(
                state,
                f"cannot compute {stage.name} at loop {name} of {target.name}: it is inside a vectorized loop",
                "Compute it at a loop outside the vectorized one.",
                [self.loop],
            )
        new = state.with_stage(replace(stage, place=At(self.target, self.loop)))
        if not readers_of(state, stage):
            raise schedule_error(state, f"no stage reads {stage.name}", "Leave it out of the schedule.")
        check_placements(new, state, f"compute {stage.name} at loop {name} of {target.name}")
        check_annotated_extents(new, self.stage, state)
        return new


@dataclass(frozen=True, slots=True)
class ComputeInline(Step):
    """Compute a stage's elements where they are read; it gets no memory and no loops.

    Preconditions: the stage is no input, no output, no reduction, and no stage is computed inside it.

    Rewrite::

        for i in range(8):
            B[i] = A[i] + 1.0          for i in range(8):
        for i in range(8):        →        C[i] = (A[i] + 1.0) * 2.0
            C[i] = B[i] * 2.0
    """

    primitive: ClassVar[str] = "compute_inline"

    def apply(self, state: ScheduleState) -> ScheduleState:
        stage = _placeable(state, self.stage, "compute_inline")
        reduction = stage.compute.reduction
        _refuse_output(state, stage, "compute_inline")
        if reduction is not None:
            raise schedule_error(
                state,
                f"cannot compute_inline {stage.name}: it is a reduction ({reduction.combiner.name}), "
                "which needs memory to accumulate in",
                "Use compute_at.",
            )
        if attached := state.attached(stage.name):
            raise schedule_error(
                state,
                f"cannot compute_inline {stage.name}: {attached[0].name} is computed in its loops",
                "Use compute_at.",
            )
        for reader in readers_of(state, stage):
            if isinstance(reader.op, ExternOp):
                raise schedule_error(
                    state,
                    f"cannot compute_inline {stage.name}: the extern {reader.name} reads it from memory",
                    "Use compute_at.",
                )
        new = state.with_stage(replace(stage, place=Inlined()))
        check_placements(new, state, f"compute_inline {stage.name}")
        return new


@dataclass(frozen=True, slots=True)
class ComputeRoot(Step):
    """Compute a stage whole, before the stages that read it: takes back compute_at and compute_inline.

    Preconditions: the stage is no input, and it reads no stage that is computed in the loops it would leave.
    """

    primitive: ClassVar[str] = "compute_root"

    def apply(self, state: ScheduleState) -> ScheduleState:
        stage = _placeable(state, self.stage, "compute_root")
        new = state.with_stage(replace(stage, place=Root()))
        check_placements(new, state, f"compute {stage.name} at the root")
        check_annotated_extents(new, self.stage, state)
        return new
