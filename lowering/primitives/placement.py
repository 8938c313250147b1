"""Primitives that say where a stage is computed: compute_at, reverse_compute_at, compute_inline, compute_root."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from ...base.dataclass import dataclass
from ...te.tensor import ExternOp, PlaceholderOp, StateOp
from ..nest.nesting import is_inside
from ..nest.scans import scan_of
from ..report import literal, schedule_error
from ..rules.annotations import check_annotated_extents
from ..rules.loops import stage_with_changeable_loops, stage_with_loops
from ..rules.placement import call_inside, check_placements, loop_around_readers, placed_by, readers
from ..stage import After, At, Inlined, Root, Stage
from ..state import ScheduleState
from ..step import StageStep


def _refuse_output(state: ScheduleState, stage: Stage, verb: str) -> None:
    if stage.name in state.outputs:
        raise schedule_error(
            state,
            f"cannot {verb} {stage.name}: it is an output of the schedule, which must be written whole",
            f"Call {verb} on a stage that other stages read, such as cache_write gives an output; or compute it in the "
            "loops of a stage that it reads, by reverse_compute_at.",
        )


def _placeable(state: ScheduleState, name: str, verb: str) -> Stage:
    """The stage, after a check that it is computed, and that where is not for a scan to say."""
    stage = state.stage(name)
    if isinstance(stage.op, (PlaceholderOp, StateOp)):
        stage.require_compute()
    scan = scan_of(state, stage)
    if scan is not None:
        raise schedule_error(
            state,
            f"cannot {verb} {stage.name}: it writes the output of the scan {scan.name}, in its place there",
            f"Schedule the loops of {stage.name}, or place {scan.name}.",
            [*stage.leaves, *scan.leaves],
        )
    return stage


def _refuse_own_loop(state: ScheduleState, stage: Stage, target: Stage, loop: str) -> None:
    """Refuse to place a stage in its own nest, or in one that stands in it."""
    if target.name == stage.name or any(is_inside(state, target, stage.name, leaf) for leaf in stage.leaves[:1]):
        whose = "its own" if target.name == stage.name else f"{target.name}, which is computed in loops of {stage.name}"
        raise schedule_error(
            state,
            f"cannot compute {stage.name} at a loop of {whose}",
            f"Name a loop of a stage that is not computed in loops of {stage.name}.",
            [loop],
        )


def _refuse_vectorized(state: ScheduleState, step: ComputeAt | ReverseComputeAt, stage: Stage, target: Stage) -> None:
    outside = target.leaves[: target.leaves.index(step.loop) + 1]
    vector = next((k for k, leaf in enumerate(outside) if target.kind(leaf) == "vectorized"), None)
    if vector is not None:
        call = placed_by(stage, step.primitive, target.name, outside[max(vector - 1, 0)])
        around = f"Take a loop outside the vectorized one: {call}."
        raise schedule_error(
            state,
            f"cannot compute {stage.name} at loop {target.loops[step.loop].name} of {target.name}: it is inside a "
            "vectorized loop",
            around if vector else f"No loop stands outside it: compute {stage.name} at the root.",
            [step.loop],
        )


def _advise_loop(state: ScheduleState, stage: Stage) -> str:
    """Where a stage could be computed for its readers, as a call."""
    found = loop_around_readers(state, stage)
    if found is None:
        return f"Its readers share no loop: leave {stage.name} at the root, or place them in one loop first."
    return f"A loop around all of its readers: {placed_by(stage, 'compute_at', *found)}."


def _advise_reader(state: ScheduleState, reader: Stage, step: ComputeAt) -> str:
    """How to bring a reader into the loop that was named, as a call."""
    call = call_inside(state, reader, step.target, step.loop)
    return "" if call is None else f" To bring {reader.name} into that loop: {call}."


@dataclass(frozen=True, slots=True, repr=False)
class ComputeAt(StageStep):
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
        target = stage_with_loops(state, self.target, (self.loop,))
        _refuse_output(state, stage, "compute_at")
        name = target.loops[self.loop].name
        _refuse_own_loop(state, stage, target, self.loop)
        for reader in readers(state, stage):
            if not is_inside(state, reader, self.target, self.loop):
                raise schedule_error(
                    state,
                    f"cannot compute {stage.name} at loop {name} of {target.name}: "
                    f"{reader.name} reads it outside that loop",
                    _advise_loop(state, stage) + _advise_reader(state, reader, self),
                    [self.loop],
                )
        _refuse_vectorized(state, self, stage, target)
        new = state.with_stage(replace(stage, place=At(self.target, self.loop)))
        if not readers(state, stage):
            raise schedule_error(state, f"no stage reads {stage.name}", "Leave it out of the schedule.")
        check_placements(new, state, f"compute {stage.name} at loop {name} of {target.name}")
        check_annotated_extents(new, self.stage, state)
        return new


@dataclass(frozen=True, slots=True, repr=False)
class ReverseComputeAt(StageStep):
    """Compute a stage inside a loop of its producer: in each iteration the part whose producers it has finished.

    So a tile of a product gets its bias and activation while it is in registers or cache (epilogue fusion). The stage
    may be an output. Stages whose readers are all in the loop need memory for one iteration only.

    Preconditions: the loop stands, neither it nor a loop around it is vectorized or runs over a reduction axis, and an
    iteration computes neighbouring elements of its stage. Where an iteration computes a part of a dimension only, the
    stage reads that dimension by one of its axes plus a constant, each element in one place. What it reads is computed
    before the loop, or in it. The loop's stage is not computed at a loop of another itself.

    Rewrite, ``s[D].reverse_compute_at(s[C], io)``::

        for io in range(4):                        for io in range(4):
            for ii in range(8):                        for ii in range(8):
                C[io * 8 + ii] = …            →            C[ii] = …
        for i in range(32):                            for i in range(8):
            D[i] = … C[i] …                                D[io * 8 + i] = … C[i] …
    """

    primitive: ClassVar[str] = "reverse_compute_at"

    target: str
    loop: str

    def apply(self, state: ScheduleState) -> ScheduleState:
        stage = _placeable(state, self.stage, "reverse_compute_at")
        stage.require_compute()  # an extern or a scan is computed whole
        target = stage_with_changeable_loops(state, self.target, (self.loop,))
        name = target.loops[self.loop].name
        _refuse_own_loop(state, stage, target, self.loop)
        _refuse_vectorized(state, self, stage, target)
        new = state.with_stage(replace(stage, place=After(self.target, self.loop)))
        check_placements(new, state, f"compute {stage.name} after its part of {target.name} at loop {name}")
        check_annotated_extents(new, self.stage, state)
        return new


@dataclass(frozen=True, slots=True, repr=False)
class ComputeInline(StageStep):
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
                _advise_loop(state, stage),
            )
        if attached := state.attached(stage.name):
            raise schedule_error(
                state,
                f"cannot compute_inline {stage.name}: {attached[0].name} is computed in its loops",
                f"Take that back first: s[{literal(attached[0].name)}].compute_root().",
            )
        for reader in readers(state, stage):
            if isinstance(reader.op, ExternOp):
                raise schedule_error(
                    state,
                    f"cannot compute_inline {stage.name}: the extern {reader.name} reads it from memory",
                    "Use compute_at.",
                )
        new = state.with_stage(replace(stage, place=Inlined()))
        check_placements(new, state, f"compute_inline {stage.name}")
        return new


@dataclass(frozen=True, slots=True, repr=False)
class ComputeRoot(StageStep):
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
