"""One contender, in a process of its own: ``contender.py <name> <threads>``; see ``rounds.serve``.

It is given folders with ``model.onnx`` and ``inputs.npz``, runs the model as its library does that best, and leaves its
outputs of the first run there as ``<name>.npz``, for the comparison.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from rounds import Facts, Run, serve


def prepare(name: str, folder: Path, threads: int) -> tuple[Run, Facts]:
    """What to call, which gives the outputs. Each module of ``peers`` has ``prepare(path, inputs, threads)``."""
    with np.load(folder / "inputs.npz") as stored:
        inputs = {key: _restored(stored[key]) for key in stored.files}
    run = importlib.import_module(f"peers.{name}").prepare(folder / "model.onnx", inputs, threads)
    np.savez(folder / f"{name}.npz", *(_storable(output) for output in run()))
    return run, {}


def _restored(array: np.ndarray) -> np.ndarray:
    """As it was stored, which of bfloat16 has left the bytes only."""
    return array.view(ml_dtypes.bfloat16) if array.dtype.kind == "V" else array


def _storable(output: Any) -> np.ndarray:
    """An array or a tensor, of bfloat16 its values in float32."""
    if "bfloat16" in str(output.dtype):
        output = output.astype(np.float32) if isinstance(output, np.ndarray) else output.float()
    return np.asarray(output)


def main() -> None:
    name, threads = sys.argv[1:]
    serve(lambda folder: prepare(name, Path(folder), int(threads)))


if __name__ == "__main__":
    main()
