"""Outputs in the forms in which a model gives them to Python: numbers in native code may stand for other values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat, zip_longest
from typing import Any, assert_never

import numpy as np

from ..base.errors import InternalError
from ..base.output_form import OutputForm
from ..base.spans import unpack_strings
from .arrays import Array

FEW_ROWS = 8
SHORT_ROW = 7
"""Where maps of scores cost as much by column as by row."""


def presented(outputs: Sequence[Array], forms: Sequence[OutputForm | None]) -> list[Any]:
    """The outputs that arrays of numbers stand for: arrays of strings, lists of dicts, or the arrays themselves."""
    pairs = zip(outputs, forms, strict=True)
    return [_presented(array, form, outputs) for array, form in pairs if form is None or form.kind != "bytes"]


def _presented(array: Array, form: OutputForm | None, outputs: Sequence[Array]) -> Any:
    if form is None:
        return array
    match form.kind:
        case "labels":
            return np.array(form.names, object)[array]
        case "maps":
            return _maps(form.names or form.numbers, array)
        case "strings":
            return unpack_strings(array, outputs[form.source])
        case "bytes":
            raise InternalError("bytes of strings are not shown")
        case _:
            assert_never(form.kind)


def _maps(keys: Sequence[str | int], scores: Array) -> list[dict[Any, Any]]:
    """A dict for each row of scores, [rows, keys]. Many short rows are read column by column, in half the time."""
    rows, columns = scores.shape
    if rows <= FEW_ROWS or columns > SHORT_ROW:
        return [dict(zip(keys, row)) for row in scores.tolist()]  # noqa: B905  its check costs as much as the dict
    entries = (zip(repeat(key), column) for key, column in zip(keys, scores.T.tolist(), strict=True))
    return list(map(dict, zip(*entries, strict=True)))


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
