"""Modules import each other relatively, and the package runs as a command."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import loopwright

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


def test_the_version_is_a_release_number():
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|rc\d+)?", loopwright.__version__)


def test_without_arguments_the_command_shows_its_help(tmp_path):
    assert _run(["-m", "loopwright"], tmp_path).startswith("usage: loopwright")


def _run(arguments: list[str], folder: Path) -> str:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=600).stdout
