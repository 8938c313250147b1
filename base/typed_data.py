"""Values of typed fields, from outside: whether data fits a type annotation, and what the annotation is in words.

Traces, attributes and other things that are kept as JSON are read by it: their fields' annotations are the schema.
"""

from __future__ import annotations

import json
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

from .errors import InternalError

NO_VALUE: Final = object()
_NAMES = {str: "a string", int: "an integer", bool: "true or false", float: "a number", NoneType: "null"}


def typed_value(data: object, kind: Any) -> object:
    """The data as a value of the annotation, arrays as tuples; ``NO_VALUE`` where it does not fit. A bool is no number,
    an integer is a number as it is. Of another class, an object of that."""
    if kind is float:
        return data if type(data) in (int, float) else NO_VALUE
    if kind in _NAMES:
        return data if type(data) is kind else NO_VALUE
    origin, args = get_origin(kind), get_args(kind)
    if origin is Literal:
        return data if any(data == a and type(data) is type(a) for a in args) else NO_VALUE
    if origin in (Union, UnionType):
        return next((v for v in (typed_value(data, arg) for arg in args) if v is not NO_VALUE), NO_VALUE)
    if origin is tuple:
        return _tuple(data, args)
    if isinstance(kind, type):
        return data if isinstance(data, kind) else NO_VALUE
    raise InternalError(f"there is no rule to read a field of type {kind}")


def _tuple(data: object, args: tuple[Any, ...]) -> object:
    if not isinstance(data, (list, tuple)):
        return NO_VALUE
    kinds = (args[0],) * len(data) if args[1:] == (...,) else args
    items = tuple(typed_value(item, kind) for item, kind in zip(data, kinds, strict=False))
    return items if len(kinds) == len(data) and not any(i is NO_VALUE for i in items) else NO_VALUE


def type_text(kind: Any) -> str:
    """An annotation in words, as JSON has it: ``"an array of (an integer)"``."""
    if kind in _NAMES:
        return _NAMES[kind]
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(map(type_text, args))
    if origin is Literal:
        return f"one of {', '.join(map(shown, args))}"
    if isinstance(kind, type):
        return f"a {kind.__name__}"
    items = type_text(args[0]) if args[1:] == (...,) else ", ".join(map(type_text, args))
    return f"an array of ({items})"


def shown(data: object) -> str:
    """A value as JSON shows it, cut short."""
    try:
        text = json.dumps(data, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = type(data).__name__
    return text if len(text) <= 60 else f"{text[:57]}..."
