"""Ctrl-C while the command is still importing what it needs."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130
"""What shells give for a program that ctrl-c ended."""


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
