"""Errors of the passes: the loop nest, the culprit marked, then the reason."""

from __future__ import annotations

from ...base.errors import ScheduleError
from ...ir.printer import stmt_text
from ...ir.stmt import Stmt


def loop_error(inside: Stmt, culprit: Stmt, message: str) -> ScheduleError:
    """An error that shows ``inside`` with an arrow at the culprit."""
    return ScheduleError(f"{message}\n\n{stmt_text(inside, lambda stmt: '# <-- here' if stmt is culprit else None)}")
