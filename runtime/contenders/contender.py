"""One contender, in a process of its own, on the model and the inputs in a folder; see ``rounds.serve``.

It leaves the outputs of its first run there, for the comparison.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from ...base.child_python import python_command
from ..arrays import Array
from .peers import LIBRARY, OURS, PEERS, Prepare, prepare_loopwright
from .rounds import Facts, Run, serve
from .stored_arrays import read_arrays, write_arrays

INPUTS = "inputs.npz"


def prepared(name: str, prepare: Prepare, model: Path, folder: Path, threads: int) -> tuple[Run, Facts]:
    """What to call, which gives the outputs; those of a first run are in ``<name>.npz`` of the folder then, by their
    positions."""
    run = prepare(model, read_arrays(folder / INPUTS), threads)
    write_arrays(folder / f"{name}.npz", {str(k): _storable(output) for k, output in enumerate(run())})
    return run, {}


def command(name: str, model: Path, threads: int) -> list[str]:
    """The command of a contender of this package."""
    return python_command(f"from {__name__} import main\nmain()", name, str(model), str(threads))


def main() -> None:
    """What ``command`` runs: asked to load, it is told the folder."""
    name, model, threads = sys.argv[1:]

    def prepare(request: str) -> tuple[Run, Facts]:
        folder = Path(request)
        if name == OURS:
            return prepared(name, prepare_loopwright, folder / LIBRARY, folder, int(threads))
        return prepared(name, PEERS[name], Path(model), folder, int(threads))

    serve(prepare)


def _storable(output: Any) -> Array:
    """An array or a tensor, of bfloat16 its values in float32."""
    if "bfloat16" in str(output.dtype):
        output = output.astype(np.float32) if isinstance(output, np.ndarray) else output.float()
    return np.asarray(output)
