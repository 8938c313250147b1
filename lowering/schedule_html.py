"""The view of a schedule in a notebook: its loop nest as it stands, what it decided, and the steps that made it."""

from __future__ import annotations

from collections.abc import Iterable

from ..base.html.code import code
from ..base.html.markup import Markup, fold
from ..base.html.table import Column, table
from ..base.html.view import view
from ..base.quantities import count_text
from .decisions import Decision, values_text
from .schedule import Schedule


def schedule_html(schedule: Schedule) -> str:
    """The loop nest with the warnings above it; decisions by name, and the steps, folded."""
    count = len(schedule.trace)
    decided = schedule.decisions
    steps = code(str(schedule.trace), "python", "print(schedule.trace)")
    return view(
        f"Schedule of {', '.join(schedule.state.outputs)}",
        code(str(schedule), "loops", "print(schedule)"),
        *([fold(count_text(len(decided), "decision"), _decisions_table(decided))] if decided else []),
        *([fold(count_text(count, "step"), steps)] if count else []),
    )


def _decisions_table(decided: Iterable[Decision]) -> Markup:
    columns = [Column("name"), Column("value"), Column("default"), Column("legal values"), Column("reorders a sum")]
    rows = (
        (d.name, repr(d.value), repr(d.default), values_text(d.legal), "yes" if d.reorders_sum else "") for d in decided
    )
    return table(columns, rows, "schedule.decisions")
