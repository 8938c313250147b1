"""Ctrl-C where its exception would be lost: while the command imports what it needs, and while objects are freed."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130
"""What shells give for a program that ctrl-c ended."""
_SOON = 0.01
"""Seconds after which an interrupt that was lost comes again. What frees objects is over by then, or loses it again."""


@contextmanager
def exits_silently() -> Iterator[None]:
    """A context in which Ctrl-C ends the process at once, without a message: an exception would come out in the middle
    of an import, where libraries print it or turn it into another. Python's own handler is put back at the end; any
    other stays."""
    replaced = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not replaced or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, _exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _exit(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


@contextmanager
def interrupts_delivered() -> Iterator[None]:
    """A context in which a ``KeyboardInterrupt`` of a finalizer, or of a callback of a weak reference, is raised
    in this thread once more: Python only tells of it there. The tables of expressions have such callbacks, and many
    expressions are freed at once."""
    told, own = sys.unraisablehook, threading.get_ident()

    def hook(unraisable: "sys.UnraisableHookArgs", /) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            again = threading.Timer(_SOON, signal.pthread_kill, (own, signal.SIGINT))
            again.daemon = True
            again.start()
        else:
            told(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = told
