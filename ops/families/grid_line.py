"""What grid_sample reads along one axis of an image: positions of coordinates, the elements around them, and weights.

The cubic kernel is that of Keys (1981) with a = -0.75.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from ... import te
from ...base.dataclass import dataclass
from ...base.dtype import DType
from ...ir.expr import Expr
from ...ir.makers import as_index
from ..definition.attrs import Attrs, attr, one_of

KEYS = -0.75
"""The free parameter of the cubic kernel."""
TAPS = {"nearest": 1, "linear": 2, "cubic": 4}
"""How many elements are read along an axis."""
_T = TypeVar("_T")


@dataclass(frozen=True)
class GridSampleAttrs(Attrs):
    """The attributes of ``grid_sample``."""

    mode: str = attr("how elements are interpolated", "linear", one_of("linear", "nearest", "cubic"))
    padding: str = attr("what is read beyond the image", "zeros", one_of("zeros", "border", "reflection"))
    align_corners: bool = attr("whether -1 and 1 are the middles of the outermost elements, else their ends", False)
    channels_last: bool = attr("whether channels are the last axis of x and of the result, else the second", False)

    def ordered(self, n: _T, c: _T, at: Sequence[_T]) -> tuple[_T, ...]:
        """What belongs to the axes of x, or of the result, in their order."""
        return (n, *at, c) if self.channels_last else (n, c, *at)

    def parts(self, axes: Sequence[_T]) -> tuple[_T, _T, tuple[_T, ...]]:
        """What belongs to the batch, the channels, and the other axes."""
        c = axes[-1 if self.channels_last else 1]
        return axes[0], c, tuple(axes[1:-1] if self.channels_last else axes[2:])


@dataclass(frozen=True, slots=True, eq=False)
class GridLine:
    """An axis of the image, along which elements are read."""

    extent: Expr
    attrs: GridSampleAttrs
    kind: DType

    def position(self, coordinate: Expr) -> Expr:
        """The position of a coordinate, in elements; for the nearest one a whole number. One beyond the image is
        brought to its border, which changes no more than the elements read for it unless the kernel is cubic, or
        reflected there."""
        length = te.cast(self.extent, self.kind)
        scaled = (coordinate + 1) * 0.5
        at = scaled * (length - 1) if self.attrs.align_corners else scaled * length - 0.5
        if self.attrs.mode == "nearest":
            at = te.round(at)
        match self.attrs.padding:
            case "border" if self.attrs.mode != "cubic":
                return te.minimum(te.maximum(at, 0), length - 1)
            case "reflection":
                return self._reflected(at, length)
            case _:  # of a cubic at the border the elements that are read are brought there, one by one
                at = te.select(at > -4, at, te.const(-4, self.kind))  # as far away as is seen; so is NaN
                return te.minimum(at, length + 4)

    def _reflected(self, at: Expr, length: Expr) -> Expr:
        low, span = (0.0, length - 1) if self.attrs.align_corners else (-0.5, length)
        away, period = te.abs(at - low), te.maximum(span * 2, 1)
        rest = away - te.floor(away / period) * period
        return te.select(span > 0, te.minimum(rest, period - rest) + low, te.const(0, self.kind))

    def inside(self, number: Expr) -> Expr:
        """Whether there is an element of that number."""
        return (number >= 0) & (number < self.extent)

    def index(self, number: Expr) -> Expr:
        """The element that is read for a number, which may be beyond the image."""
        if self.attrs.padding == "reflection":
            last = self.extent - 1
            period = te.maximum(last * 2, 1) if self.attrs.align_corners else self.extent * 2
            rest = number % period
            number = te.minimum(rest, period - rest if self.attrs.align_corners else period - 1 - rest)
        return te.maximum(te.minimum(number, self.extent - 1), 0)

    def taps(self, position: Expr) -> list[tuple[Expr, Expr | None]]:
        """The numbers of the elements around a position, and their weights; the nearest has none."""
        first = te.floor(position)
        number, share = as_index(te.cast(first, "int64")), position - first
        match self.attrs.mode:
            case "nearest":
                return [(number, None)]
            case "linear":
                return [(number, 1 - share), (number + 1, share)]
            case _:
                return [(number + k - 1, _keys(te.abs(share - (k - 1)), k in (1, 2))) for k in range(4)]


def _keys(distance: Expr, near: bool) -> Expr:
    """The weight of an element at a distance below 1, or from there to 2."""
    if near:
        return ((KEYS + 2) * distance - (KEYS + 3)) * distance * distance + 1
    return ((KEYS * distance - 5 * KEYS) * distance + 8 * KEYS) * distance - 4 * KEYS


def weighted(value: Expr, weights: Sequence[Expr]) -> Expr:
    """A value times all weights; by itself, if it has none."""
    return math.prod(weights[1:], start=weights[0]) * value if weights else value


def all_of(conditions: Sequence[Expr]) -> Expr:
    """Whether all of at least one condition hold."""
    made = conditions[0]
    for condition in conditions[1:]:
        made = made & condition
    return made
