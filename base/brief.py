"""What ``repr`` gives of objects: one line of at most ``MOST`` characters, however large they are.

``str`` gives all of those that have a text.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

MOST = 200
"""Most characters of a ``repr``."""
_LISTED = 120
"""Most characters of the items that it lists."""

_VALUES = reprlib.Repr()
_VALUES.maxlevel, _VALUES.maxtuple, _VALUES.maxstring, _VALUES.maxother = 1, 3, 40, 60


def one_line(text: str, most: int = MOST) -> str:
    """The first line of a text, and ``…`` where there is more of it."""
    first = text.partition("\n")[0]
    return f"{first[: most - 1]}…" if len(first) > most or len(first) < len(text) else first


def listed(items: Iterable[object], most: int = _LISTED) -> str:
    """The items by their texts; of many, the first ones, and how many more there are."""
    texts = [one_line(str(item), most) for item in items]
    shown, length = 0, 0
    while shown < len(texts) and (not shown or length + len(texts[shown]) <= most):
        length += len(texts[shown]) + 2
        shown += 1
    left = len(texts) - shown
    return ", ".join([*texts[:shown], *([f"… {left} more"] if left else [])])


class BriefRepr:
    """A dataclass, made with ``repr=False``, whose ``repr`` has its fields, long ones cut."""

    __slots__ = ()

    def __repr__(self) -> str:
        parts: Any = fields(self)  # type: ignore[arg-type]
        shown = (f"{part.name}={_VALUES.repr(getattr(self, part.name))}" for part in parts if part.repr)
        return one_line(f"{type(self).__name__}({', '.join(shown)})")
