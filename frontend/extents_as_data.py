"""Extents that a model uses as data: a vector of their formulas. Many numbers are of few formulas, but for constants
that are added: they are gathered from a vector of these few, and the constants are a table."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from ..graph.node import Constant, Node
from ..ir.linear import linear_of
from ..ir.makers import as_index
from ..ir.simplify import simplify
from ..ops.families.binary import add
from ..ops.families.gather import take
from ..ops.families.open_extents import extents
from ..ops.families.reshape import reshape

MOST_FORMULAS = 16
"""Up to so many numbers are computed each by its formula."""


def extents_as_data(values: npt.NDArray[np.object_], of: Iterable[Node]) -> Node:
    """Python integers, and index expressions over the dimensions of the tensors ``of``, as a tensor of int64."""
    if values.size <= MOST_FORMULAS:
        vector: Node = extents([*values.ravel()], of)
        return vector if values.ndim == 1 else reshape(vector, values.shape)
    numbers = [as_index(value) for value in values.ravel()]
    offsets = [linear_of(number).constant for number in numbers]
    formulas = [simplify(number - offset) for number, offset in zip(numbers, offsets, strict=True)]
    row = {formula: k for k, formula in enumerate(dict.fromkeys(formulas))}
    rows, added = (
        Constant(np.array(column, np.int64).reshape(values.shape)) for column in ([row[f] for f in formulas], offsets)
    )
    return add(take(extents([*row], of), rows, 0), added)
