"""One contender, in a process of its own: ``contender.py <name> <threads>``; see ``rounds.serve``.

It is given folders with ``model.onnx`` and ``inputs.npz``, runs the model as its library does that best, and leaves its
outputs of the first run there as ``<name>.npz``, for the comparison.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
from rounds import Facts, Run, serve


def prepare(name: str, folder: Path, threads: int) -> tuple[Run, Facts]:
    """What to call, which gives the outputs. Each module of ``peers`` has ``prepare(path, inputs, threads)``."""
    with np.load(folder / "inputs.npz") as stored:
        inputs = {key: stored[key] for key in stored.files}
    run = importlib.import_module(f"peers.{name}").prepare(folder / "model.onnx", inputs, threads)
    np.savez(folder / f"{name}.npz", *(np.asarray(output) for output in run()))
    return run, {}


def main() -> None:
    name, threads = sys.argv[1:]
    serve(lambda folder: prepare(name, Path(folder), int(threads)))


if __name__ == "__main__":
    main()
