"""Plain data, as JSON gives it, read as what a type says: a dataclass by its fields, each of which is checked.

Files that others wrote may hold anything: what is read here has the types that it declares, or is a ``ModelError``.
"""

from __future__ import annotations

import types
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ..base.dtype import DType, dtype
from ..base.errors import ExpressionError, ModelError
from .extents import Extent, extent_from_json


def from_plain(kind: Any, data: Any, place: str) -> Any:
    """``data`` as a value of a type: an object is a dataclass, a list a tuple or a set, the name of a dtype
    that; an extent is what ``extent_json`` makes of it. Fields that the type does not have are left out.

    ``place`` says in messages what is read. Raises ``ModelError`` for data of another form.
    """
    if kind == Extent:
        return extent_from_json(data)
    if kind is DType:
        return _dtype(data, place)
    if isinstance(kind, type) and is_dataclass(kind):
        return _dataclass(kind, data, place)
    origin = get_origin(kind)
    if origin is tuple:
        return _tuple(get_args(kind), data, place)
    if origin is frozenset:
        return frozenset(_tuple((*get_args(kind), ...), data, place))
    if origin is Literal:
        return _choice(get_args(kind), data, place)
    if origin in (Union, types.UnionType):  # of something that may be missing
        (inner,) = (each for each in get_args(kind) if each is not types.NoneType)
        return None if data is None else from_plain(inner, data, place)
    return _plain(kind, data, place)


def _plain(kind: type, data: Any, place: str) -> Any:
    if kind is float and type(data) is int:
        data = float(data)
    if type(data) is not kind:
        raise ModelError(f"{place} should be {kind.__name__}, found {type(data).__name__}")
    return data


def _choice(choices: tuple[Any, ...], data: Any, place: str) -> Any:
    if data not in choices:
        raise ModelError(f"{place} should be one of {', '.join(map(str, choices))}")
    return data


def _dtype(data: Any, place: str) -> DType:
    try:
        return dtype(_plain(str, data, place))
    except ExpressionError as error:
        raise ModelError(f"{place}: {error}") from error


def _tuple(kinds: tuple[Any, ...], data: Any, place: str) -> tuple[Any, ...]:
    if not isinstance(data, (list, tuple)):
        raise ModelError(f"{place} should be a list, found {type(data).__name__}")
    if kinds[-1] is Ellipsis:
        kinds = (kinds[0],) * len(data)
    if len(data) != len(kinds):
        raise ModelError(f"{place} should have {len(kinds)} values, found {len(data)}")
    return tuple(
        from_plain(kind, each, f"{place}[{k}]") for k, (kind, each) in enumerate(zip(kinds, data, strict=True))
    )


def _dataclass(kind: type, data: Any, place: str) -> Any:
    if not isinstance(data, dict):
        raise ModelError(f"{place} should be an object, found {type(data).__name__}")
    hints = _hints(kind)
    if missing := [name for name in hints if name not in data]:
        raise ModelError(f"{place} lacks {', '.join(missing)}")
    return kind(**{name: from_plain(hint, data[name], f"{place}.{name}") for name, hint in hints.items()})


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """The types of a dataclass's fields, by their names."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind) if field.init}
