"""Progress of a subcommand on the standard error: a bar in a terminal, lines that stay where the output is piped."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

Advance: TypeAlias = Callable[[int, int, str], None]
"""Called with how many parts are done, of how many in all, and the name of the last one."""

Tasks: TypeAlias = Callable[[str], Advance]
"""Begins a task, and gives what is called as it goes on."""

LINE_SECONDS = 1.0
"""The least time between two lines that say how far a task is."""


@contextmanager
def progress_shown(*, piped: bool) -> Iterator[Tasks]:
    """Show the progress of tasks, one at a time: as a bar, which goes in the end, where the output is a terminal. Where
    it is ``piped``, as lines if this is asked for, else not at all."""
    terminal = sys.stderr.isatty() and sys.stdout.isatty()  # rich would take FORCE_COLOR for a terminal
    if piped and not terminal:
        yield lambda title: _lines(title, sys.stderr, time.monotonic)
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as bars:
        yield lambda title: _bar(title, bars)


def _bar(title: str, bars: Progress) -> Advance:
    for earlier in bars.task_ids:
        bars.remove_task(earlier)
    task = bars.add_task(title, total=None)
    return lambda done, total, _: bars.update(task, completed=done, total=total)


def _lines(title: str, stream: TextIO, clock: Callable[[], float]) -> Advance:
    """Says that a task begins, how far it is once in a while, and that all of its parts are done."""
    print(title, file=stream, flush=True)
    said = clock()

    def advance(done: int, total: int, name: str) -> None:
        nonlocal said
        if done == total or clock() - said >= LINE_SECONDS:
            said = clock()
            print(f"{title}: {done} of {total}, {name}", file=stream, flush=True)

    return advance
