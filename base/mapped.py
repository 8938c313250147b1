"""Arrays that lie in mapped files, as weights of models may: what is read of them stays in memory until given back."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt


def in_memory(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array; a copy if it lies in a file, which somebody may write to."""
    return array if _map_of(array) is None else np.array(array)


def give_back(array: npt.NDArray[Any]) -> None:
    """Free the memory of an array in a file that is mapped to be read only: it is read from there again where somebody
    asks for it. Of other maps changes would be lost."""
    found = _map_of(array)
    if found is not None and _is_read_only(array) and hasattr(mmap, "MADV_DONTNEED"):
        found.madvise(mmap.MADV_DONTNEED)


def _map_of(array: npt.NDArray[Any]) -> mmap.mmap | None:
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, mmap.mmap) else None


def _is_read_only(array: npt.NDArray[Any]) -> bool:
    """Whether the map under an array is numpy's, of mode ``"r"``."""
    base: object = array
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap):
            return base.mode == "r"
        base = base.base
    return False
