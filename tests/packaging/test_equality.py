"""No class of the package has a generated ``__eq__`` that compares expressions or arrays.

`==` of these builds an expression, or an array, whose truth is not known: a field holds one, and the method raises as
soon as two different objects meet, as keys of one dict do. (Until Python 3.12 it took fields that are the same object
for equal.) Such classes compare by identity, by ``eq=False``; those that are to be equal by value are interned. Named
tuples compare as tuples, by identity first.
"""

import ast
import builtins
import dataclasses
import importlib
import inspect
import pkgutil
import tomllib
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from loopwright.base.dtype import dtype
from loopwright.ir.expr import Var
from loopwright.ir.operand import Operand
from loopwright.lowering.passes.elements import Element

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = set(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"])
COMPARES_TO_NO_BOOL = (Operand, np.ndarray)
HOLD_NO_VALUES = {"Callable", "ClassVar", "Literal", "type"}


def modules() -> list[ModuleType]:
    packages = [importlib.import_module(name) for name in PACKAGES]
    found = [(package.__name__, info) for package in packages for info in pkgutil.iter_modules(package.__path__)]
    return packages + [
        importlib.import_module(f"{package}.{info.name}")
        for package, info in found
        if not info.ispkg and info.name != "__main__"
    ]


def mentioned(annotation: object, scope: Mapping[str, object], known: set[str]) -> Iterator[type]:
    """The classes that an annotation mentions, through aliases; those of a value that it does not hold left out."""
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, type) and not typing.get_args(annotation):
        yield annotation
    elif isinstance(annotation, str):
        if annotation not in known:
            known.add(annotation)
            yield from _in_text(ast.parse(annotation, mode="eval").body, scope, known)
    elif getattr(typing.get_origin(annotation), "__name__", "") not in HOLD_NO_VALUES:
        for part in (typing.get_origin(annotation), *typing.get_args(annotation)):
            if part is not None:
                yield from mentioned(part, scope, known)


def _in_text(node: ast.expr, scope: Mapping[str, object], known: set[str]) -> Iterator[type]:
    match node:
        case ast.Name(id=name):
            yield from mentioned(scope[name], scope, known)
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            yield from mentioned(getattr(scope[module], name), scope, known)
        case ast.Constant(value=str(text)):
            yield from mentioned(text, scope, known)
        case ast.Subscript(value=outer, slice=inner):
            yield from _in_text(outer, scope, known)
            if ast.unparse(outer).rpartition(".")[2] not in HOLD_NO_VALUES:
                yield from _in_text(inner, scope, known)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _in_text(part, scope, known)
        case ast.BinOp(left=left, right=right):
            yield from _in_text(left, scope, known)
            yield from _in_text(right, scope, known)


def faulty_fields(cls: type, scope: Mapping[str, object]) -> list[str]:
    """The fields that the generated ``__eq__`` of a class compares, and must not."""
    if "__eq__" not in vars(cls) or not dataclasses.is_dataclass(cls) or not cls.__dataclass_params__.eq:
        return []
    if inspect.getsourcefile(cls.__eq__) == inspect.getsourcefile(cls):
        return []  # written by hand
    return [
        field.name
        for field in dataclasses.fields(cls)
        if field.compare and any(issubclass(c, COMPARES_TO_NO_BOOL) for c in mentioned(field.type, scope, set()))
    ]


def test_no_generated_equality_compares_expressions_or_arrays():
    everything = modules()
    names = {name: value for module in everything for name, value in vars(module).items()}
    found, seen = [], 0
    for module in everything:
        scope = {**vars(builtins), **names, **vars(module)}
        for cls in [c for c in vars(module).values() if isinstance(c, type) and c.__module__ == module.__name__]:
            seen += dataclasses.is_dataclass(cls)
            found += [f"{cls.__module__}.{cls.__qualname__}.{name}" for name in faulty_fields(cls, scope)]
    assert seen > 300
    assert not found, "say eq=False, or intern these classes:\n" + "\n".join(found)


@dataclasses.dataclass(frozen=True)
class Nested:
    number: int
    pairs: "tuple[tuple[int, Operand], ...] | None"
    function: "typing.Callable[[Operand], Operand]"


@dataclasses.dataclass(frozen=True)
class OfArrays:
    arrays: "dict[str, np.ndarray]"
    left_out: "Operand" = dataclasses.field(compare=False)


def test_the_search_finds_expressions_in_containers_and_arrays():
    scope = {**vars(builtins), **globals()}
    assert faulty_fields(Nested, scope) == ["pairs"]
    assert faulty_fields(OfArrays, scope) == ["arrays"]
    assert faulty_fields(dataclasses.dataclass(frozen=True, eq=False)(type("Plain", (OfArrays,), {})), scope) == []


@pytest.mark.parametrize("mask", [False, True])
def test_elements_of_registers_are_one_if_they_are_equal(mask):
    i, kind = Var("i"), dtype("float32")
    condition = i < 4 if mask else None
    assert Element((i, i + 1), kind, condition) is Element((i, i + 1), kind, condition)
    assert Element((i, i + 1), kind, condition) != Element((i, i + 2), kind, condition)
    assert Element((i,), kind, i < 4) != Element((i,), kind, i < 5)
