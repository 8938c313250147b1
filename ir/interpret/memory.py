"""The memory that an interpreted program runs on, and the checks on each access: bounds, initialisation, races.

One ``Memory`` stands behind each ``buffer.data``: a flat array, and a bitmap of what has been written. A
``RaceTracker`` watches one run of a parallel or vectorized loop.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy.typing as npt

from ...base.dataclass import dataclass


class Race(Exception):  # noqa: N818 - a signal to the caller, who knows the names to report
    """Iteration ``other`` of the tracked loop has touched (``wrote`` or read) what this access touches."""

    def __init__(self, tracker: RaceTracker, other: int, wrote: bool) -> None:
        super().__init__()
        self.tracker = tracker
        self.other = other
        self.wrote = wrote


@dataclass(slots=True, eq=False)
class Memory:
    """Memory behind one ``data`` variable, mutable. ``written`` is None where everything counts as written (arguments).

    ``depth`` is the number of tracked loops that were running when it was allocated: to those inside, it is shared.
    """

    array: npt.NDArray[Any]
    written: bytearray | None
    depth: int
    writable: bool = True


@dataclass(slots=True, eq=False)
class RaceTracker:
    """Which iteration of one run of a loop wrote and read each element, mutable. ``iteration`` is the current one."""

    label: str
    iteration: int = 0
    writers: dict[tuple[Memory, int], int] = field(default_factory=dict)
    readers: dict[tuple[Memory, int], tuple[int, int]] = field(default_factory=dict)

    def read(self, memory: Memory, element: int) -> None:
        """Note that the current iteration reads an element. Raises ``Race`` if another iteration has written it."""
        key = memory, element
        writer = self.writers.get(key, self.iteration)
        if writer != self.iteration:
            raise Race(self, writer, wrote=True)
        first, last = self.readers.get(key, (self.iteration, self.iteration))
        if last != self.iteration:
            self.readers[key] = first, self.iteration
        else:
            self.readers.setdefault(key, (first, last))

    def write(self, memory: Memory, element: int) -> None:
        """Note that the current iteration writes an element. Raises ``Race`` if another iteration has written or read
        it."""
        key = memory, element
        writer = self.writers.setdefault(key, self.iteration)
        if writer != self.iteration:
            raise Race(self, writer, wrote=True)
        for reader in self.readers.get(key, ()):
            if reader != self.iteration:
                raise Race(self, reader, wrote=False)
