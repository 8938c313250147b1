"""What a model costs beside running: ``costs.py <what> <folder>`` prints seconds and bytes as JSON, measured in a
process that does nothing else.

``what`` is ``compile`` (ours, from nothing, and the library saved), ``load`` (ours, saved), ``onnxruntime`` or
``openvino`` (a session from the model). Bytes are the most that were resident, above what the imports left.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIBRARY = "model.lwlib"
KINDS = ("compile", "load", "onnxruntime", "openvino")


def measured(kind: str, folder: Path) -> dict[str, float]:
    """Seconds, bytes and what else is known, from a process of its own. Ours compiles with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "LOOPWRIGHT_CACHE_DIR": cache}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # installed packages have byte code
        command = [sys.executable, str(HERE / "costs.py"), kind, str(folder)]
        run = subprocess.run(command, env=environment, check=False, stdout=subprocess.PIPE, text=True)
    return json.loads(run.stdout.splitlines()[-1]) if run.returncode == 0 else {}


def _ours_compiled(folder: Path) -> tuple[Callable[[], object], dict[str, float]]:
    import loopwright as lw

    library = lw.compile(str(folder / "model.onnx"))

    def save() -> None:
        library.save(folder / LIBRARY)

    return save, {"constants": float(sum(c.nbytes for c in library.model.constants))}


def _ours_loaded(folder: Path) -> tuple[Callable[[], object], dict[str, float]]:
    import loopwright as lw

    engine = lw.Engine(lw.load(folder / LIBRARY)).init()
    return lambda: engine(_inputs(folder)), {}


def _onnxruntime(folder: Path) -> tuple[Callable[[], object], dict[str, float]]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(folder / "model.onnx", options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, _inputs(folder)), {}


def _openvino(folder: Path) -> tuple[Callable[[], object], dict[str, float]]:
    import openvino

    compiled = openvino.Core().compile_model(folder / "model.onnx", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return lambda: compiled(_inputs(folder)), {}


def _inputs(folder: Path) -> dict[str, object]:
    import numpy as np

    with np.load(folder / "inputs.npz") as stored:
        return {key: stored[key] for key in stored.files}


def _import(kind: str) -> None:
    """What is there before the measurement begins, numpy and first use included."""
    import numpy as np

    np.random.default_rng(0)
    if kind == "onnxruntime":
        import onnxruntime  # noqa: F401
    elif kind == "openvino":
        import openvino

        openvino.Core().available_devices  # noqa: B018  # loads the plugin
    else:
        import loopwright as lw

        lw.resolve_target("native")


def _resident(field: str) -> int:
    """Bytes of a field of /proc/self/status: VmRSS, or VmHWM for the most so far."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return 1024 * int(re.search(rf"^{field}:\s+(\d+) kB", status, re.MULTILINE)[1])


def main() -> None:
    kind, folder = sys.argv[1], Path(sys.argv[2])
    _import(kind)
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # the peak counts from here
    before = _resident("VmRSS")
    prepare = {"compile": _ours_compiled, "load": _ours_loaded, "onnxruntime": _onnxruntime, "openvino": _openvino}
    start = time.perf_counter()
    use, facts = prepare[kind](folder)
    seconds = time.perf_counter() - start
    use()
    print(json.dumps({"seconds": seconds, "bytes": _resident("VmHWM") - before, **facts}))


if __name__ == "__main__":
    main()
