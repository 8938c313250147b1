"""Memory of large outputs, which a later run has again when nobody has the array of it any more.

A system gives a process new memory page by page, as it is first written to, which takes longer than to write it. Small
arrays get what the C library has back from others; it gives the memory of large ones back to the system at once.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from ..base.addresses import address_of
from ..base.aligned import PAGE_BYTES
from .arrays import Array
from .dimensions import Shape

KEPT_FROM = 16 << 20
"""Bytes of the smallest output whose memory is kept. glibc keeps that of smaller ones."""


def _references(blocks: Sequence[object]) -> list[int]:
    """How many references there are to each of some objects, with those of the list and of this function."""
    return [sys.getrefcount(block) for block in blocks]


(_FREE,) = _references([object()])
"""So many references has a block that no array is made of."""


class OutputMemory:
    """Arrays for the outputs of one executor, of at least ``KEPT_FROM`` bytes each.

    Mutable: the blocks, at most as many as the outputs of the shapes that runs have now. Whoever runs the executor uses
    it alone.
    """

    def __init__(self) -> None:
        self._blocks: list[npt.NDArray[np.uint8]] = []
        self._sizes: list[int] = []

    @property
    def nbytes(self) -> int:
        """The memory that is kept for later runs, which no array is made of."""
        return sum(block.nbytes for block in self._free())

    def lay_out(self, sizes: Iterable[int]) -> None:
        """Be told of the bytes that the outputs of the next runs have; blocks of other sizes are let go of."""
        self._sizes = [size + PAGE_BYTES for size in sizes if size >= KEPT_FROM]
        self._blocks = [block for block in self._blocks if block.nbytes in self._sizes]

    def empty(self, shape: Shape, kind: np.dtype[np.generic]) -> Array:
        """An array that is not initialised, on a page; its elements are those of an earlier one that is gone, if any
        is."""
        size = math.prod(shape) * kind.itemsize + PAGE_BYTES
        block = next((block for block in self._free() if block.nbytes == size), None)
        if block is None:
            block = np.empty(size, np.uint8)
            self._blocks = [*self._blocks, block][-len(self._sizes) :]
        return np.ndarray(shape, kind, block.data, -address_of(block) % PAGE_BYTES)

    def _free(self) -> list[npt.NDArray[np.uint8]]:
        """The blocks that no array is made of."""
        counts = _references(self._blocks)
        return [block for block, count in zip(self._blocks, counts, strict=True) if count == _FREE]

    def drop(self) -> None:
        """Keep no memory; arrays that are in use keep theirs."""
        self._blocks = []
