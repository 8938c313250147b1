"""One contender, in a process of its own: ``contender.py <name> <threads> [precision]``; see ``rounds.serve``.

It is given folders with ``model.onnx`` and ``inputs.npz``, runs the model as its library does that best, and leaves its
outputs of the first run there as ``<name>.npz``, for the comparison.
"""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path

import numpy as np
from rounds import Facts, Run, serve

NAMES = ("loopwright", "onnxruntime", "openvino", "torch", "numpy", "numba")


def prepare(name: str, folder: Path, threads: int, precision: str) -> tuple[Run, Facts]:
    """What to call, which gives the outputs. Each module of ``peers`` has ``prepare(path, inputs, threads)``."""
    with np.load(folder / "inputs.npz") as stored:
        inputs = {key: stored[key] for key in stored.files}
    peer = importlib.import_module(f"peers.{name}")
    start = time.perf_counter()
    options = {"precision": precision} if name == "loopwright" else {}
    run = peer.prepare(folder / "model.onnx", inputs, threads, **options)
    seconds = time.perf_counter() - start
    np.savez(folder / f"{name}.npz", *(np.asarray(output) for output in run()))
    return run, {"prepare_seconds": seconds}


def main() -> None:
    name, threads, precision = (*sys.argv[1:], "standard")[:3]
    serve(lambda folder: prepare(name, Path(folder), int(threads), precision))


if __name__ == "__main__":
    main()
