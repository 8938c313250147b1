"""Arrays by name in a file, for another process: as ``numpy.savez`` writes them, and of any name and dtype."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import ml_dtypes
import numpy as np

from ..arrays import Array


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write an ``.npz`` file; ``numpy.savez`` takes no names such as ``file``."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def read_arrays(path: Path) -> dict[str, Array]:
    """The arrays of an ``.npz`` file. Of bfloat16, which numpy does not know, it has the bytes: these are taken so."""
    with np.load(path, allow_pickle=False) as stored:
        return {name: _restored(stored[name]) for name in stored.files}


def _restored(array: Array) -> Array:
    return array.view(ml_dtypes.bfloat16) if array.dtype.kind == "V" and array.dtype.itemsize == 2 else array
