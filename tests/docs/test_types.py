"""Strict type checkers accept what the documentation shows: the README's programs, pages, notebooks and examples."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from documented_programs import GIVEN, NOTEBOOKS, PAGES, PROGRAMS, ROOT, notebook_program, session_program
from needed_tools import needs

UNTYPED = "sklearn.*,scipy.*,onnxruntime.*,threadpoolctl.*"
"""Packages without types, which examples use in `support/`."""
SESSION = """\
# mypy: allow-untyped-defs, allow-untyped-calls, allow-redefinition, no-strict-optional
# pyright: standard, reportUnusedExpression=false, reportOptionalMemberAccess=false
"""
"""In a session values are shown, names used again, functions have no annotations, and nothing is asked to be there."""
EXPECTED = """\
from typing import assert_type
import loopwright as lw
from loopwright import te
from loopwright.graph.node import Call
from loopwright.lowering.schedule import LoopView

A = te.placeholder((4, 8), name="A")
r = te.reduce_axis((0, 8), name="r")
B = te.compute((4,), lambda i: te.sum(A[i, r], axis=r), name="B")
assert_type(B, te.Tensor)
assert_type(te.compute((4,), lambda i: te.argmin(A[i, r], axis=r), name="C"), tuple[te.Tensor, ...])
s = lw.create_schedule(B)
assert_type(s[B].op.axis, tuple[te.Axis, ...])
assert_type(s["B"].split("r", 4), tuple[LoopView, LoopView])
assert_type(s.rfactor(B, "r_inner"), te.Tensor)
assert_type(lw.build(s, [A, B]), lw.Kernel)
x = lw.var("x", (4, 8))
library = lw.compile(lw.Function([x], lw.nn.relu(x)))
assert_type(library, lw.Library)
assert_type(lw.nn.softmax(lw.nn.relu(x), axis=-1), Call)
lw.nn.sum(x, axis=1)  # type: ignore[call-arg]  # they are axes; an ignore without an error would be one
"""
"""What the checkers take things to be: they would accept anything of a package that they do not see."""

pytestmark = [needs("mypy", package="dev"), needs("pyright", package="dev")]


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    for number, (page, program) in enumerate(PROGRAMS):
        (folder / f"{page}_{number}.py").write_text(GIVEN + program, encoding="utf-8")
    for page in PAGES:
        name = page.stem.replace("-", "_")
        (folder / f"page_{name}.py").write_text(SESSION + session_program(page), encoding="utf-8")
    for notebook in NOTEBOOKS:
        (folder / f"notebook_{notebook.stem}.py").write_text(SESSION + notebook_program(notebook), encoding="utf-8")
    (folder / "expected.py").write_text(EXPECTED, encoding="utf-8")
    return folder


def run(folder, *arguments):
    environment = os.environ | {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True)


def test_mypy_accepts_them(programs):
    config = "[mypy]\nstrict = true\nmypy_path = examples\n"
    (programs / "mypy.ini").write_text(f"{config}[mypy-{UNTYPED}]\nignore_missing_imports = true\n", encoding="utf-8")
    files = [str(path.relative_to(programs)) for path in programs.rglob("*.py") if path.parent.name != "support"]
    done = run(programs, "mypy", "--cache-dir", str(programs / "cache"), *sorted(files))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_pyright_accepts_them(programs):
    (programs / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "strict"}), encoding="utf-8")
    done = run(programs, "pyright", "--pythonpath", sys.executable)
    assert done.returncode == 0, done.stdout + done.stderr
