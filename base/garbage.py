"""How often Python looks for cycles of garbage while something compiles, which makes many objects and few cycles."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

OBJECTS_BETWEEN_COLLECTIONS = 50_000
"""To look for cycles as often as Python does takes a tenth of the time of a compilation."""


class _RareCollections:
    """Mutable, under a lock: how many blocks there are in all threads, and what Python's threshold was before them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0
        self._before = 0

    def enter(self) -> None:
        with self._lock:
            self._blocks += 1
            if self._blocks > 1:
                return
            self._before, *others = gc.get_threshold()
            if 0 < self._before < OBJECTS_BETWEEN_COLLECTIONS:
                gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS, *others)

    def leave(self) -> None:
        with self._lock:
            self._blocks -= 1
            now, *others = gc.get_threshold()
            if not self._blocks and now == OBJECTS_BETWEEN_COLLECTIONS:
                gc.set_threshold(self._before, *others)


_all_threads = _RareCollections()


@contextmanager
def rare_collections() -> Iterator[None]:
    """While any thread is in the block, let more objects be made between two searches for cycles. A program that has
    searches switched off, or as rare, keeps that; and so does one that sets another number meanwhile."""
    _all_threads.enter()
    try:
        yield
    finally:
        _all_threads.leave()
