"""Primitives that say how a loop runs: vectorize, unroll, parallel. A loop has one annotation, given once."""

from __future__ import annotations

from typing import ClassVar

from ...base.dataclass import dataclass
from ...ir.constants import const_int
from ...te.reducer_laws import factoring_counterexample
from ..nest.regions import extents_of
from ..report import literal, schedule_error
from ..rules.annotations import MOST_ITERATIONS, check_annotated_extents, check_vector_nesting
from ..rules.loops import require_serial, stage_with_changeable_loops, stage_with_loops
from ..stage import Stage
from ..state import ScheduleState
from ..step import StageStep


def _refuse_reduction(state: ScheduleState, stage: Stage, loop: str, primitive: str, verb: str) -> None:
    if not stage.loops[loop].reduce:
        return
    name = stage.loops[loop].name
    advice = f"{verb.capitalize()} a loop over a spatial axis."
    if _can_be_factored(state, stage):
        advice += f" Or make this one an axis of a stage of its own: {_factored(state, stage, loop, primitive)}"
    raise schedule_error(
        state,
        f"cannot {verb} loop {name} of {stage.name}: it runs over a reduction axis, whose iterations all write the "
        "same elements",
        advice,
        [loop],
    )


def _can_be_factored(state: ScheduleState, stage: Stage) -> bool:
    reduction = stage.compute.reduction
    return (
        reduction is not None
        and not state.attached(stage.name)
        and factoring_counterexample(reduction.combiner) is None
    )


def _factored(state: ScheduleState, stage: Stage, loop: str, primitive: str) -> str:
    """The calls that annotate a reduction loop legally: by way of rfactor, of a part of the loop if it is too long."""
    calls = []
    limit = MOST_ITERATIONS.get("vectorized") if primitive == "vectorize" else None
    extent = const_int(extents_of(state, stage)[loop])
    if limit is not None and (extent is None or extent > limit):
        calls.append(f"s[{literal(stage.name)}].split({literal(loop)}, factor=8)")
        loop = f"{stage.name}#{len(stage.loops) + 1}"
    partial = state.fresh_name(f"{stage.name}.rf")
    calls.append(f"s.rfactor({literal(stage.name)}, {literal(loop)})")
    calls.append(f"s[{literal(partial)}].{primitive}({literal(f'{partial}#0')})")
    return "; ".join(calls)


@dataclass(frozen=True, slots=True, repr=False)
class Vectorize(StageStep):
    """Run all iterations of a loop in lock step, as one vector operation.

    Preconditions: the loop stands, is serial, runs over a spatial axis, and has a constant extent of at most 256;
    no other loop of the stage is vectorized, no loop inside it is parallel, no stage is computed at it or at a loop
    inside it, and it is not the outer loop of a split with tail "shift".
    Guards inside become masks on the loads and stores.

    Rewrite::

        for i in range(8):        →    for i in vectorized(8):      (in the end: B[ramp(0, 1, 8)] = A[ramp(0, 1, 8)])
            B[i] = A[i]                    B[i] = A[i]
    """

    primitive: ClassVar[str] = "vectorize"

    loop: str

    def apply(self, state: ScheduleState) -> ScheduleState:
        stage = stage_with_changeable_loops(state, self.stage, (self.loop,))
        require_serial(state, stage, self.loop, "vectorize")
        _refuse_reduction(state, stage, self.loop, self.primitive, "vectorize")
        name = stage.loops[self.loop].name
        other = [loop for loop, kind in stage.kinds.items() if kind == "vectorized" and loop in stage.leaves]
        if other:
            raise schedule_error(
                state,
                f"cannot vectorize loop {name} of {stage.name}: {stage.loops[other[0]].name} is vectorized already",
                "One loop of a stage becomes its vector; fuse the two, or unroll the other.",
                [self.loop, *other],
            )
        inside = stage.leaves[stage.leaves.index(self.loop) :]
        if attached := [other for leaf in inside for other in state.attached(stage.name, leaf)]:
            raise schedule_error(
                state,
                f"cannot vectorize loop {name} of {stage.name}: {attached[0].name} is computed inside it",
                f"Compute {attached[0].name} at a loop outside {name}.",
                [self.loop],
            )
        new = state.with_kind(stage, self.loop, "vectorized")
        check_vector_nesting(new, self.stage, state)
        check_annotated_extents(new, self.stage, state)
        return new


@dataclass(frozen=True, slots=True, repr=False)
class Unroll(StageStep):
    """Write out the iterations of a loop one after the other.

    Preconditions: the loop stands, is serial, and has a constant extent of at most 4096.

    Rewrite::

        for i in range(2):        →    B[0] = A[0]
            B[i] = A[i]                B[1] = A[1]
    """

    primitive: ClassVar[str] = "unroll"

    loop: str

    def apply(self, state: ScheduleState) -> ScheduleState:
        stage = stage_with_loops(state, self.stage, (self.loop,))
        require_serial(state, stage, self.loop, "unroll")
        new = state.with_kind(stage, self.loop, "unrolled")
        check_annotated_extents(new, self.stage, state)
        return new


@dataclass(frozen=True, slots=True, repr=False)
class Parallel(StageStep):
    """Spread the iterations of a loop over threads.

    Preconditions: the loop stands, is serial, runs over a spatial axis, is not inside a vectorized loop, and is not the
    outer loop of a split with tail "shift", or made from it. Of nested parallel loops the outermost one is spread, the
    others run serially. Results do not depend on the number of threads.

    Rewrite::

        for i in range(8):        →    for i in parallel(8):
            B[i] = A[i]                    B[i] = A[i]
    """

    primitive: ClassVar[str] = "parallel"

    loop: str

    def apply(self, state: ScheduleState) -> ScheduleState:
        stage = stage_with_changeable_loops(state, self.stage, (self.loop,))
        require_serial(state, stage, self.loop, "parallelise")
        _refuse_reduction(state, stage, self.loop, self.primitive, "parallelise")
        new = state.with_kind(stage, self.loop, "parallel")
        check_vector_nesting(new, self.stage, state)
        return new
