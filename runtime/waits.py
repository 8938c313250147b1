"""Who waits for whose executors: functions of Python that engines run may call engines, and so wait for themselves.

Only calls of engines that run such functions are noted, since others come to an end by themselves. Mutable: under a
lock; there is one table a process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from ..ir.errors import LoopwrightError
from .threads.fork_lock import ForkLock

Thread: TypeAlias = int


class Held(Protocol):
    """A set of executors."""

    name: str

    @property
    def executors(self) -> Sequence[object]: ...


class Waits:
    """``begin`` before a thread takes an executor, ``took`` when it has one, ``end`` when it has given it back."""

    def __init__(self) -> None:
        self._lock = ForkLock()
        self.forget()

    def forget(self) -> None:
        """Nobody holds anything, as in a forked child."""
        self._holders: dict[Held, Counter[Thread]] = {}
        self._waiting: dict[Thread, Held] = {}
        self._held: Counter[Thread] = Counter()

    def holds(self, thread: Thread) -> bool:
        """Whether a thread has an executor: it is in a function that an engine runs."""
        return self._held[thread] > 0

    def begin(self, thread: Thread, wanted: Held, is_empty: Callable[[], bool]) -> None:
        """Note that a thread waits. Raises ``LoopwrightError`` where that would be for ever."""
        if not self.holds(thread):
            return  # nobody waits for it
        with self._lock:
            if is_empty() and not self._may_become_free(wanted, thread):
                count = len(wanted.executors)
                raise LoopwrightError(
                    f"a function that an engine runs calls {wanted.name}, of which it could wait for ever: calls that "
                    f"wait for this one hold {'the only executor' if count == 1 else f'all {count} executors'}: give "
                    "the engine more by executors="
                )
            self._waiting[thread] = wanted

    def took(self, thread: Thread, taken: Held) -> None:
        """Note that a thread has an executor."""
        with self._lock:
            self._waiting.pop(thread, None)
            self._held[thread] += 1
            self._holders.setdefault(taken, Counter())[thread] += 1

    def end(self, thread: Thread, given: Held, took: bool) -> None:
        """Note that a thread has given an executor back, or has not come to take one."""
        with self._lock:
            self._waiting.pop(thread, None)
            if took:
                _take_off(self._held, thread)
                _take_off(self._holders[given], thread)
                if not self._holders[given]:
                    del self._holders[given]

    def _may_become_free(self, wanted: Held, thread: Thread) -> bool:
        """Whether some executor is held by a thread that runs, or waits for what such a thread holds, and so on."""
        seen = {thread}
        open_sets = [wanted]
        while open_sets:
            each = open_sets.pop()
            holders = self._holders.get(each, Counter())
            if holders.total() < len(each.executors):
                return True  # one is on its way
            for holder in holders:
                if holder not in seen:
                    seen.add(holder)
                    if holder not in self._waiting:
                        return True
                    open_sets.append(self._waiting[holder])
        return False


def _take_off(counts: Counter[Thread], thread: Thread) -> None:
    counts[thread] -= 1
    if counts[thread] <= 0:
        del counts[thread]


waits = Waits()
