"""A public class has a name that no other public class of the package has, so that a name tells what is meant."""

import ast
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
GRAMMARS = {"Var", "Call"}
"""Both the grammar of graphs and that of expressions have a node of this name, which is the term of either."""


def test_public_classes_have_names_of_their_own():
    found = defaultdict(list)
    for package in SETTINGS["packages"]:
        for path in ROOT.joinpath(*package.split(".")[1:]).glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(str(path.relative_to(ROOT)))
    assert len(found) > 500  # else this looks in the wrong place
    twice = {name: files for name, files in found.items() if len(files) > 1}
    assert {name: sorted(twice.pop(name)) for name in GRAMMARS & set(twice)} == {
        name: ["graph/node.py", "ir/expr.py"] for name in GRAMMARS
    }
    assert not twice
