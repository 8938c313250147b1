"""Arrays at addresses that vectors are loaded from fastest: the constants of a model, which its kernels read most."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .buffer import ARENA_ALIGNMENT


def aligned(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array, contiguous and on a cache line; a copy if it is not. Where a vector is as wide as a line, each load of
    an array that begins elsewhere touches two of them."""
    if array.flags.c_contiguous and array.ctypes.data % ARENA_ALIGNMENT == 0:
        return array
    memory = np.empty(array.nbytes + ARENA_ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % ARENA_ALIGNMENT
    copy = np.ndarray(array.shape, array.dtype, memory.data, begin)
    copy[...] = array
    return copy
