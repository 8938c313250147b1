"""Modules import each other relatively, names import what they need, and the package runs as a command."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import loopwright
import loopwright as lw

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = PYPROJECT["tool"]["setuptools"]["packages"]
FOLDERS = set(PYPROJECT["tool"]["importlinter"]["contracts"][0]["may_import"])


def test_no_module_imports_a_folder_by_its_bare_name():
    bare = [
        f"{source.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}"
        for package in PACKAGES
        for source in sorted(ROOT.joinpath(*package.split(".")[1:]).glob("*.py"))
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8")))
        if FOLDERS.intersection(_absolute_imports(node))
    ]
    assert not bare, "import these relatively:\n" + "\n".join(bare)


def _absolute_imports(node: ast.AST) -> list[str]:
    """The top-level names that an absolute import statement reaches for; none for any other node."""
    match node:
        case ast.Import(names=names):
            return [name.name.split(".")[0] for name in names]
        case ast.ImportFrom(module=str(module), level=0):
            return [module.split(".")[0]]
    return []


def test_python_dash_m_prints_the_version(tmp_path):
    assert _run(["-m", "loopwright", "--version"], tmp_path) == f"loopwright {loopwright.__version__}\n"


def test_the_package_of_operators_registers_them_all(tmp_path):
    program = """
import importlib, pkgutil
import loopwright.ops as ops
from loopwright.ops.definition.registry import all_ops
first = {op.name for op in all_ops()}
for found in pkgutil.walk_packages(ops.__path__, "loopwright.ops."):
    importlib.import_module(found.name)
print(*sorted({op.name for op in all_ops()} - first))
"""
    assert _run(["-c", program], tmp_path) == "\n"


def test_a_name_imports_what_it_needs_when_it_is_asked_for(tmp_path):
    program = """
import sys
import loopwright as lw
def loaded(*names):
    return [name for name in names if name in sys.modules]
assert not loaded("numpy", "onnx", "llvmlite", "loopwright.te")
assert lw.te is sys.modules["loopwright.te"]
assert not loaded("onnx", "llvmlite", "loopwright.lowering", "loopwright.graph")
lw.create_schedule, lw.interpret, lw.resolve_target, lw.default_schedule
assert not loaded("onnx", "llvmlite", "loopwright.compiler", "loopwright.graph", "loopwright.ops")
from loopwright import Engine
assert loaded("llvmlite") and not loaded("onnx", "loopwright.compiler")
from loopwright import compile
assert not loaded("onnx", "loopwright.frontend")
lw.from_onnx
assert loaded("onnx")
"""
    _run(["-c", program], tmp_path)


def test_schedules_are_made_lowered_interpreted_and_shown_without_llvm_and_onnx(tmp_path):
    program = """
import sys
sys.modules["llvmlite"] = sys.modules["onnx"] = None
import numpy as np
import loopwright as lw
from loopwright import te
from loopwright.explorer.document import Document, Pane, ScheduleEntry

A, B = te.placeholder((12, 8), name="A"), te.placeholder((8, 32), name="B")
r = te.reduce_axis((0, 8), name="r")
C = te.compute((12, 32), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
s = lw.create_schedule(C)
s["C"].split("j", 16)
s["C"].reorder("i", "j_outer", "r", "j_inner")
s["C"].vectorize("j_inner")
func = lw.lower(s, [A, B, C], target="x86-64-v3")
assert "j_outer" in str(func)
a, b = (np.arange(n, dtype=np.float32).reshape(shape) for n, shape in ((96, (12, 8)), (256, (8, 32))))
c = np.zeros((12, 32), np.float32)
lw.interpret(func)(a, b, c)
np.testing.assert_array_equal(c, a @ b)
assert "linalg.generic" in lw.emit_mlir(func, level="linalg")
assert "vector." in lw.emit_mlir(func)

D = lw.nn.relu(A - A.mean(axis=1, keepdims=True))
func = lw.lower(lw.default_schedule(D, "x86-64-v4"), [A, D], target="x86-64-v4")
d = np.empty((12, 8), np.float32)
lw.interpret(func)(a, d)
np.testing.assert_allclose(d, np.maximum(a - a.mean(axis=1, keepdims=True), 0), rtol=1e-6)

pane = Pane("c", "compute", "Computes", ("C = ...",))
entry = ScheduleEntry("main", "c", "c", (0,), ("c",), (), ("c",), "c")
lw.ExplorerPage(Document("C", "", (pane,), (entry,))).save("page.html")
"""
    _run(["-c", program], tmp_path)
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!")


def test_a_library_is_loaded_and_run_without_the_compiler(tmp_path):
    x = lw.var("x", (3, 5), "float32")
    lw.compile(lw.Function([x], lw.nn.softmax(x * 2.0)), "native").save(tmp_path / "softmax.lwlib")
    program = """
import sys
import numpy as np
import loopwright as lw
engine = lw.Engine(lw.load("softmax.lwlib"), threads=2)
(y,) = engine(np.zeros((3, 5), np.float32))
np.testing.assert_allclose(y, 0.2, rtol=1e-6)
folders = ("api", "compiler", "frontend", "graph", "kernels", "lowering", "ops", "schedules", "te", "tuning")
modules = ("codegen.compile", "codegen.entry", "codegen.module", "codegen.stmt", "ir.simplify", "runtime.exports")
assert not [name for name in (*folders, *modules) if f"loopwright.{name}" in sys.modules]
assert not [name for name in ("asyncio", "filelock", "onnx", "rich") if name in sys.modules]
"""
    _run(["-c", program], tmp_path)


def test_a_folder_without_modules_hides_no_name(tmp_path):
    (tmp_path / "build").mkdir()
    program = """
import sys
import loopwright
loopwright.__path__.append(sys.argv[1])
assert callable(loopwright.build)
"""
    _run(["-c", program, str(tmp_path)], tmp_path)


def test_names_are_those_of_the_stub_and_no_others():
    names = {name for name in dir(loopwright) if not name.startswith("__")}
    stub = ast.parse((ROOT / "__init__.pyi").read_text(encoding="utf-8"))
    assert names == {alias.asname for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert {*_star_import()} == names == set(loopwright.__all__)
    assert {"te", "nn", "compile", "Engine", "load"} <= names
    with pytest.raises(AttributeError, match="module 'loopwright' has no attribute 'Enginee'"):
        loopwright.Enginee  # noqa: B018


def _star_import() -> list[str]:
    names: dict[str, object] = {}
    exec("from loopwright import *", names)
    return [name for name in names if name != "__builtins__"]


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_each_folder_can_be_the_first_that_is_imported(tmp_path, package):
    _run(["-c", f"import {package}"], tmp_path)


def test_the_version_is_a_release_number():
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|rc\d+)?", loopwright.__version__)


def test_without_arguments_the_command_shows_its_help(tmp_path):
    assert _run(["-m", "loopwright"], tmp_path).startswith("usage: loopwright")


def _run(arguments: list[str], folder: Path) -> str:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=600).stdout
