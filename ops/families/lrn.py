"""Local response normalisation, ``nn.lrn``: each element by the squares of its neighbours on the axis of channels.

Vectors are of positions where these are innermost in the layout, and a task goes through the channels of a few vectors,
so that neighbours are in cache. Else they are of channels: the squares of a position stand in a row, with zeros at
both ends, which is read at each distance.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce

from ... import te
from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...base.target import Target
from ...graph.layout import Layout, source_index
from ...graph.node import Call, Node, tensor_of
from ...graph.types import Type
from ...ir.expr import Axis, Expr
from ...ir.makers import as_index
from ...ir.row_major import ravel_index, unravel_index
from ...lowering.schedule import Schedule
from ...schedules.around import schedule_around
from ...schedules.rows import extent_of
from ...te.tensor import Tensors
from ..definition.accumulate import accumulator
from ..definition.arguments import real
from ..definition.attrs import Attrs, attr, positive
from ..definition.condition import clause
from ..definition.cost import elements, moved
from ..definition.implementation import Stages
from ..definition.layout_rule import follow_layout
from ..definition.op_group import OpGroup
from ..definition.pattern_schedules import reduce_schedule
from ..definition.registry import OpPattern, register_op
from ..definition.relations import tensor_argument
from ..definition.strategy import OpStrategy, register_strategy
from .window import LAYOUT, axis_extents, rank_in, spatial_axes

GROUP = OpGroup.NORMALISATION

MOST_NEIGHBOURS = 16
"""So many squares are added by one expression; more are left to a loop."""
VECTORS = 8
"""Positions that a task goes through all channels with: what it reads again is in the first cache."""
POSITIONS = 8
"""Rows of squares that are made before the first is read: a read of what has just been written in two parts waits."""
CYCLES_OF_POWER = 40
"""What the power of a vector of numbers takes."""


@dataclass(frozen=True)
class LrnAttrs(Attrs):
    """The attributes of ``nn.lrn``."""

    size: int = attr("number of neighbouring channels", check=positive)
    alpha: float = attr("factor of the mean square", default=1e-4)
    beta: float = attr("exponent", default=0.75)
    bias: float = attr("added to the mean square", default=1.0)
    layout: str = attr(LAYOUT, default="")

    @property
    def before(self) -> int:
        """How many of the neighbours come before the channel itself: of an even number the smaller half."""
        return (self.size - 1) // 2


def _relation(types: Sequence[Type], attrs: LrnAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    if not x.dtype.is_float:
        raise TypeInferenceError(f"x must be of floats, found {x.dtype}")
    if x.ndim < 2:
        raise TypeInferenceError(f"x needs at least 2 axes, found {x}")
    if attrs.layout:
        axes = spatial_axes(rank_in(x, attrs.layout))
        axis_extents(x, attrs.layout, f"NC{axes}", "C", ("x", "layout"))
    return x


@dataclass(frozen=True, slots=True)
class _AxisOrder:
    """How N, C and the axes of positions stand in a layout; in this order where none is given."""

    layout: str

    def extents(self, shape: Sequence[Expr]) -> Sequence[Expr]:
        """The extents of N, C and the axes of positions, of a tensor with this shape."""
        if not self.layout:
            return shape
        named = Layout(self.layout).extents(shape)
        return [named[axis.name] for axis in self._plain.axes]

    def in_layout(self, index: Sequence[Expr]) -> tuple[Expr, ...]:
        """Where the element at n, c, … is in the layout."""
        return source_index(index, Layout(self.layout), self._plain) if self.layout else tuple(index)

    def from_layout(self, index: Sequence[Expr]) -> tuple[Expr, ...]:
        """The indices n, c, … of the element that has this index in the layout."""
        return source_index(index, self._plain, Layout(self.layout)) if self.layout else tuple(index)

    @property
    def _plain(self) -> Layout:
        return Layout(f"NC{spatial_axes(len(Layout(self.layout).names) - 2)}")


@dataclass(frozen=True, slots=True, eq=False)
class LrnStages(Stages):
    """The result, and the squares, ``[N, C + size - 1, position]``, of which those of the neighbours that are missing
    at both ends are 0."""

    squares: te.Tensor


def _compute(attrs: LrnAttrs, inputs: Tensors, result: Type) -> LrnStages:
    """The definition. Few squares are written out as one expression, which begins with the first of them: a reduction
    begins with 0, one addition more."""
    (x,) = inputs
    kind = accumulator(x.dtype)
    order = _AxisOrder(attrs.layout)
    images, channels, *spatial = order.extents(x.shape)
    positions = extent_of(spatial)

    def square(n: Axis, c: Axis, position: Axis) -> Expr:
        channel = c - attrs.before
        o = unravel_index(position.as_expr(), spatial) if spatial else ()
        value = te.cast(x[order.in_layout((as_index(n), channel, *o))], kind)
        inside = te.all(channel >= 0, channel < channels)
        return te.if_then_else(inside, value * value, te.const(0, kind))

    def neighbours(n: Expr, c: Expr, position: Expr) -> Expr:
        if attrs.size > MOST_NEIGHBOURS:
            return sums[n, c, position]
        return reduce(operator.add, [squares[n, c + tap, position] for tap in range(attrs.size)])

    def element(*i: Axis) -> Expr:
        n, c, *o = order.from_layout([as_index(index) for index in i])
        base = neighbours(n, c, ravel_index(o, spatial)) * (attrs.alpha / attrs.size) + attrs.bias
        return te.cast(te.cast(x[i], kind) * _inverse_power(base, attrs.beta), x.dtype)

    tap = te.reduce_axis((0, attrs.size), name="tap")
    squares = te.compute((images, channels + (attrs.size - 1), positions), square, name="lrn.squares")
    shape = images, channels, positions
    sums = te.compute(shape, lambda n, c, p: te.sum(squares[n, c + tap, p], axis=tap), name="lrn.sums")
    return LrnStages(te.compute(x.shape, element, name="lrn"), squares)


def _inverse_power(base: Expr, exponent: float) -> Expr:
    """Three quarters, which is the usual exponent, are taken by square roots."""
    if exponent == 0.75:
        root = te.rsqrt(base)
        return root * te.sqrt(root)
    return te.power(base, te.const(-exponent, base.dtype))


def _schedule_planes(attrs: LrnAttrs, anchor: LrnStages, outputs: Tensors, target: Target) -> Schedule:
    """A task goes through the channels of a few vectors of positions."""
    schedule, main = schedule_around(anchor.result, outputs, [], target)
    stage = schedule[main]
    n, c, *o = stage.loops
    lanes = target.lanes(main.dtype)
    chunk, position = stage.split(stage.fuse(*o), factor=VECTORS * lanes)
    vector, lane = stage.split(position, factor=lanes)
    stage.reorder(n, chunk, c, vector, lane)
    stage.vectorize(lane)
    stage.parallel(stage.fuse(n, chunk))
    return schedule


def _schedule_channels(attrs: LrnAttrs, anchor: LrnStages, outputs: Tensors, target: Target) -> Schedule:
    """The squares of some positions are written to rows of channels, which are read at each distance."""
    schedule, main = schedule_around(anchor.result, outputs, [anchor.squares], target)
    stage = schedule[main]
    n, *outer, last = stage.loops
    data = Layout(attrs.layout)
    block = [outer.pop(data.position("C") - 1)] if data.is_blocked else []
    vector, lane = stage.split(last, factor=target.lanes(main.dtype))
    stage.reorder(n, *outer, *block, vector, lane)
    chunk, position = stage.split(stage.fuse(*outer), factor=POSITIONS)
    stage.reorder(n, chunk, *block, position, vector, lane)
    stage.vectorize(lane)
    task = stage.fuse(n, chunk)
    stage.parallel(task)
    row = schedule[_in_vectors_of_x(schedule, anchor.squares, attrs.before, target)]
    schedule[anchor.squares].compute_inline()
    row.compute_at(stage, task)
    n, position, vector, lane = row.loops
    if block:
        row.reorder(n, vector, position, lane)
    row.vectorize(lane)
    return schedule


def _in_vectors_of_x(schedule: Schedule, squares: te.Tensor, before: int, target: Target) -> te.Tensor:
    """Compute squares as ``[n, position, vector, lane]``, where a vector is of the same channels as in x."""
    lanes = target.lanes(squares.dtype)
    zeros = -before % lanes
    return schedule.cache_write(
        squares, "local", axes=lambda n, c, position: (n, position, (c + zeros) // lanes, (c + zeros) % lanes)
    )


def _primal(call: Call) -> Layout:
    rank = tensor_of(call).ndim
    return Layout(f"NC{spatial_axes(rank - 2)}" if 3 <= rank <= 5 else "NC")


LRN = register_op(
    "nn.lrn",
    "Local response normalisation: x / (bias + alpha / size · Σ x² over neighbouring channels)^beta",
    [("x", "[N, C, …], or in its layout")],
    _relation,
    OpPattern.OUT_ELEMENTWISE_FUSABLE,
    LrnAttrs,
    support_level=2,
    layout_rule=follow_layout(_primal),
)


@register_strategy(LRN)
def _strategy(attrs: LrnAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    kind = tensor_argument(result, "result")
    strategy = OpStrategy()
    strategy.add_implementation(_compute, reduce_schedule.for_target(target), "nn.lrn.generic")
    few = clause("few neighbours", attrs.size <= MOST_NEIGHBOURS)
    cost = moved([kind, kind]) + (CYCLES_OF_POWER + attrs.size) * elements(kind) / target.lanes(kind.dtype)
    with strategy.specialized(few):
        if attrs.layout and Layout(attrs.layout).axes[-1].name == "C":
            strategy.add_implementation(_compute, _schedule_channels, "nn.lrn.channels", cost=cost)
        elif kind.ndim > 2 and not Layout(attrs.layout or "NC").is_blocked:
            strategy.add_implementation(_compute, _schedule_planes, "nn.lrn.planes", cost=cost)
    return strategy


def lrn(x: Node, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0, layout: str = "") -> Call:
    """Local response normalisation over ``size`` neighbouring channels, (size - 1) // 2 of them before."""
    return LRN(x, attrs=LrnAttrs(size, real(alpha, "alpha"), real(beta, "beta"), real(bias, "bias"), layout))
