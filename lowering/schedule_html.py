"""The view of a schedule in a notebook: its loop nest as it stands, and the steps that made it."""

from __future__ import annotations

from ..base.html.code import code
from ..base.html.markup import fold
from ..base.html.view import view
from ..base.quantities import count_text
from .schedule import Schedule


def schedule_html(schedule: Schedule) -> str:
    """The loop nest with the warnings above it, and the steps folded."""
    count = len(schedule.trace)
    steps = code(str(schedule.trace), "python", "print(schedule.trace)")
    return view(
        f"Schedule of {', '.join(schedule.state.outputs)}",
        code(str(schedule), "loops", "print(schedule)"),
        *([fold(count_text(count, "step"), steps)] if count else []),
    )
