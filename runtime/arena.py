"""The arena of an executor: memory for the intermediates of its runs, which is given back when runs need much less.

Mutable: belongs to one executor, whose runs come one after the other.
"""

from __future__ import annotations

import numpy as np

from ..base.addresses import address_of
from ..base.aligned import ARENA_ALIGNMENT
from ..base.errors import OutOfMemoryError
from ..base.idle_memory import IDLE_RUNS, is_ample


class Arena:
    """``reserve`` has memory for a run. ``used`` are the bytes that the last one needed, ``nbytes`` those that are
    held. While ``is_ample`` says that these are many times as many, each run calls ``count_run``."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.drop()

    @property
    def nbytes(self) -> int:
        """The memory that is held, whether a run is on or not."""
        return self._memory.nbytes

    def drop(self) -> None:
        """Give all memory back."""
        self._memory = np.empty(0, np.uint8)
        self.used = 0
        self.is_ample = False
        self._idle = 0

    def reserve(self, size: int) -> int:
        """The address of ``size`` bytes, which begin on a cache line."""
        size += ARENA_ALIGNMENT
        if self.nbytes < size:
            self.drop()  # before there is more
            try:
                self._memory = np.empty(size, np.uint8)
            except MemoryError:
                raise OutOfMemoryError(f"{self._name}: there is no memory for its arena") from None
        self.used = size
        self.is_ample = is_ample(self.nbytes, size)
        if not self.is_ample:
            self._idle = 0
        return -(-address_of(self._memory) // ARENA_ALIGNMENT) * ARENA_ALIGNMENT

    def count_run(self) -> bool:
        """Note a run that needed little of the memory: whether so many have in a row that it is to be given back."""
        self._idle += 1
        return self._idle >= IDLE_RUNS
