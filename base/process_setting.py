"""A setting of the process that is another one while any thread is in a block."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

T = TypeVar("T")


class ProcessSetting(Generic[T]):
    """Mutable, under a lock: how many blocks there are in all threads, and what the setting was before them."""

    def __init__(self, read: Callable[[], T], write: Callable[[T], object]) -> None:
        self._read, self._write = read, write
        self._lock = threading.Lock()
        self._blocks = 0
        self._changed: tuple[T, T] | None = None
        """What the setting was, and what it became: a system may round what it is given."""

    @contextmanager
    def block(self, value: T, applies: Callable[[T], bool]) -> Iterator[None]:
        """Have the setting be ``value`` in the block, if that ``applies`` in place of what it is. The last block that
        ends puts back what was before the first one; what a program sets meanwhile stays."""
        self._enter(value, applies)
        try:
            yield
        finally:
            self._leave()

    def _enter(self, value: T, applies: Callable[[T], bool]) -> None:
        with self._lock:
            self._blocks += 1
            if self._blocks == 1:
                before = self._read()
                if applies(before):
                    self._write(value)
                    self._changed = before, self._read()

    def _leave(self) -> None:
        with self._lock:
            self._blocks -= 1
            if not self._blocks and self._changed is not None:
                before, ours = self._changed
                if self._read() == ours:
                    self._write(before)
                self._changed = None
