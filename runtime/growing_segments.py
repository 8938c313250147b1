"""The segments of memory that loops have grow while they run (``artifact/segment_table.py``).

Mutable: belongs to one executor, whose runs come one after the other. Native code calls Python only where a segment
must be larger than in all runs before.
"""

from __future__ import annotations

import ctypes
import struct

import numpy as np

from ..artifact.segment_table import NEEDED, segment_word, table_words
from ..base.addresses import address_of
from ..base.aligned import ARENA_ALIGNMENT
from ..base.errors import OutOfMemoryError
from ..base.idle_memory import IDLE_RUNS, is_ample
from ..base.weak_method import while_alive
from ..codegen.abi import SEGMENTS
from .arrays import Array
from .stage_memory import Claim

_GROW = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_WORD = 8


class GrowingSegments:
    """``claim`` raises ``OutOfMemoryError`` where the model ``name`` may not take so many bytes for all of ``count``
    segments, which ``take_error`` then has."""

    def __init__(self, name: str, count: int, claim: Claim) -> None:
        self._name = name
        self._claim = claim
        self._count = count
        self._table = np.zeros(table_words(count), np.int64)
        self._segments: dict[int, Array] = {}
        self._runs = 0
        self._error: BaseException | None = None
        grow = while_alive(self._grow)  # the callback must not keep what keeps it
        self._callback = _GROW(lambda owner, number, size, kept: grow(number, size, kept))
        self._table[0] = ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    @property
    def nbytes(self) -> int:
        """The memory that is held, whether a run is on or not."""
        return sum(segment.nbytes for segment in self._segments.values())

    def context(self, threads: bytes) -> bytes:
        """The context of a run that tells where the table is, of one that tells the number of threads."""
        return threads.ljust(SEGMENTS * _WORD, b"\0") + struct.pack("q", address_of(self._table))

    def count_run(self) -> None:
        """Note that a run is over. Of many, segments that were much larger than all of these needed are given back."""
        self._runs += 1
        if self._runs < IDLE_RUNS:
            return
        self._runs = 0
        for number in list(self._segments):
            word = segment_word(number)
            if is_ample(int(self._table[word + 1]), int(self._table[word + NEEDED])):
                self._forget(number)
            self._table[word + NEEDED] = 0
        self._claim(self.nbytes)

    def drop(self) -> None:
        """Give all of it back; the next run has it anew."""
        self._segments.clear()
        self._table[segment_word(0) :] = 0

    def take_error(self) -> BaseException | None:
        """Why memory was refused last."""
        error, self._error = self._error, None
        return error

    def _grow(self, number: int, size: int, kept: int) -> int | None:
        try:
            return self._grown(number, size, kept)
        except BaseException as error:  # none may cross native code: it is raised behind it
            self._error = error
            return None

    def _grown(self, number: int, size: int, kept: int) -> int:
        """The address of a segment that is twice as large as before, or as large as it has to be."""
        old = self._segments.get(number)
        doubled = max(size, 0 if old is None else 2 * (old.nbytes - ARENA_ALIGNMENT))
        try:
            return self._moved(number, doubled, kept)
        except OutOfMemoryError:
            if doubled == size:
                raise
            return self._moved(number, size, kept)

    def _moved(self, number: int, size: int, kept: int) -> int:
        old = self._segments.get(number)
        if not kept:
            self._forget(number)
        held = self.nbytes
        self._claim(held + size + ARENA_ALIGNMENT)
        try:
            segment: Array = np.empty(size + ARENA_ALIGNMENT, np.uint8)
        except MemoryError:
            raise OutOfMemoryError(f"{self._name}: there is no memory for {size} bytes that a loop makes") from None
        begin = -(-address_of(segment) // ARENA_ALIGNMENT) * ARENA_ALIGNMENT
        word = segment_word(number)
        if kept and old is not None:
            ctypes.memmove(begin, int(self._table[word]), kept)
        self._segments[number] = segment
        self._table[word : word + 2] = begin, size
        self._claim(self.nbytes)
        return begin

    def _forget(self, number: int) -> None:
        word = segment_word(number)
        self._table[word : word + 2] = 0
        self._segments.pop(number, None)
