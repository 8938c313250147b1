"""Progress of a subcommand on the standard error: a bar in a terminal, lines that stay where the output is piped."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from rich.progress import Progress as Bars

from ..compiler.model.progress import Progress, lines
from ..compiler.model.progress_display import terminal_bars

Tasks: TypeAlias = Callable[[str], Progress]
"""Begins a task, and gives what is called as it goes on."""


@contextmanager
def progress_shown(*, piped: bool) -> Iterator[Tasks]:
    """Show the progress of tasks, one at a time: as a bar, which goes in the end, where the output is a terminal. Where
    it is ``piped``, as lines if this is asked for, else not at all."""
    terminal = sys.stderr.isatty() and sys.stdout.isatty()  # rich would take FORCE_COLOR for a terminal
    if piped and not terminal:
        yield lambda title: lines(title, sys.stderr, time.monotonic)
        return
    with terminal_bars(disable=not sys.stderr.isatty()) as bars:
        yield lambda title: _bar(title, bars)


def _bar(title: str, bars: Bars) -> Progress:
    for earlier in bars.task_ids:
        bars.remove_task(earlier)
    task = bars.add_task(title, total=None)
    return lambda done, total, _: bars.update(task, completed=done, total=total)
