"""JSON objects from outside, held to a schema: the names of their fields, and the annotation of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import RecordError
from .typed_data import NO_VALUE, shown, type_text, typed_value


def read_object(
    what: str, data: object, needed: Mapping[str, Any], optional: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The fields of an object, arrays as tuples; one whose annotation is ``dict`` or ``list`` is given as it is.

    Raises ``RecordError`` where a needed field is missing, another one is there, or a value does not fit.
    """
    if not isinstance(data, dict):
        raise RecordError(f"the {what} should be an object, found {shown(data)}")
    kinds = {**needed, **(optional or {})}
    for name in needed:
        if name not in data:
            raise RecordError(f"the {what} has no field {name!r}")
    return {name: _value(what, name, value, kinds) for name, value in data.items()}


def _value(what: str, name: str, data: object, kinds: Mapping[str, Any]) -> object:
    if name not in kinds:
        raise RecordError(f"the {what} has an unknown field {name!r}; there are {', '.join(kinds)}")
    kind = kinds[name]
    plain = kind in (dict, list)
    value = (data if isinstance(data, kind) else NO_VALUE) if plain else typed_value(data, kind)
    if value is NO_VALUE:
        expected = {dict: "an object", list: "an array"}[kind] if plain else type_text(kind)
        raise RecordError(f"the field {name!r} of the {what} should be {expected}, found {shown(data)}")
    return value
