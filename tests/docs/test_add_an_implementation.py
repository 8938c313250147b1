"""docs/add-an-implementation.md: its list of concepts is that of the file that it goes through."""

import ast
import re
from pathlib import Path

from loopwright.lowering.primitives import primitives

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "add-an-implementation.md").read_text(encoding="utf-8")
FILE = ROOT / "ops" / "families" / "conv" / "blocked_depthwise.py"
PRIMITIVES = set(primitives())


def concepts(source):
    """The names of the package that a file imports, the functions of ``te`` and the primitives that it uses."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(names=names, level=level) if level:
                found |= {name.name for name in names} - {"te", "dataclass"}
            case ast.Attribute(value=ast.Name("te"), attr=name):
                found.add(name)
            case ast.Call(func=ast.Attribute(attr=name)) if name in PRIMITIVES:
                found.add(name)
    return found


def test_the_concepts_are_those_of_the_file():
    table = PAGE.split("| what it is about | concepts |")[1].split("\n\n")[0]
    listed = re.findall(r"`(\w+)`", table)
    assert len(set(listed)) == len(listed)
    assert set(listed) == concepts(FILE.read_text(encoding="utf-8"))
    assert f"these {len(listed)} concepts" in " ".join(PAGE.split())
