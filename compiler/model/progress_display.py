"""The bars of ``progress.py``: by rich in a terminal, as HTML in a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ...base.html.markup import element, joined
from ...base.html.view import styled
from ...base.quantities import seconds_text

UPDATE_SECONDS = 0.2
"""The least time between two updates of a notebook's bar."""


def terminal_bars(disable: bool = False) -> Progress:
    """Bars on the standard error, which go in the end."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True, disable=disable)


class TerminalDisplay:
    """Mutable: a bar in the terminal of the standard error."""

    def __init__(self, title: str) -> None:
        self._bars = terminal_bars()
        self._task = self._bars.add_task(title, total=None)

    def begin(self) -> None:
        """Show the bar; rich draws it until ``end``."""
        self._bars.start()

    def advance(self, done: int, total: int) -> None:
        """Set the bar to ``done`` of ``total`` parts; a total of 0 leaves open where the bar ends."""
        self._bars.update(self._task, completed=done, total=total or None)

    def end(self) -> None:
        """Take the bar off the terminal."""
        self._bars.stop()


class NotebookDisplay:
    """Mutable: a bar below the cell of a notebook; in the end it is a line that says how long the work has taken."""

    def __init__(self, title: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._title = title
        self._clock = clock
        self._start = self._updated = clock()
        self._count = ""

    def begin(self) -> None:
        """Show the title with a bar that says nothing of the end yet."""
        from IPython.display import display  # it is there where a notebook is

        self._shown = display(_html(self._title, " ", element("progress")), display_id=True)

    def advance(self, done: int, total: int) -> None:
        """Set the bar to ``done`` of ``total`` parts, at most every ``UPDATE_SECONDS``; a total of 0 changes
        nothing."""
        if total:
            self._count = f"{done} of {total}"
            if self._clock() - self._updated >= UPDATE_SECONDS:
                self._updated = self._clock()
                bar = element("progress", max=str(total), value=str(done))
                self._shown.update(_html(self._title, " ", bar, f" {self._count}"))

    def end(self) -> None:
        """Put a line with the number of parts and the time taken in place of the bar."""
        taken = seconds_text(self._clock() - self._start)
        self._shown.update(_html(f"{self._title}: ", ", ".join(filter(None, (self._count, taken)))))


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def _html(*parts: str) -> object:
    from IPython.display import HTML

    return HTML(styled(joined(parts)))
