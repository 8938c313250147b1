"""Traces as JSON text, and back: the fields of each kind of step are the schema that text from outside is held to."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, get_type_hints

from ..base.errors import TraceError
from ..base.typed_data import NO_VALUE, shown, type_text, typed_value
from .primitives import primitives
from .step import Step

VERSION = 2
"""Of the form of the text; it grows when a program that reads the old form would misread the new one. In version 1
there were no decisions."""


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
        raise TraceError(f"a trace is a JSON object with 'version' and 'steps', found {shown(data)}")
    version, steps = data.get("version"), data.get("steps")
    if type(version) is not int or not 1 <= version <= VERSION:
        raise TraceError(f"this loopwright reads traces up to version {VERSION}, found version {shown(version)}")
    if not isinstance(steps, Sequence) or isinstance(steps, str):
        raise TraceError(f"the 'steps' of a trace are an array, found {shown(steps)}")
    unknown = [str(key) for key in data if key not in ("version", "steps")]
    if unknown:
        raise TraceError(f"a trace has 'version' and 'steps' only, found {', '.join(map(repr, unknown))}")
    return tuple(_read_step(step, number) for number, step in enumerate(steps, start=1))


def _read_step(data: object, number: int) -> Step:
    if not isinstance(data, Mapping):
        raise TraceError(f"step {number}: expected an object, found {shown(data)}", number)
    name = data.get("primitive")
    kind = primitives().get(name) if isinstance(name, str) else None
    if kind is None:
        near = difflib.get_close_matches(str(name), primitives(), 1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(sorted(primitives()))}"
        raise TraceError(f"step {number}: there is no primitive {shown(name)}{hint}", number)
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
            values[key] = typed_value(data[key], hints[key])
            if values[key] is NO_VALUE:
                raise TraceError(
                    f"{where}: the field {key!r} is {type_text(hints[key])}, found {shown(data[key])}", number
                )
    return kind(**values)
