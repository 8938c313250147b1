"""Traces as JSON text, and back: the fields of each kind of step are the schema that text from outside is held to."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ..ir.errors import InternalError, TraceError
from .step import Step, primitives

VERSION = 1
"""Of the form of the text; it grows when a program that reads the old form would misread the new one."""


def steps_text(steps: Iterable[Step]) -> str:
    """JSON text, one step a line."""
    rows = ",\n".join(f"  {json.dumps(step.to_dict(), ensure_ascii=False)}" for step in steps)
    return f'{{"version": {VERSION}, "steps": [\n{rows}\n]}}\n' if rows else f'{{"version": {VERSION}, "steps": []}}\n'


def read_steps(source: str | bytes | Mapping[str, object]) -> tuple[Step, ...]:
    """The steps in a text, or in the object that a parser made of it. Raises ``TraceError`` where it is no trace."""
    data: object = source
    if isinstance(source, (str, bytes)):
        try:
            data = json.loads(source)
        except (ValueError, RecursionError) as error:
            raise TraceError(f"this is not the JSON text of a trace: {error}") from error
    if not isinstance(data, Mapping):
        raise TraceError(f"a trace is a JSON object with 'version' and 'steps', found {_shown(data)}")
    version, steps = data.get("version"), data.get("steps")
    if version != VERSION or isinstance(version, bool):
        raise TraceError(f"this loopwright reads version {VERSION} of traces, found version {_shown(version)}")
    if not isinstance(steps, Sequence) or isinstance(steps, str):
        raise TraceError(f"the 'steps' of a trace are an array, found {_shown(steps)}")
    unknown = [str(key) for key in data if key not in ("version", "steps")]
    if unknown:
        raise TraceError(f"a trace has 'version' and 'steps' only, found {', '.join(map(repr, unknown))}")
    return tuple(_read_step(step, number) for number, step in enumerate(steps, start=1))


def _read_step(data: object, number: int) -> Step:
    if not isinstance(data, Mapping):
        raise TraceError(f"step {number}: expected an object, found {_shown(data)}", number)
    name = data.get("primitive")
    kind = primitives().get(name) if isinstance(name, str) else None
    if kind is None:
        near = difflib.get_close_matches(str(name), primitives(), 1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(sorted(primitives()))}"
        raise TraceError(f"step {number}: there is no primitive {_shown(name)}{hint}", number)
    where = f"step {number}, {name}"
    known = {f.name: f for f in fields(kind)}
    for key in data:
        if key != "primitive" and key not in known:
            raise TraceError(f"{where}: there is no field {key!r}; there are {', '.join(known)}", number)
    missing = [f.name for f in known.values() if f.name not in data and f.default is MISSING]
    if missing:
        raise TraceError(f"{where}: the field {missing[0]!r} is missing", number)
    hints = get_type_hints(kind)
    values: dict[str, Any] = {}
    for key in known:
        if key in data:
            values[key] = _value(data[key], hints[key])
            if values[key] is _NO_VALUE:
                raise TraceError(
                    f"{where}: the field {key!r} is {_type_text(hints[key])}, found {_shown(data[key])}", number
                )
    return kind(**values)


_NO_VALUE = object()


def _value(data: object, kind: Any) -> object:
    """The value of a field of the given type, arrays as tuples; ``_NO_VALUE`` where the data is of another type."""
    if kind in (str, int, bool, NoneType):
        return data if type(data) is kind else _NO_VALUE
    if kind is float:
        return float(data) if type(data) in (int, float) else _NO_VALUE  # type: ignore[arg-type]
    origin, args = get_origin(kind), get_args(kind)
    if origin is Literal:
        return data if any(data == a and type(data) is type(a) for a in args) else _NO_VALUE
    if origin in (Union, UnionType):
        return next((v for v in (_value(data, arg) for arg in args) if v is not _NO_VALUE), _NO_VALUE)
    if origin is tuple:
        return _tuple(data, args)
    raise InternalError(f"there is no rule to read a field of type {kind} from JSON")


def _tuple(data: object, args: tuple[Any, ...]) -> object:
    if not isinstance(data, (list, tuple)):
        return _NO_VALUE
    kinds = (args[0],) * len(data) if args[1:] == (...,) else args
    items = tuple(_value(item, kind) for item, kind in zip(data, kinds, strict=False))
    return items if len(kinds) == len(data) and _NO_VALUE not in items else _NO_VALUE


_NAMES = {str: "a string", int: "an integer", bool: "true or false", float: "a number", NoneType: "null"}


def _type_text(kind: Any) -> str:
    if kind in _NAMES:
        return _NAMES[kind]
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(map(_type_text, args))
    if origin is Literal:
        return f"one of {', '.join(map(_shown, args))}"
    items = _type_text(args[0]) if args[1:] == (...,) else ", ".join(map(_type_text, args))
    return f"an array of ({items})"


def _shown(data: object) -> str:
    """A value as JSON shows it, cut short."""
    try:
        text = json.dumps(data, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = type(data).__name__
    return text if len(text) <= 60 else f"{text[:57]}..."
