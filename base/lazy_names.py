"""The names of a package that import their modules when they are asked for, as the package's stub lists them.

So type checkers and Python read one list. ``from .module import name as name`` is what a stub consists of.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path


def attach_stub(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package whose ``__init__.pyi`` lists its names.

    A name is imported once and then stands in the package; it may be that of a module. A name that the
    stub does not have is an ``AttributeError``.
    """
    module = sys.modules[package]
    modules = _modules_of(package)

    def get(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = import_module(modules[name])
        value = getattr(found, name) if name in vars(found) else import_module(f"{modules[name]}.{name}")
        setattr(module, name, value)
        return value

    def names() -> list[str]:
        return sorted({*modules, *(name for name in vars(module) if name.startswith("__"))})

    return get, names, sorted(modules)


def _modules_of(package: str) -> dict[str, str]:
    """The module of each name that a package's stub imports. Where the package lies in an archive, the stub does."""
    spec = sys.modules[package].__spec__
    assert spec is not None
    assert spec.origin is not None
    stub = spec.loader.get_data(str(Path(spec.origin).with_suffix(".pyi")))  # type: ignore[union-attr]
    return {
        alias.name: f"{package}.{statement.module or ''}".rstrip(".")
        for statement in ast.parse(stub).body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
