"""A box of the values of axes, an axis of numpy for each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ...base.dataclass import dataclass
from ...ir.expr import Var

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """All values that ``axes`` take together, each from its begin to before its end. Arrays on a grid have an axis of
    numpy for each, of one element where they do not depend on it."""

    axes: tuple[Var, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]
    positions: Mapping[Var, int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "positions", {var: k for k, var in enumerate(self.axes)})

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each axis takes."""
        return tuple(max(end - begin, 0) for begin, end in zip(self.begins, self.ends, strict=True))

    @property
    def size(self) -> int:
        """How many points there are."""
        return math.prod(self.shape)

    def numbers(self, position: int) -> Array:
        """The values of one axis, along it."""
        shape = [-1 if k == position else 1 for k in range(self.ndim)]
        return np.arange(self.begins[position], self.ends[position]).reshape(shape)

    def within(self, ranges: Sequence[tuple[int, int]]) -> Self:
        """The part of these ranges, which count from where the grid's axes begin."""
        begins = tuple(begin + low for begin, (low, _) in zip(self.begins, ranges, strict=True))
        ends = tuple(begin + high for begin, (_, high) in zip(self.begins, ranges, strict=True))
        return type(self)(self.axes, begins, ends)

    def with_split(self, position: int, parts: Mapping[Var, int]) -> Self:
        """The grid with axes that take so many values in place of one that takes as many as these together."""
        axes, begins, ends = list(self.axes), list(self.begins), list(self.ends)
        axes[position : position + 1] = parts
        begins[position : position + 1] = [0] * len(parts)
        ends[position : position + 1] = parts.values()
        return type(self)(tuple(axes), tuple(begins), tuple(ends))

    def joined(self, other: Grid) -> Grid:
        """The grid of the axes of both, those of the other one last."""
        return Grid(self.axes + other.axes, self.begins + other.begins, self.ends + other.ends)


POINT = Grid((), (), ())
"""The grid without axes: what is evaluated on it depends on none."""
