"""One contender, in a process of its own: ``contender.py <name> <threads>``; see ``rounds.serve``.

It is given folders with ``model.onnx`` and ``inputs.npz``, runs the model as its library does that best, and leaves its
outputs of the first run there as ``<name>.npz``, for the comparison. Each module of ``peers`` has
``prepare(path, inputs, threads)``.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from loopwright.runtime.contenders.contender import prepared
from loopwright.runtime.contenders.rounds import Facts, Run, serve


def main() -> None:
    name, threads = sys.argv[1:]

    def prepare(folder: str) -> tuple[Run, Facts]:
        made = importlib.import_module(f"peers.{name}").prepare
        return prepared(name, made, Path(folder) / "model.onnx", Path(folder), int(threads))

    serve(prepare)


if __name__ == "__main__":
    main()
