"""How converters of onnxruntime's own operators are entered: their form, which the onnx package does not know."""

from __future__ import annotations

import sys
from collections.abc import Callable

from ...registry import C, Form, register_foreign

ANY_NUMBER = sys.maxsize
"""Of inputs."""
MICROSOFT = "com.microsoft"
"""The domain of most of them."""


def contrib(name: str, attributes: str = "", *, inputs: int, domain: str = MICROSOFT) -> Callable[[C], C]:
    """Decorator: the converter of an operator with these attributes, apart by spaces, and at most so many inputs."""

    def enter(convert: C) -> C:
        register_foreign(name, Form(frozenset(attributes.split()), inputs), convert, domain)
        return convert

    return enter
