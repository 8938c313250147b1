"""What one step has established and another may break: checked on the state after each step."""

from __future__ import annotations

from .regions import Inference, infer
from .report import schedule_error
from .state import Inlined, ScheduleState, Stage


def check_invariants(state: ScheduleState, before: ScheduleState) -> None:
    """Raise ``ScheduleError`` where something no longer holds; ``before`` is what the error shows."""
    laid_out = [s for s in state.stages if s.layout is not None and not isinstance(s.place, Inlined)]
    if laid_out:
        known = infer(state)
        for stage in laid_out:
            _check_layout(stage, known, before)


def _check_layout(stage: Stage, known: Inference, before: ScheduleState) -> None:
    """Each element that is computed has a place of its own in memory."""
    layout, extents = stage.layout, known.regions[stage.name].extents
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
