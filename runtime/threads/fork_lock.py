"""Locks that a forked child finds free: the threads that may have held them are not there."""

from __future__ import annotations

import os
import threading
import weakref
from types import TracebackType


class ForkLock:
    """As ``threading.Lock``, for ``with``. What it guards must be whole between any two statements, since a child may
    begin in the midst of them."""

    def __init__(self) -> None:
        self.renew()
        _locks.add(self)

    def renew(self) -> None:
        """Be free, whoever held it."""
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lock.locked():  # not in a child that began in here
            self._lock.release()


_locks: weakref.WeakSet[ForkLock] = weakref.WeakSet()


def _renew_all() -> None:
    for lock in list(_locks):
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
