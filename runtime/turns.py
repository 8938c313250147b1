"""Turns of threads that want the same few things: who takes a free one next. Engines hand out their executors so.

Threads wait in line, and are served in the order in which they came. But while nobody has waited for ``PATIENCE``,
whoever finds something free takes it, which is mostly the thread that has just given it back: to hand it to another
thread takes many times as long as a short call. After that nobody passes the first in line. So each of ``n`` threads
that come back again and again waits for ``PATIENCE``, and one turn of each other thread, at the most.

The first in line is woken when something becomes free, but not in vain, as far as that can be foreseen: a thread that
wakes asks for Python's lock, and until it gets that, which may take 5 ms, each short call takes several times as long.
Where those that gave something back came for it again at once the last times, the next one is expected to do so too.

Mutable. There is no lock, since an interrupt (``KeyboardInterrupt``) may come after any call and could leave it taken:
each change is one call of C, and what follows a change only wakes threads. Were that left out, they look by themselves.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from math import inf
from threading import get_ident
from typing import Generic, TypeVar

PATIENCE = 0.007
"""Seconds that a thread waits before nobody passes it any more. To serve each of eight threads once in that time, at
60 to 200 µs for each of them to wake and to fill its core's caches, takes about a fifth of it."""
AT_ONCE = 5e-5
"""Seconds in which a thread comes back at once: less than another one takes to wake."""
_IDLE = 0.001
"""Seconds after which the first in line, which nobody may pass, sees whether something lies idle that was expected to
be taken again at once."""
_LOST = 0.1
"""Seconds after which any thread looks again, in case that an interrupt kept another one from waking it."""

Thing = TypeVar("Thing")


class Ticket:
    """A place in line: from when on nobody may pass it, and the bell that wakes its thread, a lock that this waits to
    acquire."""

    __slots__ = ("_bell", "due")

    def __init__(self, now: float) -> None:
        self.due = now + PATIENCE
        self._bell = threading.Lock()
        self._bell.acquire()

    def ring(self) -> None:
        """Wake the thread, or keep it from falling asleep."""
        with suppress(RuntimeError):  # it has been rung, and the thread is yet to hear it
            self._bell.release()

    def sleep(self, now: float) -> bool:
        """Whether the bell rang: until it does, or the thread should look by itself."""
        left = self.due + _IDLE - now
        return self._bell.acquire(timeout=left if left > 0 else _LOST)

    @property
    def is_rung(self) -> bool:
        """Whether the thread is to wake."""
        return not self._bell.locked()


class Turns(Generic[Thing]):
    """The ``free`` things, and the ``line`` of threads that wait for one; ``take_idle`` takes one that is free whoever
    waits, and raises ``IndexError`` where none is. To take one in turn, and to give it back::

    thing = None
    try:
        for thing in turns.take:  # one round: no interrupt can come between taking a thing and having its name
            ...
    finally:
        if thing is not None:
            turns.free.append(thing)
            if turns.line:
                turns.call_next()
    """

    def __init__(self, things: Iterable[Thing], clock: Callable[[], float] = time.monotonic) -> None:
        self.free = deque(things)
        self.line: deque[Ticket] = deque()
        self.take: Iterator[Thing] = iter(self._take, None)
        self.take_idle: Iterator[Thing] = iter(self.free.popleft, None)
        self._wait_for_one: Iterator[Thing] = iter(self._wait, None)
        self._clock = clock
        # Of what was given back while others waited: the last thread that did so, when, and how long it was until that
        # thread came again, the last time and the one before. Infinite: something lay idle.
        self._giver, self._given = 0, 0.0
        self._pauses = (inf, inf)

    def is_empty(self) -> bool:
        """Whether nothing is free."""
        return not self.free

    def call_next(self) -> None:
        """Wake the first in line for what this thread has given back, unless it is expected to come for it at once."""
        self._giver, self._given = get_ident(), self._clock()
        try:
            first, (last, before) = self.line[0], self._pauses
            if (last > AT_ONCE and before > AT_ONCE) or self._given >= first.due:
                first.ring()
        except IndexError:  # nobody waits any more
            pass

    def _take(self) -> Thing | None:
        """One at once where that is allowed, else by standing in line."""
        try:
            if not self.line or self._may_pass(self.line[0]):
                for thing in self.take_idle:
                    return thing
        except IndexError:  # nothing is free, or nobody waits any more
            pass
        for thing in self._wait_for_one:  # again a loop of one round
            return thing
        return None

    def _may_pass(self, first: Ticket) -> bool:
        """Whether this thread may take something before the first in line."""
        now = self._clock()
        if self._giver == get_ident():
            self._pauses = now - self._given, self._pauses[0]
        return now < first.due

    def _wait(self) -> Thing:
        """Stand in line, until those before have theirs and something is free."""
        now = self._clock()
        ticket, thing, woken = Ticket(now), None, True
        try:
            try:
                self.line.append(ticket)
                self._call_first()  # it may not know of what is free, and reserved for it
                while True:
                    if self.line[0] is ticket:
                        try:
                            for thing in self.take_idle:
                                return thing
                        except IndexError:
                            pass
                    woken = ticket.sleep(now)
                    now = self._clock()
            finally:
                self.line.remove(ticket)
                if not woken:  # it lay idle, for nobody came back for it
                    self._pauses = inf, inf
                self._call_first()
        except BaseException:
            if thing is not None:
                self.free.append(thing)
            self._call_first()
            raise

    def _call_first(self) -> None:
        if self.free and self.line:
            with suppress(IndexError):
                self.line[0].ring()
