"""What one step has established and another may break: checked on the state after each step."""

from __future__ import annotations

from ..ir.errors import ScheduleError
from .inference import Inference
from .match_intrinsic import MismatchError
from .ragged import check_ragged_loops
from .realize import realize
from .regions import infer
from .report import schedule_error
from .shifted_tiles import check_shifted_tiles
from .state import Inlined, ScheduleState, Stage


def check_invariants(state: ScheduleState, before: ScheduleState) -> None:
    """Raise ``ScheduleError`` where something no longer holds; ``before`` is what the error shows."""
    for stage in state.stages:
        check_shifted_tiles(stage, before)
    laid_out = [s for s in state.stages if s.layout is not None and not isinstance(s.place, Inlined)]
    if laid_out:
        known = infer(state)
        for stage in laid_out:
            _check_layout(stage, known, before)
    check_ragged_loops(state, before)
    tensorized = [s for s in state.stages if s.tensorized is not None]
    for stage in tensorized:
        _check_tensorized_loops(stage, before)
    if tensorized:
        try:
            realize(state)
        except MismatchError as error:
            raise _mismatch(error, tensorized, before) from None


def _check_tensorized_loops(stage: Stage, before: ScheduleState) -> None:
    assert stage.tensorized is not None
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


def _check_layout(stage: Stage, known: Inference, before: ScheduleState) -> None:
    """Each element that is stored has a place of its own in memory."""
    layout, extents = stage.layout, known.memory[stage.name].extents
    assert layout is not None
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


def _mismatch(error: MismatchError, tensorized: list[Stage], before: ScheduleState) -> ScheduleError:
    (stage,) = (s for s in tensorized if s.name == error.stage)
    assert stage.tensorized is not None
    loop = stage.tensorized.loop
    return schedule_error(
        before,
        f"{stage.tensorized.intrinsic} cannot take the place of loop {stage.loops[loop].name} of {stage.name}: {error}",
        "Split and reorder so that the loop and those inside it run over just the intrinsic's axes, "
        "and tensorize before what would change the computation.",
        [loop],
    )
