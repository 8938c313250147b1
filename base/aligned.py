"""Arrays at addresses that vectors are loaded from and stored to fastest: the constants of a model, and its outputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .addresses import address_of

ARENA_ALIGNMENT = 64
PAGE_BYTES = 4096
"""What the processor fetches ahead ends at a multiple of this. Addresses that differ by a multiple share a set of the
first cache, which holds 8 of them or a few more."""
MANY_PAGES = 64 * PAGE_BYTES
"""Arrays that are so large are copied to whole pages: of parts as long as pages, the processor fetches ahead all, and
nothing behind them."""
SQUARE = 64
"""The side of the squares that a transposed matrix is copied in."""


def aligned(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array, contiguous and on a cache line; a copy if it is not. Where a vector is as wide as a line, each load of
    an array that begins elsewhere touches two of them."""
    if array.flags.c_contiguous and address_of(array) % ARENA_ALIGNMENT == 0:
        return array
    copy = aligned_empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def contiguous(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array with its elements in order; a copy if they are not. A large transposed matrix is copied in squares, as
    numpy does not: the lines of the cache that a square touches stay there until all of it is copied."""
    if array.flags.c_contiguous:
        return array
    if array.ndim != 2 or not array.flags.f_contiguous or array.nbytes < MANY_PAGES:
        return np.ascontiguousarray(array)
    copy = np.empty(array.shape, array.dtype)
    for row in range(0, array.shape[0], SQUARE):
        for column in range(0, array.shape[1], SQUARE):
            part = slice(row, row + SQUARE), slice(column, column + SQUARE)
            copy[part] = array[part]
    return copy


def aligned_empty(shape: Sequence[int], kind: np.dtype[Any]) -> npt.NDArray[Any]:
    """A new array, not initialised, on a cache line; a large one on a page."""
    size = math.prod(shape) * kind.itemsize
    alignment = PAGE_BYTES if size >= MANY_PAGES else ARENA_ALIGNMENT
    memory = np.empty(size + alignment, np.uint8)
    return np.ndarray(shape, kind, memory, -address_of(memory) % alignment)
