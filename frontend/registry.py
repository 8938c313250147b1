"""The table of converters: (domain, operator, version) → the function that makes the graph nodes.

Each version of an operator that ONNX has defined is entered by its own number: a version that nobody has looked at is
unsupported, not taken for its predecessor. Mutable while the converters are imported, under a lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from onnx import defs

from ..base.dataclass import dataclass
from ..base.errors import LoopwrightError, ModelError
from .onnx_node import OnnxNode
from .values import Value, value_text

Converter: TypeAlias = Callable[[OnnxNode], Value | Sequence[Value | None] | None]
"""Gives the node's outputs, in order; those that nobody asks for may be None, or missing at the end. None leaves the
node to the body that ONNX gives the operator."""
C = TypeVar("C", bound=Converter)

OWN_DOMAIN = "loopwright"
"""Of operators that ONNX does not have; they have one version."""


@dataclass(frozen=True, slots=True)
class Form:
    """What an operator has that the onnx package does not define: its attributes, and how many inputs at most. Such
    operators, of onnxruntime, have one version."""

    attributes: frozenset[str]
    inputs: int


_converters: dict[tuple[str, str, int], Converter] = {}
_forms: dict[tuple[str, str], Form] = {}
_lock = threading.Lock()


def register(name: str, versions: Sequence[int], convert: Converter, domain: str = "") -> None:
    """Enter a converter for these versions of an operator. A version that is taken is a ``LoopwrightError``."""
    with _lock:
        for version in versions:
            if (domain, name, version) in _converters:
                operator = f"{domain or 'ONNX'} {name}"
                raise LoopwrightError(f"there is a converter for version {version} of {operator} already")
            _converters[domain, name, version] = convert


def converter(name: str, *versions: int, domain: str = "") -> Callable[[C], C]:
    """Decorator: the converter of these versions of an operator."""

    def enter(convert: C) -> C:
        register(name, versions, convert, domain)
        return convert

    return enter


def register_foreign(name: str, form: Form, convert: Converter, domain: str) -> None:
    """Enter a converter of an operator that the onnx package does not define."""
    register(name, (1,), convert, domain)
    with _lock:
        _forms[domain, name] = form


def foreign_form(domain: str, name: str) -> Form | None:
    """The form of an operator with a converter that the onnx package does not define."""
    return _forms.get((domain, name))


def version_of(domain: str, name: str, opset: int) -> int | None:
    """The version of an operator in an operator set; None if it is not in there. An operator of onnxruntime that ONNX
    has taken over is that of onnxruntime in the sets before."""
    if domain == OWN_DOMAIN:
        return 1 if (domain, name, 1) in _converters else None
    try:
        return int(defs.get_schema(name, opset, domain).since_version)
    except defs.SchemaError:
        return 1 if (domain, name) in _forms else None


def find_converter(domain: str, name: str, version: int) -> Converter | None:
    """The converter that is entered for exactly this version of an operator; None if there is none."""
    return _converters.get((domain, name, version))


def converted(convert: Converter, node: OnnxNode) -> Value | Sequence[Value | None] | None:
    """What a converter makes of a node. Inputs that have other ranks than it expects, and any other failure of its own,
    are a ``ModelError`` that says what the node is given; a lack of memory is none of its own."""
    try:
        return convert(node)
    except (LoopwrightError, MemoryError, RecursionError):
        raise
    except Exception as error:
        given = ", ".join("nothing" if value is None else value_text(value) for value in node.inputs)
        raise ModelError(f"{node} cannot be converted for {given}: {type(error).__name__}: {error}") from error


def converted_versions() -> tuple[tuple[str, str, int], ...]:
    """Every (domain, operator, version) that has a converter, sorted."""
    return tuple(sorted(_converters))
