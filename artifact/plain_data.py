"""Plain data, as JSON gives it, read as what a type says: a dataclass by its fields, each of which is checked.

Files that others wrote may hold anything: what is read here has the types that it declares, or is a ``ModelError``.
A type is looked at once. What reads its values says what is wrong, and what asked for them, from the inside out, where.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ..base.dtype import DType, dtype
from ..base.errors import ExpressionError, ModelError
from .extents import Extent, extent_from_json

_Reader = Callable[[Any], Any]


class _MisfitError(Exception):
    """Data of another form. Mutable: ``place`` grows as it is told further out."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.place = ""

    def inside(self, place: str) -> _MisfitError:
        """The same, of a part of something."""
        self.place = place + self.place
        return self


def from_plain(kind: Any, data: Any, place: str) -> Any:
    """``data`` as a value of a type: an object is a dataclass, a list a tuple or a set, the name of a dtype
    that; an extent is what ``extent_json`` makes of it. Fields that the type does not have are left out.

    ``place`` says in messages what is read. Raises ``ModelError`` for data of another form.
    """
    try:
        return _reader(kind)(data)
    except _MisfitError as error:
        raise ModelError(f"{place}{error.place}{error}") from error.__cause__


@cache
def _reader(kind: Any) -> _Reader:
    """What makes values of a type of plain data. It raises ``_MisfitError``, whose text follows the place."""
    if kind == Extent:
        return extent_from_json
    if kind is DType:
        return _dtype
    if isinstance(kind, type) and is_dataclass(kind):
        return _dataclass_reader(kind)
    origin, inner = get_origin(kind), get_args(kind)
    if origin is tuple:
        return _tuple_reader(inner)
    if origin is frozenset:
        of_tuple = _tuple_reader((*inner, ...))
        return lambda data: frozenset(of_tuple(data))
    if origin is Literal:
        return _choice_reader(inner)
    if origin in (Union, types.UnionType):  # of something that may be missing
        (present,) = (_reader(each) for each in inner if each is not types.NoneType)
        return lambda data: None if data is None else present(data)
    return _plain_reader(kind)


def _plain_reader(kind: type) -> _Reader:
    def read(data: Any) -> Any:
        if type(data) is kind:
            return data
        if kind is float and type(data) is int:
            return float(data)
        raise _MisfitError(f" should be {kind.__name__}, found {type(data).__name__}")

    return read


def _choice_reader(choices: tuple[Any, ...]) -> _Reader:
    def read(data: Any) -> Any:
        if data not in choices:
            raise _MisfitError(f" should be one of {', '.join(map(str, choices))}")
        return data

    return read


def _dtype(data: Any) -> DType:
    try:
        return dtype(_reader(str)(data))
    except ExpressionError as error:
        raise _MisfitError(f": {error}") from error


def _tuple_reader(kinds: tuple[Any, ...]) -> _Reader:
    readers = () if kinds[-1] is Ellipsis else tuple(map(_reader, kinds))
    of_each = _reader(kinds[0])

    def read(data: Any) -> tuple[Any, ...]:
        if not isinstance(data, (list, tuple)):
            raise _MisfitError(f" should be a list, found {type(data).__name__}")
        if readers and len(data) != len(readers):
            raise _MisfitError(f" should have {len(readers)} values, found {len(data)}")
        made: list[Any] = []
        try:
            if readers:
                made.extend(one(each) for one, each in zip(readers, data, strict=True))
            else:
                made.extend(map(of_each, data))
        except _MisfitError as error:
            raise error.inside(f"[{len(made)}]") from error.__cause__
        return tuple(made)

    return read


def _dataclass_reader(kind: Any) -> _Reader:
    def read(data: Any) -> Any:
        if not isinstance(data, dict):
            raise _MisfitError(f" should be an object, found {type(data).__name__}")
        readers = _field_readers(kind)
        if missing := [name for name in readers if name not in data]:
            raise _MisfitError(f" lacks {', '.join(missing)}")
        made: dict[str, Any] = {}
        for name, one in readers.items():
            try:
                made[name] = one(data[name])
            except _MisfitError as error:
                raise error.inside(f".{name}") from error.__cause__
        return kind(**made)

    return read


@cache
def _field_readers(kind: Any) -> dict[str, _Reader]:
    """What makes the values of a dataclass's fields, by their names."""
    hints = get_type_hints(kind)
    return {each.name: _reader(hints[each.name]) for each in fields(kind) if each.init}
