"""The view of a lowered function, or of several that call each other."""

from __future__ import annotations

from ..base.html.code import code
from ..base.html.view import view
from .stmt import IRModule, PrimFunc


def func_html(func: PrimFunc | IRModule) -> str:
    """The loop nest, under the name of the function that callers call."""
    entry = func.entry if isinstance(func, IRModule) else func
    return view(f"Lowered function {entry.name}", code(str(func), "loops", "print(func)"))
