"""The names of all operators, for folders that do not import the operators themselves.

Mutable: ``ops/definition/registry.py`` adds to it, under its lock.
"""

from __future__ import annotations

import difflib

from .errors import LoopwrightError

_names: set[str] = set()


def add_op_name(name: str) -> None:
    """Note an operator that was registered."""
    _names.add(name)


def check_op_name(name: object) -> None:
    """Raise ``LoopwrightError`` for a name that no operator has, with the closest ones."""
    if isinstance(name, str) and name in _names:
        return
    close = difflib.get_close_matches(str(name), sorted(_names), n=3)
    advice = f": did you mean {', '.join(close)}?" if close else ""
    raise LoopwrightError(f"there is no operator {name!r}{advice}")
