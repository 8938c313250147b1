"""The specialisations of a kernel function, each made once, whatever threads ask for it. Mutable, under locks."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from ..base.errors import RuntimeArgumentError
from ..runtime.threads.fork_lock import ForkLock
from .specialization import Specialization


class _Entry:
    """What is made under ``lock``, by the thread ``maker`` at present."""

    __slots__ = ("lock", "made", "maker")

    def __init__(self) -> None:
        self.lock = ForkLock()
        self.made: Specialization | None = None
        self.maker: int | None = None


class SpecializationCache:
    """A cache of at most ``capacity`` specialisations, those asked for last. ``name`` is that of the function, for
    errors."""

    def __init__(self, name: str, capacity: int) -> None:
        self._name = name
        self._capacity = capacity
        self._lock = ForkLock()
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Specialization]) -> Specialization:
        """The specialisation of that key, which ``make`` gives where there is none."""
        with self._lock.held:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            while len(self._entries) > self._capacity:
                self._entries.popitem(last=False)
        return entry.made or self._made(entry, make)

    def values(self) -> tuple[Specialization, ...]:
        """All that are kept, those asked for last at the end."""
        with self._lock.held:
            entries = tuple(self._entries.values())
        return tuple(entry.made for entry in entries if entry.made is not None)

    def _made(self, entry: _Entry, make: Callable[[], Specialization]) -> Specialization:
        own = threading.get_ident()
        if entry.maker == own:
            raise RuntimeArgumentError(f"kernel {self._name} calls itself with arrays like those that it is made for")
        with entry.lock.held:
            if entry.made is None:
                entry.maker = own
                try:
                    entry.made = make()
                finally:
                    entry.maker = None
            return entry.made
