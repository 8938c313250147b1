"""grid_sample: an image read at the positions of a grid, between its elements by interpolation.

A coordinate of -1 … 1 spans the image: from the middle of its first element to that of its last (``align_corners``), or
over their whole extents. Source: Jaderberg et al., Spatial transformer networks (2015), as ONNX's GridSample; the cubic
kernel is that of Keys (1981) with a = -0.75.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from ... import te
from ...base.dtype import DType
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Node
from ...graph.types import TensorType, Type
from ...ir.constants import const_int
from ...ir.expr import Expr
from ...ir.makers import as_index
from ...te.tensor import Tensor, Tensors
from ..definition.accumulate import accumulator, widened
from ..definition.arguments import flag
from ..definition.attrs import Attrs, attr, one_of
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import FLOAT_KINDS, same_extent, tensor_argument
from ..definition.strategy import register_compute

GROUP = OpGroup.IMAGES

KEYS = -0.75
"""The free parameter of the cubic kernel."""


@dataclass(frozen=True)
class GridSampleAttrs(Attrs):
    """The attributes of ``grid_sample``."""

    mode: str = attr("how elements are interpolated", "linear", one_of("linear", "nearest", "cubic"))
    padding: str = attr("what is read beyond the image", "zeros", one_of("zeros", "border", "reflection"))
    align_corners: bool = attr("whether -1 and 1 are the middles of the outermost elements, else their ends", False)


def _relation(types: Sequence[Type], attrs: GridSampleAttrs) -> Type:
    x, grid = tensor_argument(types[0], "x"), tensor_argument(types[1], "grid")
    rank = x.ndim - 2
    if x.dtype.kind not in FLOAT_KINDS or grid.dtype.kind not in FLOAT_KINDS:
        raise TypeInferenceError(f"x and grid must be of {', '.join(FLOAT_KINDS)}, found {x.dtype} and {grid.dtype}")
    if rank < 1 or grid.ndim != rank + 2 or const_int(grid.shape[-1]) != rank:
        raise TypeInferenceError(f"grid must have a coordinate for each axis of x but batch and channels, found {grid}")
    batch = same_extent(x.shape[0], grid.shape[0], f"x has the batch {x.shape[0]}, but grid {grid.shape[0]}")
    if any(const_int(extent) == 0 for extent in x.shape[2:]):
        raise TypeInferenceError(f"{x} is empty: there is nothing to read")
    return TensorType((batch, x.shape[1], *grid.shape[1:-1]), x.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
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


def _compute(attrs: GridSampleAttrs, inputs: Tensors, result: Type) -> Tensor:
    x, grid = inputs
    kind = accumulator(x.dtype)
    lines = [_Line(extent, attrs, kind) for extent in x.shape[2:]]
    rank = len(lines)
    shape = tensor_argument(result, "result").shape

    def position(axis: int) -> Tensor:
        """The grid has the coordinate of the last axis first."""
        return te.compute(
            (shape[0], *shape[2:]),
            lambda *i: lines[axis].position(te.cast(grid[(*i, rank - 1 - axis)], kind)),
            name=f"grid_sample.place{axis}",
        )

    positions = [position(axis) for axis in range(rank)]

    def element(n: te.Axis, c: te.Axis, *at: te.Axis) -> Expr:
        taps = [line.taps(where[(n, *at)]) for line, where in zip(lines, positions, strict=True)]
        parts: list[Expr] = []
        for corner in itertools.product(*taps):
            read = x[(n, c, *(line.index(number) for line, (number, _) in zip(lines, corner, strict=True)))]
            value = widened(read)
            if attrs.padding == "zeros":
                inside = [line.inside(number) for line, (number, _) in zip(lines, corner, strict=True)]
                value = te.select(_all(inside), value, te.const(0, kind))
            weights = [weight for _, weight in corner if weight is not None]
            parts.append(math.prod(weights[1:], start=weights[0]) * value if weights else value)
        return te.cast(sum(parts[1:], start=parts[0]), x.dtype)

    return te.compute(shape, element, name="grid_sample")


def _all(conditions: Sequence[Expr]) -> Expr:
    made = conditions[0]
    for condition in conditions[1:]:
        made = made & condition
    return made


GRID_SAMPLE = register_op(
    "grid_sample",
    "x at the positions of a grid, whose coordinates of -1 to 1 span it; between its elements by interpolation",
    [
        ("x", "[batch, channels, …]"),
        (
            "grid",
            "[batch, …, axes]: the shape of the result, and a coordinate for each axis, the last one first",
        ),
    ],
    _relation,
    OpPattern.OUT_ELEMENTWISE_FUSABLE,
    GridSampleAttrs,
    support_level=5,
)
register_compute(GRID_SAMPLE, _compute)


def grid_sample(x: Node, grid: Node, mode: str = "linear", padding: str = "zeros", align_corners: bool = False) -> Call:
    """``x`` [batch, channels, …] at the positions of ``grid`` [batch, …, axes], whose coordinates of -1 to 1 span the
    image; that of the last axis comes first, as in ``torch.nn.functional.grid_sample``.

    ``mode`` is ``"linear"``, ``"nearest"`` or ``"cubic"``; beyond the image are ``"zeros"``, its ``"border"``, or its
    ``"reflection"``. ``align_corners``: -1 and 1 are the middles of the first and last elements, not their ends.
    """
    return GRID_SAMPLE(x, grid, attrs=GridSampleAttrs(mode, padding, flag(align_corners, "align_corners")))
