"""Every public function, class and method of the package says what it does, and does not begin with a fragment.

Public is what stands in a module or in a public class, by a name without an underscore at its beginning. Not asked for
a docstring are overloads, setters, nested functions, and a method that a base class of the package has documented.

The first sentence of a docstring must not be a fragment, as far as these rules tell:

- It does not begin with a preposition or conjunction ("Of a vector.", "That no extent is negative."), nor with a word
  that stands for something said before ("Those that fit.", "Its two operands."). "Whether …", "What …", "Where …",
  "Which …" and "How …" go on as a clause, which names a result.
- At least three of its words are not code: "``a + b``." is the code again, and "The body." the name.
- Its paragraph ends with a full stop, a colon, a question mark or an exclamation mark.
"""

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
FOLDERS = [ROOT.joinpath(*name.split(".")[1:]) for name in SETTINGS["packages"]]

FRAGMENTS = {
    *("of", "to", "by", "in", "on", "at", "as", "for", "from", "with", "without", "into", "than", "below", "beside"),
    *("that", "so", "and", "but", "or", "also", "likewise", "around", "behind", "same"),
    *("those", "these", "such", "its", "their", "none"),
}
"""Words that no sentence of ours begins with."""
FEWEST_WORDS = 3

Function = ast.FunctionDef | ast.AsyncFunctionDef
Item = Function | ast.ClassDef
Classes = Mapping[str, list[ast.ClassDef]]


def modules() -> dict[str, ast.Module]:
    paths = [path for folder in FOLDERS for path in folder.glob("*.py")]
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def classes_of(body: list[ast.stmt]) -> Iterator[ast.ClassDef]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield node
            yield from classes_of(node.body)


def by_name(classes: Iterable[ast.ClassDef]) -> Classes:
    found = defaultdict(list)
    for node in classes:
        found[node.name].append(node)
    return found


def decorators(node: Function) -> set[str]:
    return {ast.unparse(decorator).split(".")[-1] for decorator in node.decorator_list}


def bases(node: ast.ClassDef, classes: Classes) -> Iterator[ast.ClassDef]:
    for base in node.bases:
        for parent in classes.get(ast.unparse(base).split("[")[0].split(".")[-1], ()):
            if parent is not node:
                yield parent
                yield from bases(parent, classes)


def is_documented_above(method: Function, owner: ast.ClassDef, classes: Classes) -> bool:
    above = (node for parent in bases(owner, classes) for node in parent.body if isinstance(node, Function))
    return any(node.name == method.name and ast.get_docstring(node) for node in above)


def public(body: list[ast.stmt], classes: Classes, owner: ast.ClassDef | None = None) -> Iterator[tuple[str, Item]]:
    """What has to have a docstring, by its name behind those of the classes around."""
    for node in body:
        if isinstance(node, (ast.If, ast.Try)):
            yield from public([*node.body, *node.orelse], classes, owner)
        elif not isinstance(node, Item) or node.name.startswith("_"):
            continue
        elif isinstance(node, ast.ClassDef):
            yield node.name, node
            yield from ((f"{node.name}.{name}", inner) for name, inner in public(node.body, classes, node))
        elif not decorators(node) & {"overload", "setter", "deleter"} and (
            ast.get_docstring(node) or owner is None or not is_documented_above(node, owner, classes)
        ):
            yield node.name, node


@cache
def docstrings() -> dict[str, str | None]:
    """The docstrings of the package, None where one is missing, by file and name."""
    trees = modules()
    classes = by_name(node for tree in trees.values() for node in classes_of(tree.body))
    return {
        f"{path}: {name}": ast.get_docstring(node)
        for path, tree in trees.items()
        for name, node in public(tree.body, classes)
    }


def fault(docstring: str) -> str | None:
    """What makes the opening of a docstring a fragment; None if no rule says so."""
    opening = " ".join(docstring.strip().split("\n\n")[0].split())
    first = re.sub(r"[^a-z]", "", opening.split()[0].lower()) if opening else ""
    if first in FRAGMENTS:
        return f"begins with {first!r}"
    sentence = re.split(r"(?<=[.!?])[\"')`]* (?=[A-Z`0-9\[])", opening)[0]
    if len(re.findall(r"[A-Za-z][A-Za-z'-]*", re.sub(r"``.*?``", " ", sentence))) < FEWEST_WORDS:
        return "says too little beside code"
    if not re.search(r"[.:!?][\"')`]*$", opening):
        return "does not end as a sentence"
    return None


def test_all_that_is_public_has_a_docstring():
    assert len(docstrings()) > 3000  # else this looks in the wrong place
    assert [name for name, docstring in docstrings().items() if not docstring] == []


def test_no_docstring_opens_with_a_fragment():
    faults = {name: fault(docstring) for name, docstring in docstrings().items() if docstring}
    assert {name: why for name, why in faults.items() if why} == {}


@pytest.mark.parametrize(
    "docstring",
    [
        "Of a power of a vector.",
        "That no extent is negative.",
        "Those that fit in the registers.",
        "``a + b`` exactly.",
        "The body.",
        "The value of ``a * b`` rounded",
        "See ``Bench``.",
    ],
)
def test_fragments_are_told(docstring):
    assert fault(docstring)


@pytest.mark.parametrize(
    "docstring",
    [
        "Whether no extent is negative.",
        "What fails where memory ends, as ``a.b`` does. Raises ``ValueError``.",
        "The number of rows: ``shape[0]``.",
        "Add two numbers, as in:\n\n>>> add(1, 2)\n3",
    ],
)
def test_whole_sentences_are_no_fragments(docstring):
    assert fault(docstring) is None


def test_what_needs_a_docstring_is_found():
    source = """
class Base:
    'What a base of classes is.'
    def told(self): 'What is told to all.'
class Shown(Base):
    def told(self): ...
    def own(self):
        def nested(): ...
    def __len__(self): ...
    @overload
    def many(self, x: int): ...
    @value.setter
    def value(self, x): ...
    def _hidden(self): ...
class _Hidden:
    def inside(self): ...
if True:
    def chosen(): ...
"""
    body = ast.parse(source).body
    found = [name for name, node in public(body, by_name(classes_of(body))) if not ast.get_docstring(node)]
    assert found == ["Shown", "Shown.own", "chosen"]
