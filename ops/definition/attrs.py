"""Attributes of operators: frozen dataclasses whose fields carry a type, a description, a default, and a check.

@dataclass(frozen=True)
class PoolAttrs(Attrs):
    strides: tuple[int, ...] = attr("step of the window, per spatial axis", default=(1, 1), check=all_positive)

The fields are the schema: making one, reading one from JSON and documenting one all go by them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Self, get_type_hints

import numpy as np

from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...base.typed_data import NO_VALUE, shown, type_text, typed_value
from ...graph.types import Type

REQUIRED = dataclasses.MISSING
Check = Callable[[Any], str | None]
"""Gives what is wrong with a value ("must be …"), or None."""
NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
"""Floats that JSON has no number for, by the strings that stand for them."""


def attr(description: str, default: Any = REQUIRED, check: Check | None = None) -> Any:
    """A field of a class of attributes: its description for documentation, the default, and a ``check`` that gives
    what is wrong with a value, or None. A field without a default must be given."""
    return dataclasses.field(default=default, metadata={"description": description, "check": check})


def inherited(parent: type[Attrs], name: str, default: Any) -> Any:
    """A field of a parent class, with another default."""
    field = next(f for f in dataclasses.fields(parent) if f.name == name)
    return dataclasses.field(default=default, metadata=field.metadata)


@dataclass(frozen=True, slots=True)
class Attribute:
    """A field, for documentation. ``default`` is ``REQUIRED`` where there is none."""

    name: str
    type: str
    description: str
    default: Any


@dataclass(frozen=True)
class Attrs:
    """The base class of all classes of attributes. Making one checks each field; ``TypeInferenceError`` names the
    field.

    Lists become tuples, numpy's numbers Python's.
    """

    def __post_init__(self) -> None:
        hints = self._types()
        for field in dataclasses.fields(self):
            given = _plain(getattr(self, field.name))
            value = typed_value(given, hints[field.name])
            if value is NO_VALUE:
                kind = type_text(hints[field.name])
                raise TypeInferenceError(f"{type(self).__name__}.{field.name} must be {kind}, found {given!r}")
            check: Check | None = field.metadata.get("check")
            problem = check(value) if check is not None else None
            if problem is not None:
                raise TypeInferenceError(f"{type(self).__name__}.{field.name} {problem}, found {value!r}")
            object.__setattr__(self, field.name, value)

    def fitted(self, types: Sequence[Type]) -> Self:
        """The attributes for arguments of these types: others where they hold types themselves."""
        return self

    @classmethod
    def describe(cls) -> tuple[Attribute, ...]:
        """The fields in order."""
        return tuple(
            Attribute(f.name, str(f.type), f.metadata["description"], f.default) for f in dataclasses.fields(cls)
        )

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values: tuples become lists, infinities and NaN strings."""
        return {f.name: _to_json(getattr(self, f.name)) for f in dataclasses.fields(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """What ``to_json`` gave, of this class. ``TypeInferenceError`` where a field is missing, unknown or wrong."""
        if not isinstance(data, Mapping):
            raise TypeInferenceError(f"{cls.__name__} is read from a JSON object, found {shown(data)}")
        names = [f.name for f in dataclasses.fields(cls)]
        for problem, found in (
            ("has no", [str(name) for name in data if name not in names]),
            ("misses", [name for name in names if name not in data]),
        ):
            if found:
                raise TypeInferenceError(
                    f"{cls.__name__} {problem} {', '.join(found)}; its fields are {_listed(names)}"
                )
        hints = cls._types()
        return cls(**{name: _from_json(data[name], hints[name]) for name in names})

    @classmethod
    def _types(cls) -> dict[str, Any]:
        kind: Any = cls  # mypy takes classes of hashable objects for not hashable
        return _hints(kind)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none"


def _plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(_plain(v) for v in value)
    return value.item() if isinstance(value, np.generic) else value


def _to_json(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_to_json(v) for v in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _from_json(data: Any, kind: Any) -> Any:
    """The data, or the float that a string stands for where no string is taken."""
    if isinstance(data, str) and data in NOT_FINITE and typed_value(data, kind) is NO_VALUE:
        return NOT_FINITE[data]
    return data


def all_positive(values: tuple[int, ...]) -> str | None:
    """A check of a field, for ``attr``: all of its values are positive integers."""
    return None if all(type(v) is int and v > 0 for v in values) else "must be positive integers"


def all_non_negative(values: tuple[int, ...]) -> str | None:
    """A check of a field, for ``attr``: all of its values are integers of 0 or more."""
    return None if all(type(v) is int and v >= 0 for v in values) else "must be integers of 0 or more"


def positive(value: int) -> str | None:
    """A check of a field, for ``attr``: the value is a positive integer."""
    return None if type(value) is int and value > 0 else "must be a positive integer"


def natural(value: int) -> str | None:
    """A check of a field, for ``attr``: the value is an integer of 0 or more."""
    return None if type(value) is int and value >= 0 else "must be an integer of 0 or more"


def one_of(*choices: Any) -> Check:
    """A check of a field, for ``attr``: the value is one of ``choices``."""
    return lambda value: None if value in choices else f"must be one of {', '.join(map(repr, choices))}"


def optional(check: Check) -> Check:
    """A check of a field, for ``attr``: the value is None, or passes ``check``."""
    return lambda value: None if value is None else check(value)
