"""The inputs and outputs of a run: name, type, and what their elements are like."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape

from ..artifact.function import TensorSpec
from ..base.quantities import digits
from ..base.table import Name, number_table, print_table
from ..runtime.arrays import Array

_NUMBERS = ("least", "mean", "largest")


def print_tensors(console: Console, tensors: Mapping[str, Iterable[tuple[TensorSpec, Array]]]) -> None:
    """A table of tensors, by what they are: ``{"input": …, "output": …}``."""
    rows = [(kind, spec, array, statistics(array)) for kind, pairs in tensors.items() for spec, array in pairs]
    odd = any(found["not_finite"] for *_, found in rows)
    table = number_table(["", "name", "type"], [*_NUMBERS, *["not finite"] * odd])
    table.columns[2].no_wrap = True
    for kind, spec, array, found in rows:
        shape = f"{spec.dtype}[{', '.join(map(str, array.shape))}]"
        numbers = [digits(found[name]) if name in found else "" for name in _NUMBERS]
        table.add_row(kind, Name(spec.name), escape(shape), *numbers, *[str(found["not_finite"])] * odd)
    print_table(console, table)


def tensors_json(kind: str, specs: Sequence[TensorSpec], arrays: Iterable[Array]) -> list[dict[str, Any]]:
    """Name, dtype, shape and statistics of each; the name stands under ``kind``."""
    return [
        {kind: spec.name, "dtype": str(spec.dtype), "shape": list(array.shape)} | statistics(array)
        for spec, array in zip(specs, arrays, strict=True)
    ]


def statistics(array: Array) -> dict[str, float]:
    """The least, mean and largest of the elements that are finite, if there are any, and how many are not. Strings have
    none."""
    if array.dtype.kind in "OUT":
        return {"not_finite": 0}
    values = array.astype(np.float64)
    finite = values[np.isfinite(values)]
    found: dict[str, float] = {"not_finite": int(values.size - finite.size)}
    if finite.size:
        found |= {"least": float(finite.min()), "mean": float(finite.mean()), "largest": float(finite.max())}
    return found
