"""The rules of a schedule: what one step has established and another may break."""

from __future__ import annotations

from collections.abc import Sequence

from ...base.errors import ScheduleError
from ...ir.visit import tensor_reads
from ...te.tensor import Tensor
from ..nest.inference import Inference
from ..nest.match_intrinsic import MismatchError
from ..nest.nesting import enclosing_loops
from ..nest.prefetches import UnknownReadsError
from ..nest.realize import check_fits
from ..nest.regions import infer
from ..report import schedule_error
from ..stage import At, Inlined, PrefetchAt, Stage
from ..state import ScheduleState
from .accumulation import check_accumulation
from .ragged import check_ragged_loops
from .rounding import check_rounding
from .shifted_tiles import check_shifted_tiles


def check_invariants(state: ScheduleState, before: ScheduleState) -> None:
    """Raise ``ScheduleError`` where something no longer holds. ``before`` is the state before the last step, in which
    all held, and what the error shows; or ``state`` itself, where all is to be checked."""
    for stage in state.stages:
        check_shifted_tiles(stage, before)
        _check_hinted_loops(stage, before)
        _check_tensorized_loops(stage, before)
    check_accumulation(state, before)
    check_ragged_loops(state, before)
    check_rounding(state, before)
    if any(s.layout is not None or s.prefetches for s in state.stages):
        known = infer(state)
        same_bounds = before is not state and state.answers["bounds"] is before.answers["bounds"]
        for stage in state.stages:
            if not (same_bounds and stage.layout is before.stage(stage.name).layout):
                _check_layout(stage, known, before)
            for prefetch in stage.prefetches:
                _check_prefetch(state, known, stage, prefetch, before)
    if any(s.tensorized is not None or s.prefetches for s in state.stages):
        try:
            check_fits(state)
        except MismatchError as error:
            raise _mismatch(error, state.stage(error.stage), before) from None
        except UnknownReadsError as error:
            raise _no_prefetch(state.stage(error.stage), error.prefetch, str(error), before) from None


def _check_hinted_loops(stage: Stage, before: ScheduleState) -> None:
    for loop in (*(p.loop for p in stage.prefetches), *stage.notes):
        if loop not in stage.leaves:
            raise schedule_error(
                before,
                f"the step would remove loop {stage.loops[loop].name} of {stage.name}, which has a prefetch or a note",
                "Call prefetch and annotate last.",
                [loop],
            )


def _check_tensorized_loops(stage: Stage, before: ScheduleState) -> None:
    if stage.tensorized is None:
        return
    name = stage.tensorized.intrinsic
    if stage.tensorized.loop not in stage.leaves:
        raise schedule_error(
            before,
            f"the step would take loops of {stage.name} away that are part of the intrinsic {name}",
            "Call tensorize last.",
            [stage.tensorized.loop],
        )
    if isinstance(stage.place, Inlined):
        raise schedule_error(
            before, f"cannot inline {stage.name}: {name} computes it, an intrinsic", "Inline it before tensorize."
        )
    for leaf in stage.leaves[: stage.leaves.index(stage.tensorized.loop)]:
        if stage.kind(leaf) == "vectorized":
            raise schedule_error(
                before,
                f"loop {stage.loops[leaf].name} of {stage.name} cannot be vectorized around the intrinsic {name}",
                "An intrinsic has vectors of its own; unroll the loop, or make it parallel.",
                [leaf],
            )


def _check_prefetch(
    state: ScheduleState, known: Inference, stage: Stage, prefetch: PrefetchAt, before: ScheduleState
) -> None:
    """What is prefetched is read or stored by the stage, in memory that there is."""
    source = state.stage(prefetch.tensor)
    outside = stage.leaves[: stage.leaves.index(prefetch.loop) + 1]
    if isinstance(stage.place, Inlined):
        problem = f"{stage.name} would be inlined, and has no loops then"
    elif isinstance(source.place, Inlined):
        problem = f"{source.name} is inlined, and has no memory"
    elif source is not stage and not _reads_one_of(known, stage, source.tensors):
        problem = f"{stage.name} does not read {source.name}"
    elif any(stage.kind(leaf) == "vectorized" for leaf in outside):
        problem = "it is vectorized, or inside a vectorized loop"
    elif (home := known.homes.get(source.name)) is not None and home not in [
        (s.name, leaf) for s, leaf in enclosing_loops(state, At(stage.name, prefetch.loop))[:-1]
    ]:
        problem = f"{source.name} lives in memory inside it, which is not there before"
    else:
        return
    raise _no_prefetch(stage, prefetch, problem, before)


def _reads_one_of(known: Inference, stage: Stage, tensors: Sequence[Tensor]) -> bool:
    return any(read.tensor in tensors for body in known.bodies[stage.name] for read in tensor_reads(body))


def _no_prefetch(stage: Stage, prefetch: PrefetchAt, problem: str, before: ScheduleState) -> ScheduleError:
    return schedule_error(
        before,
        f"{prefetch.tensor} cannot be prefetched at loop {stage.loops[prefetch.loop].name} of {stage.name}: {problem}",
        "Prefetch, last of all, a tensor that the stage reads and that is computed outside of the loop, "
        "at a loop around few cache lines.",
        [prefetch.loop],
    )


def _check_layout(stage: Stage, known: Inference, before: ScheduleState) -> None:
    """Each element that is stored has a place of its own in memory."""
    layout = stage.layout
    if layout is None or isinstance(stage.place, Inlined):
        return
    extents = known.memory[stage.name].extents
    box = ", ".join(map(str, extents))
    if layout.shape(extents, known.facts) is None:
        raise schedule_error(
            before,
            f"the layout of {stage.name}, {layout.text}, gives negative or unbounded indices for elements in ({box})",
            "Write it with +, *, // and % of the indices so that no result is below 0.",
        )
    if not layout.is_injective(extents):
        raise schedule_error(
            before,
            f"the layout of {stage.name}, {layout.text}, may put two of the ({box}) elements in one place",
            "Write down all digits of each index, as lambda i, j: (i // 8, j, i % 8) does; "
            "to join indices, multiply by the constant extent of those below: i * 16 + j.",
        )


def _mismatch(error: MismatchError, stage: Stage, before: ScheduleState) -> ScheduleError:
    assert stage.tensorized is not None
    loop = stage.tensorized.loop
    return schedule_error(
        before,
        f"{stage.tensorized.intrinsic} cannot take the place of loop {stage.loops[loop].name} of {stage.name}: {error}",
        "Split and reorder so that the loop and those inside it run over just the intrinsic's axes, "
        "and tensorize before what would change the computation.",
        [loop],
    )
