"""Outputs in the forms in which a model gives them to Python: numbers in native code may stand for other values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from operator import itemgetter
from typing import Any, TypeAlias, assert_never

import numpy as np

from ..base.errors import InternalError
from ..base.output_form import OutputForm
from ..base.spans import unpack_strings
from .arrays import Array

Maps: TypeAlias = list[dict[Any, Any]]
FEW_KEYS = 16
"""Of more keys the time goes into hashing them, however the maps are made."""


def presentation(forms: Sequence[OutputForm | None]) -> Callable[[Sequence[Array]], list[Any]]:
    """A function of a model's outputs, which gives what these arrays of numbers stand for: arrays of strings, lists of
    dicts, or the arrays themselves."""
    shown = [_shown(number, form) for number, form in enumerate(forms) if form is None or form.kind != "bytes"]

    def present(outputs: Sequence[Array]) -> list[Any]:
        plain = [*outputs]  # a list of Python's own gives its elements in less time than one with names
        return [show(plain) for show in shown]

    return present


def _shown(number: int, form: OutputForm | None) -> Callable[[Sequence[Array]], Any]:
    """What gives one of the outputs."""
    if form is None:
        return itemgetter(number)
    match form.kind:
        case "labels":
            names = np.array(form.names, object)
            return lambda outputs: names[outputs[number]]
        case "maps":
            maps = _maps_of(form.names or form.numbers)
            return lambda outputs: maps(outputs[number].tolist())
        case "strings":
            source = form.source
            return lambda outputs: unpack_strings(outputs[number], outputs[source])
        case "bytes":
            raise InternalError("bytes of strings are not shown")
        case _:
            assert_never(form.kind)


def _maps_of(keys: Sequence[str | int]) -> Callable[[list[list[float]]], Maps]:
    """A function of rows that gives a dict for each: by a dict display of few keys, in half the time of ``dict``."""
    if not 0 < len(keys) <= FEW_KEYS:
        return lambda rows: [dict(zip(keys, row)) for row in rows]  # noqa: B905  its check costs as much as the dict
    values = [f"v{k}" for k in range(len(keys))]
    entries = ", ".join(f"{key!r}: {value}" for key, value in zip(keys, values, strict=True))
    made: Callable[[list[list[float]]], Maps] = eval(f"lambda rows: [{{{entries}}} for [{', '.join(values)}] in rows]")
    return made


def as_numbers(outputs: Sequence[Any], forms: Sequence[OutputForm | None]) -> list[Array]:
    """Outputs as arrays again, whoever computed them: a label is the first position of its name, -1 if it is none of
    the names; maps are a row each. Other strings are of numpy's dtype for them."""
    shown = [form for form in forms if form is None or form.kind != "bytes"]
    return [_numbers(*pair) for pair in zip_longest(outputs, shown)]


def _numbers(output: Any, form: OutputForm | None) -> Array:
    if form is None:
        return np.asarray(output)
    match form.kind:
        case "labels":
            positions = {name: k for k, name in reversed([*enumerate(form.names)])}
            found = [positions.get(name, -1) for name in np.ravel(output)]
            return np.array(found, np.int64).reshape(np.shape(output))
        case "maps":
            keys = form.names or form.numbers
            return np.array([[row[key] for key in keys] for row in output], np.float32).reshape(-1, len(keys))
        case "strings":
            return np.asarray(output, np.str_)
        case "bytes":
            raise InternalError("bytes of strings are not shown")
        case _:
            assert_never(form.kind)
