"""How far work is that takes long, for people: a bar in a terminal or a notebook, lines where output is piped.

A bar is seen from the second second on. In a terminal it goes in the end; a notebook keeps a line of it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from threading import Lock, Timer
from typing import Protocol, TextIO, TypeAlias

from ...base.errors import RuntimeArgumentError

Progress: TypeAlias = Callable[[int, int, str], None]
"""Called with how many parts are done, of how many in all, and the name of the last one."""

UNSEEN_SECONDS = 1.0
"""What takes no longer shows no bar."""

LINE_SECONDS = 1.0
"""The least time between two lines that say how far work is."""


class Display(Protocol):
    """A bar that shows people how far work is. Its methods are called one at a time, from several threads."""

    def begin(self) -> None:
        """Show the bar for the first time."""

    def advance(self, done: int, total: int) -> None:
        """Show that so many parts are done; ``total`` is 0 while it is not known."""

    def end(self) -> None:
        """The work has ended, well or not."""


@contextmanager
def progress_shown(title: str, progress: Progress | bool | None) -> Iterator[Progress]:
    """What work is to call as it goes on. ``progress`` is that itself; or whether it is shown, under a title: None is
    where somebody is there to see it, in a terminal or a notebook.

    Raises ``RuntimeArgumentError`` for anything else.
    """
    if callable(progress):
        yield progress
        return
    if progress is not None and not isinstance(progress, bool):
        raise RuntimeArgumentError(
            f"progress should be a function of done, total and name, or True, False or None, found {progress!r}"
        )
    display = None if progress is False else _display(title)
    if display is None:
        yield lines(title, sys.stderr, time.monotonic) if progress else unseen
        return
    late = LateDisplay(display)
    try:
        yield late.advance
    finally:
        late.end()


def lines(title: str, stream: TextIO, clock: Callable[[], float]) -> Progress:
    """Says that work begins, how far it is once in a while, and that all of its parts are done."""
    print(title, file=stream, flush=True)
    said = clock()

    def advance(done: int, total: int, name: str) -> None:
        nonlocal said
        if done == total or clock() - said >= LINE_SECONDS:
            said = clock()
            print(f"{title}: {done} of {total}, {name}", file=stream, flush=True)

    return advance


class LateDisplay:
    """Mutable, under a lock: a display that begins when work has lasted for a while, or not at all."""

    def __init__(self, display: Display) -> None:
        self._display = display
        self._lock = Lock()
        self._begun = self._ended = False
        self._last = (0, 0)
        self._timer = Timer(UNSEEN_SECONDS, copy_context().run, [self.begin])  # which cell of a notebook is context
        self._timer.daemon = True
        self._timer.start()

    def begin(self) -> None:
        """Show it from now on, unless the work has ended."""
        with self._lock:
            if not self._begun and not self._ended:
                self._begun = True
                self._display.begin()
                self._display.advance(*self._last)

    def advance(self, done: int, total: int, name: str) -> None:
        """Pass on that so many parts are done, or remember it until the display begins."""
        with self._lock:
            self._last = done, total
            if self._begun and not self._ended:
                self._display.advance(done, total)

    def end(self) -> None:
        """The work has ended, well or not."""
        self._timer.cancel()
        with self._lock:
            self._ended = True
            if self._begun:
                self._display.end()


def unseen(done: int, total: int, name: str) -> None:
    """Do nothing: the progress of work that nobody watches."""


def _display(title: str) -> Display | None:
    """A bar where somebody is there to see it."""
    from .progress_display import NotebookDisplay, TerminalDisplay, in_notebook

    if in_notebook():
        return NotebookDisplay(title)
    return TerminalDisplay(title) if sys.stderr.isatty() else None  # rich would take FORCE_COLOR for a terminal
