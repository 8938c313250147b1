"""``lw.op``: what operators and targets from outside are made with is public, and all that they need."""

import ast
import inspect
from pathlib import Path

import pytest

import loopwright as lw

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_names_are_those_that_are_listed():
    assert [name for name in dir(lw.op) if not name.startswith("__")] == sorted(lw.op.__all__)


def test_whatever_is_called_has_a_docstring():
    called = [getattr(lw.op, name) for name in lw.op.__all__ if inspect.isroutine(getattr(lw.op, name))]
    assert called
    assert not [function.__name__ for function in called if not inspect.getdoc(function)]


@pytest.mark.parametrize("example", ["custom_operator.py", "outside_target/edge9_target.py"])
def test_examples_from_outside_need_public_names_only(example):
    tree = ast.parse((EXAMPLES / example).read_text(encoding="utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {module for module in modules if module.startswith("loopwright")} == {"loopwright"}
