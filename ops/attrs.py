"""Attributes of operators: frozen dataclasses whose fields carry a description, a default, and a check.

@dataclass(frozen=True)
class PoolAttrs(Attrs):
    strides: tuple[int, ...] = attr("step of the window, per spatial axis", default=(1, 1), check=all_positive)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..ir.errors import TypeInferenceError

REQUIRED = dataclasses.MISSING
Check = Callable[[Any], str | None]
"""Gives what is wrong with a value ("must be …"), or None."""


def attr(description: str, default: Any = REQUIRED, check: Check | None = None) -> Any:
    """A field of an attributes class."""
    return dataclasses.field(default=default, metadata={"description": description, "check": check})


def inherited(parent: type[Attrs], name: str, default: Any) -> Any:
    """A field of a parent class, with another default."""
    field = next(f for f in dataclasses.fields(parent) if f.name == name)
    return dataclasses.field(default=default, metadata=field.metadata)


@dataclass(frozen=True)
class Attrs:
    """Base of all attributes classes. Making one checks each field; ``TypeInferenceError`` names the field."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            check: Check | None = field.metadata.get("check")
            value = getattr(self, field.name)
            problem = check(value) if check is not None else None
            if problem is not None:
                raise TypeInferenceError(f"{type(self).__name__}.{field.name} {problem}, found {value!r}")

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values; tuples become lists."""
        return {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self)}


def _plain(value: Any) -> Any:
    return [_plain(v) for v in value] if isinstance(value, tuple) else value


def all_positive(values: tuple[int, ...]) -> str | None:
    return None if all(type(v) is int and v > 0 for v in values) else "must be positive integers"


def all_non_negative(values: tuple[int, ...]) -> str | None:
    return None if all(type(v) is int and v >= 0 for v in values) else "must be integers of 0 or more"


def positive(value: int) -> str | None:
    return None if type(value) is int and value > 0 else "must be a positive integer"


def one_of(*choices: Any) -> Check:
    return lambda value: None if value in choices else f"must be one of {', '.join(map(repr, choices))}"


def optional(check: Check) -> Check:
    """None passes."""
    return lambda value: None if value is None else check(value)
