"""The view of a lowered function, or of several that call each other."""

from __future__ import annotations

from ..stmt import IRModule, PrimFunc
from .code import code
from .view import view


def func_html(func: PrimFunc | IRModule) -> str:
    """The loop nest, under the name of the function that callers call."""
    entry = func.entry if isinstance(func, IRModule) else func
    return view(f"Lowered function {entry.name}", code(str(func), "loops", "print(func)"))
