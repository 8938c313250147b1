"""Who waits for whose executors: functions of Python that engines run may call engines, and so wait for themselves.

Only calls of engines that run such functions are noted, since others come to an end by themselves. Mutable: there is
one table a process, in which each thread writes its own entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from ..base.errors import LoopwrightError
from .threads.fork_lock import ForkLock

Thread: TypeAlias = int


class HeldExecutors(Protocol):
    """A set of executors."""

    name: str

    @property
    def holders(self) -> Mapping[Any, Thread | None]:
        """The threads that have its executors. None: one is free, or on its way from or to a thread."""
        ...


class Waits:
    """``begin`` before a thread takes an executor; when it has one, or has not come to take one, its entry in
    ``waiting`` becomes None, by a plain store: see ``ExecutorSet``."""

    def __init__(self) -> None:
        self._lock = ForkLock()
        self.forget()

    def forget(self) -> None:
        """Forget all who wait, as none of them is there in a forked child."""
        self.waiting: dict[Thread, HeldExecutors | None] = {}

    def begin(self, thread: Thread, wanted: HeldExecutors, is_empty: Callable[[], bool]) -> None:
        """Note that a thread waits. Raises ``LoopwrightError`` where that would be for ever."""
        with self._lock.held:
            if is_empty() and not self._may_become_free(wanted, thread):
                count = len(wanted.holders)
                raise LoopwrightError(
                    f"a function that an engine runs calls {wanted.name}, of which it could wait for ever: calls that "
                    f"wait for this one hold {'the only executor' if count == 1 else f'all {count} executors'}: give "
                    "the engine more by executors="
                )
            self.waiting[thread] = wanted

    def _may_become_free(self, wanted: HeldExecutors, thread: Thread) -> bool:
        """Whether some executor is held by a thread that runs, or waits for what such a thread holds, and so on."""
        seen = {thread: wanted}
        open_sets = [wanted]
        while open_sets:
            for holder in list(open_sets.pop().holders.values()):
                if holder is None:
                    return True
                if holder not in seen:
                    waits_for = self.waiting.get(holder)
                    if waits_for is None:
                        return True
                    seen[holder] = waits_for
                    open_sets.append(waits_for)
        # Threads take executors meanwhile, but none begins to wait: those that still do have done nothing else.
        return any(self.waiting.get(other) is None for other in seen if other != thread)


waits = Waits()
