"""grid_sample: an image read at the positions of a grid, between its elements by interpolation.

A coordinate of -1 … 1 spans the image: from the middle of its first element to that of its last (``align_corners``), or
over their whole extents. Source: Jaderberg et al., Spatial transformer networks (2015), as ONNX's GridSample. With
channels as the last axis of the image, all of a position are read together (``grid_channels.py``): a layout that the
planner weighs against this one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ... import te
from ...base.errors import TypeInferenceError
from ...base.target import Target
from ...graph.layout import Layout
from ...graph.node import Call, Node, tensor_of
from ...graph.types import TensorType, Type
from ...ir.constants import const_int
from ...ir.expr import Expr
from ...te.tensor import Tensor, Tensors
from ..definition.accumulate import accumulator, widened
from ..definition.arguments import flag
from ..definition.cost import elements, elements_of
from ..definition.layout_rule import LayoutCandidate, ValueLayout
from ..definition.op_group import OpGroup
from ..definition.pattern_schedules import schedule_default
from ..definition.registry import OpPattern, register_op
from ..definition.relations import FLOAT_KINDS, same_extent, tensor_argument
from ..definition.strategy import OpStrategy, register_strategy
from .grid_channels import compute_channels, schedule_channels
from .grid_line import TAPS, GridLine, GridSampleAttrs, all_of, weighted
from .window import spatial_axes

GROUP = OpGroup.IMAGES

ELEMENT_CYCLES, VECTOR_CYCLES, POSITION_CYCLES = 3.0, 2.0, 6.0
"""To read an element by itself, a vector of channels, and to find an element of all channels."""


def _relation(types: Sequence[Type], attrs: GridSampleAttrs) -> Type:
    x, grid = tensor_argument(types[0], "x"), tensor_argument(types[1], "grid")
    rank = x.ndim - 2
    if x.dtype.kind not in FLOAT_KINDS or grid.dtype.kind not in FLOAT_KINDS:
        raise TypeInferenceError(f"x and grid must be of {', '.join(FLOAT_KINDS)}, found {x.dtype} and {grid.dtype}")
    if rank < 1 or grid.ndim != rank + 2 or const_int(grid.shape[-1]) != rank:
        raise TypeInferenceError(f"grid must have a coordinate for each axis of x but batch and channels, found {grid}")
    batch = same_extent(x.shape[0], grid.shape[0], f"x has the batch {x.shape[0]}, but grid {grid.shape[0]}")
    _, channels, image = attrs.parts(x.shape)
    if any(const_int(extent) == 0 for extent in image):
        raise TypeInferenceError(f"{x} is empty: there is nothing to read")
    return TensorType(attrs.ordered(batch, channels, grid.shape[1:-1]), x.dtype)


def _compute(attrs: GridSampleAttrs, inputs: Tensors, result: Type) -> Tensor:
    x, grid = inputs
    kind = accumulator(x.dtype)
    lines = [GridLine(extent, attrs, kind) for extent in attrs.parts(x.shape)[2]]
    shape = tensor_argument(result, "result").shape
    rank, (batch, _, positions) = len(lines), attrs.parts(shape)

    def position(axis: int) -> Tensor:
        """The grid has the coordinate of the last axis first."""
        return te.compute(
            (batch, *positions),
            lambda *i: lines[axis].position(te.cast(grid[(*i, rank - 1 - axis)], kind)),
            name=f"grid_sample.place{axis}",
        )

    places = [position(axis) for axis in range(rank)]

    def element(*index: te.Axis) -> Expr:
        n, c, at = attrs.parts(index)
        taps = [line.taps(where[(n, *at)]) for line, where in zip(lines, places, strict=True)]
        parts: list[Expr] = []
        for corner in itertools.product(*taps):
            numbers = [line.index(number) for line, (number, _) in zip(lines, corner, strict=True)]
            value = widened(x[attrs.ordered(n.as_expr(), c.as_expr(), numbers)])
            if attrs.padding == "zeros":
                inside = [line.inside(number) for line, (number, _) in zip(lines, corner, strict=True)]
                value = te.select(all_of(inside), value, te.const(0, kind))
            parts.append(weighted(value, [weight for _, weight in corner if weight is not None]))
        return te.cast(sum(parts[1:], start=parts[0]), x.dtype)

    return te.compute(shape, element, name="grid_sample")


def _layout_rule(call: Call, given: ValueLayout | None, target: Target) -> Iterator[LayoutCandidate]:
    """Channels may be the last axis."""
    rank = tensor_of(call).ndim - 2
    if call.attrs.channels_last or not 1 <= rank <= 3:
        return
    last = ValueLayout(Layout(f"NC{spatial_axes(rank)}"), Layout(f"N{spatial_axes(rank)}C"))
    if given in (None, last):
        yield LayoutCandidate((last, None), replace(call.attrs, channels_last=True), last)


GRID_SAMPLE = register_op(
    "grid_sample",
    "x at the positions of a grid, whose coordinates of -1 to 1 span it; between its elements by interpolation",
    [
        ("x", "[batch, channels, …], or with the channels last"),
        (
            "grid",
            "[batch, …, axes]: the shape of the result, and a coordinate for each axis, the last one first",
        ),
    ],
    _relation,
    OpPattern.OUT_ELEMENTWISE_FUSABLE,
    GridSampleAttrs,
    support_level=5,
    layout_rule=_layout_rule,
)


@register_strategy(GRID_SAMPLE)
def _strategy(attrs: GridSampleAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    strategy, kind = OpStrategy(), tensor_argument(result, "result")
    batch, channels, positions = attrs.parts(kind.shape)
    corners = TAPS[attrs.mode] ** len(positions)
    one_by_one, lanes = corners * elements(kind) * ELEMENT_CYCLES, target.lanes(accumulator(kind.dtype))
    strategy.add_implementation(_compute, schedule_default, "grid_sample.generic", cost=one_by_one)
    if attrs.channels_last:
        vectors = math.ceil(elements_of([channels]) / lanes)
        cost = corners * elements_of((batch, *positions)) * (POSITION_CYCLES + vectors * VECTOR_CYCLES)
        strategy.add_implementation(compute_channels, schedule_channels, "grid_sample.channels", cost=cost)
    return strategy


def grid_sample(
    x: Node,
    grid: Node,
    mode: str = "linear",
    padding: str = "zeros",
    align_corners: bool = False,
    channels_last: bool = False,
) -> Call:
    """``x`` [batch, channels, …] at the positions of ``grid`` [batch, …, axes], whose coordinates of -1 to 1 span the
    image; that of the last axis comes first, as in ``torch.nn.functional.grid_sample``.

    ``mode`` is ``"linear"``, ``"nearest"`` or ``"cubic"``; beyond the image are ``"zeros"``, its ``"border"``, or its
    ``"reflection"``. ``align_corners``: -1 and 1 are the middles of the first and last elements, not their ends.
    ``channels_last``: x and the result are [batch, …, channels].
    """
    flags = flag(align_corners, "align_corners"), flag(channels_last, "channels_last")
    return GRID_SAMPLE(x, grid, attrs=GridSampleAttrs(mode, padding, *flags))
