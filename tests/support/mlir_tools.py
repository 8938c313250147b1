"""The tools of MLIR as the tests use them: xDSL reads and verifies, mlir-opt verifies and lowers, the result runs.

Many modules go through one call of a tool, since most of the time is its start.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import needed_tools
import numpy as np

ROOT = Path(__file__).parents[2]
SEPARATOR = "\n// -----\n"
PIPELINES = re.findall(r"--pass-pipeline='builtin\.module\((.*)\)'", (ROOT / "docs" / "mlir.md").read_text())
LOWERING, BUFFERIZATION = PIPELINES
"""As the documentation gives them: from the level loops to LLVM's dialect; from linalg to loops, where tensors become
memrefs, and results parameters behind the inputs."""
RUNNER = Path(__file__).with_name("run_llvm.py")
TIMEOUT_S = 300


def tool(name):
    """The path of an LLVM 19 tool, by the name that distributions give it, or the test is skipped."""
    return needed_tools.program(f"{name}-19", name, package="mlir-19-tools")


needs_mlir = needed_tools.needs("mlir-opt-19", "mlir-opt", package="mlir-19-tools")
needs_xdsl = needed_tools.needs("xdsl", package=needed_tools.EXTRAS)


def _run(command, text):
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stderr[:4000]}"
    return done.stdout


def verify_by_mlir_opt(modules):
    """Verify the modules, a dict by title."""
    text = SEPARATOR.join(f"// {title}\n{module}" for title, module in modules.items())
    _run([tool("mlir-opt"), "--split-input-file", "-o", "/dev/null"], text)


def llvm_ir(modules, passes=LOWERING):
    """The LLVM IR of each of the modules."""
    lowered = _run(
        [tool("mlir-opt"), "--split-input-file", f"--pass-pipeline=builtin.module({passes})"],
        SEPARATOR.join(modules.values()),
    )
    text = _run([tool("mlir-translate"), "--split-input-file", "--mlir-to-llvmir"], lowered)
    texts = text.split("; ModuleID")[1:]
    assert len(texts) == len(modules)
    return dict(zip(modules, (f"; ModuleID{t}" for t in texts), strict=True))


def run_all(modules, arguments, folder, passes=LOWERING):
    """Run each module's function on its arguments, arrays and numbers, in a child process; gives the arrays after."""
    jobs = []
    for number, (title, text) in enumerate(llvm_ir(modules, passes).items()):
        path = folder / f"{number}.ll"
        path.write_text(text.split("// -----")[0])
        scalars = []
        for k, given in enumerate(arguments[title]):
            scalars.append(given if isinstance(given, int) else None)
            if not isinstance(given, int):
                np.save(folder / f"{number}.{k}.npy", _plain(given))
        function = title.split(":")[0]
        jobs.append({"llvm": str(path), "function": function, "arguments": scalars})
    _run([sys.executable, RUNNER, folder], json.dumps(jobs))
    return {title: _results(folder, number, arguments[title]) for number, title in enumerate(modules)}


def _plain(array):
    """numpy's files know no bfloat16."""
    return array.view(np.uint16) if array.dtype.name == "bfloat16" else array


def _results(folder, number, given):
    return [
        a if isinstance(a, int) else np.load(folder / f"{number}.{k}.out.npy").view(a.dtype).reshape(a.shape)
        for k, a in enumerate(given)
    ]
