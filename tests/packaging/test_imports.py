"""Modules import each other relatively, and the package runs as a command."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import loopwright
from loopwright import facade

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


def test_the_package_imports_the_compiler_when_a_name_of_it_is_asked_for(tmp_path):
    program = """
import sys
import loopwright
heavy = {"numpy", "onnx", "llvmlite", "loopwright.facade"}
assert not heavy & sys.modules.keys()
assert loopwright.te is sys.modules["loopwright.te"]
assert "loopwright.facade" not in sys.modules
from loopwright import Engine
assert heavy <= sys.modules.keys()
assert Engine is loopwright.facade.Engine
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


def test_names_are_those_of_the_facade_and_no_others():
    names = {name for name in dir(loopwright) if not name.startswith("__")}
    assert names == set(facade.__all__)
    assert {*_star_import()} == names
    assert all(getattr(loopwright, name) is getattr(facade, name) for name in names)
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
