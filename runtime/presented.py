"""Outputs in the forms in which a model gives them to Python: numbers in native code may stand for other values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, assert_never

import numpy as np

from ..base.output_form import OutputForm
from .arrays import Array


def presented(array: Array, form: OutputForm | None) -> Any:
    """The output that an array of numbers stands for: an array of strings, a list of dicts, or the array itself."""
    if form is None:
        return array
    match form.kind:
        case "labels":
            return np.array(form.names, object)[array]
        case "maps":
            keys = form.names or form.numbers
            return [dict(zip(keys, row, strict=True)) for row in array.tolist()]
        case _:
            assert_never(form.kind)


def as_numbers(outputs: Sequence[Any], forms: Sequence[OutputForm | None]) -> list[Array]:
    """Outputs as arrays of numbers again, whoever computed them: a label is the first position of its name, -1 if it is
    none of the names; maps are a row each."""
    return [_numbers(*pair) for pair in zip_longest(outputs, forms)]


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
        case _:
            assert_never(form.kind)
