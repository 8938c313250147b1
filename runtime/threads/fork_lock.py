"""Locks that a forked child finds free: the threads that may have held them are not there."""

from __future__ import annotations

import os
import threading
import weakref


class ForkLock:
    """A lock that survives a fork, used as ``with lock.held``. What it guards must be whole between any two statements,
    since a child may begin in the midst of them; that child gives back a lock that nobody knows any more.

    The lock itself is entered, with no function of Python around it: a KeyboardInterrupt that came in there would find
    it taken, with nobody to give it back.
    """

    def __init__(self) -> None:
        self.renew()
        _locks.add(self)

    def renew(self) -> None:
        """Be free, whoever held it."""
        self.held = threading.Lock()


_locks: weakref.WeakSet[ForkLock] = weakref.WeakSet()


def _renew_all() -> None:
    for lock in list(_locks):
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
