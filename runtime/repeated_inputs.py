"""Inputs that are 1 long where another input has a number: repeated to that, as broadcasting has it.

Compiled code takes such dimensions to be equal (``compiler/passes/repeated_inputs.py`` says of which inputs that makes
no difference).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..artifact.extents import Extent, dimensions_in, evaluate
from ..artifact.model import CompiledModel
from .arrays import Array


class RepeatedInputs:
    """The inputs of a model that may be repeated, and what tells how often."""

    def __init__(self, model: CompiledModel) -> None:
        self._axes = model.repeated
        self._wanted: list[Extent] = [model.inputs[number].shape[axis] for number, axis in self._axes]
        names = {name for extent in self._wanted for name in dimensions_in(extent)}
        self._told = [
            (extent, number, axis)
            for number, spec in enumerate(model.inputs)
            for axis, extent in enumerate(spec.shape)
            if isinstance(extent, str) and extent in names
        ]

    def axes(self, number: int) -> tuple[int, ...]:
        """The axes of an input that may be repeated."""
        return tuple(axis for each, axis in self._axes if each == number)

    def repeat(self, arrays: list[Array]) -> None:
        """Put copies in the place of the arrays that are to be repeated. What does not fit stays as it is: whoever
        plans the run says what is wrong with it."""
        if not any(arrays[number].shape[axis] == 1 for number, axis in self._axes):
            return
        dims = self._dims(arrays)
        for (number, axis), extent in zip(self._axes, self._wanted, strict=True):
            if arrays[number].shape[axis] == 1 and (times := _extent(extent, dims)) not in (None, 1):
                arrays[number] = np.repeat(arrays[number], times, axis)

    def _dims(self, arrays: Sequence[Array]) -> dict[str, int]:
        """The dimensions as the first input says that is not to be repeated; 1 if there is none."""
        dims: dict[str, int] = {}
        for name, number, axis in self._told:
            found = arrays[number].shape[axis]
            if found != 1 or (number, axis) not in self._axes:
                dims.setdefault(name, found)
        return dict.fromkeys((name for name, _, _ in self._told), 1) | dims


def _extent(extent: Extent, dims: Mapping[str, int]) -> int | None:
    """The value of an extent; None where there is none, which is for whoever plans the run to say."""
    if not dims.keys() >= set(dimensions_in(extent)):
        return None
    try:
        number = evaluate(extent, dims)
    except ZeroDivisionError:
        return None
    return number if number >= 0 else None
