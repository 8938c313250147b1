"""A public class has its name to itself, so that a reader who meets the name knows which class is meant."""

import ast
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
FOLDERS = [ROOT.joinpath(*name.split(".")[1:]) for name in SETTINGS["packages"]]
SHARED = {
    "Call": {"graph/node.py", "ir/expr.py"},  # nodes of the two IRs, each of which has calls and variables
    "Var": {"graph/node.py", "ir/expr.py"},
    "Operand": {"ir/operand.py", "ops/families/matmul/cblas.py"},
}
"""The names that stand for two classes, and where these are."""


def public_classes(path: Path) -> list[str]:
    nodes = ast.parse(path.read_text(encoding="utf-8")).body
    return [node.name for node in nodes if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]


def test_no_two_public_classes_have_one_name():
    files = defaultdict(list)
    for path in (path for folder in FOLDERS for path in folder.glob("*.py")):
        for name in public_classes(path):
            files[name].append(str(path.relative_to(ROOT)))
    assert len(files) > 500  # else this looks in the wrong place
    assert {name: set(found) for name, found in files.items() if len(found) > 1} == SHARED
