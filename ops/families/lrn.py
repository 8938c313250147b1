"""Local response normalisation, ``nn.lrn``: each element by the squares of its neighbours on the axis of channels.

Vectors are of positions where these are innermost in the layout, and a task goes through the channels of a few vectors,
so that neighbours are in cache. Else they are of channels: the squares of a position are laid out in a row, which has
zeros at both ends, and is read at each distance.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from ... import te
from ...base.errors import TypeInferenceError
from ...base.target import Target
from ...graph.layout import Layout, source_index
from ...graph.node import Call, Node, tensor_of
from ...graph.types import Type
from ...ir.constants import const_int
from ...ir.expr import Axis, Expr
from ...ir.makers import as_index
from ...lowering.schedule import Schedule
from ...schedules.around import schedule_around
from ...te.tensor import Tensors
from ..definition.accumulate import accumulator
from ..definition.arguments import real
from ..definition.attrs import Attrs, attr, positive
from ..definition.condition import clause
from ..definition.cost import elements, moved
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
PLACES = 8
"""Rows of squares that are made before the first is read: a read of what has just been written in two parts waits."""
CYCLES_OF_POWER = 40
"""Of a power of a vector."""


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


def _neighbour(attrs: LrnAttrs, x: te.Tensor) -> Callable[[Sequence[Axis], Expr], tuple[Expr, Expr]]:
    """``read(index, distance)``: the element so many channels on from the one at an index, and whether there is one."""
    if not attrs.layout:

        def read(index: Sequence[Axis], distance: Expr) -> tuple[Expr, Expr]:
            n, c, *o = index
            channel = c + distance
            return x[(n, channel, *o)], te.all(channel >= 0, channel < x.shape[1])

        return read
    data = Layout(attrs.layout)
    primal, channels = _primal_of(attrs.layout), data.extents(x.shape)["C"]

    def read_in_layout(index: Sequence[Axis], distance: Expr) -> tuple[Expr, Expr]:
        n, c, *o = source_index([as_index(i) for i in index], primal, data)
        channel = c + distance
        value = x[source_index((n, channel, *o), data, primal)]
        return value, te.all(channel >= 0, channel < channels)

    return read_in_layout


def _primal_of(layout: str) -> Layout:
    return Layout(f"NC{spatial_axes(len(Layout(layout).names) - 2)}")


def _normalised(attrs: LrnAttrs, x: te.Tensor, squares: Callable[[Sequence[Axis]], Expr]) -> te.Tensor:
    kind = accumulator(x.dtype)

    def element(*i: Axis) -> Expr:
        base = squares(i) * (attrs.alpha / attrs.size) + attrs.bias
        return te.cast(te.cast(x[i], kind) * _inverse_power(base, attrs.beta), x.dtype)

    return te.compute(x.shape, element, name="lrn")


def _inverse_power(base: Expr, exponent: float) -> Expr:
    """Three quarters, which is the usual exponent, are taken by square roots."""
    if exponent == 0.75:
        root = te.rsqrt(base)
        return root * te.sqrt(root)
    return te.power(base, te.const(-exponent, base.dtype))


def _compute(attrs: LrnAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    """Normalise over any number of neighbours."""
    (x,) = inputs
    kind = accumulator(x.dtype)
    tap = te.reduce_axis((0, attrs.size), name="tap")
    read = _neighbour(attrs, x)

    def squares(*index: Axis) -> Expr:
        value, inside = read(index, as_index(tap) - attrs.before)
        wide = te.cast(value, kind)
        return te.sum(te.if_then_else(inside, wide * wide, te.const(0, kind)), axis=tap)

    sums = te.compute(x.shape, squares, name="lrn.squares")
    return _normalised(attrs, x, lambda i: sums[tuple(i)])


# Vectors of positions


def _compute_planes(attrs: LrnAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs
    kind = accumulator(x.dtype)
    read = _neighbour(attrs, x)

    def squares(index: Sequence[Axis]) -> Expr:
        def square(tap: int) -> Expr:
            value, inside = read(index, as_index(tap - attrs.before))
            wide = te.cast(value, kind)
            return te.if_then_else(inside, wide * wide, te.const(0, kind))

        return reduce(operator.add, map(square, range(attrs.size)))

    return _normalised(attrs, x, squares)


def _schedule_planes(attrs: LrnAttrs, anchor: Tensors, outputs: Tensors, target: Target) -> Schedule:
    schedule, main = schedule_around(anchor[0], outputs, [], target)
    stage = schedule[main]
    n, c, *o = stage.loops
    lanes = target.lanes(main.dtype)
    chunk, place = stage.split(stage.fuse(*o), factor=VECTORS * lanes)
    vector, lane = stage.split(place, factor=lanes)
    stage.reorder(n, chunk, c, vector, lane)
    stage.vectorize(lane)
    stage.parallel(stage.fuse(n, chunk))
    return schedule


# Vectors of channels


@dataclass(frozen=True, slots=True)
class _ChannelRows:
    """A row of squares is made vector by vector, and vectors of zeros stand at both its ends: then a vector is of the
    same channels as in x."""

    data: Layout
    channels: int
    lanes: int
    margin: int
    """How many zeros: a multiple of the lanes."""

    def compute(self, attrs: LrnAttrs, inputs: Tensors, result: Type) -> te.Tensor:
        (x,) = inputs
        kind = accumulator(x.dtype)
        primal = _primal_of(attrs.layout)
        extents = self.data.extents(x.shape)
        positions = [extents[axis] for axis in primal.names if axis != "C"]

        def square(n: Axis, *index: Axis) -> Expr:
            *o, vector, lane = index
            channel = vector * self.lanes + lane - self.margin
            value = te.cast(x[source_index((as_index(n), channel, *map(as_index, o)), self.data, primal)], kind)
            return te.if_then_else(te.all(channel >= 0, channel < self.channels), value * value, te.const(0, kind))

        vectors = -(-(self.channels + 2 * self.margin) // self.lanes)
        row = te.compute((*positions, vectors, self.lanes), square, name="lrn.row")

        def squares(index: Sequence[Axis]) -> Expr:
            n, c, *o = source_index([as_index(i) for i in index], primal, self.data)
            first = c + (self.margin - attrs.before)
            near = [first + tap for tap in range(attrs.size)]
            return reduce(operator.add, [row[(n, *o, at // self.lanes, at % self.lanes)] for at in near])

        return _normalised(attrs, x, squares)

    def schedule(self, attrs: LrnAttrs, anchor: Tensors, outputs: Tensors, target: Target) -> Schedule:
        row = next(t for t in anchor[0].op.inputs if t.op.inputs)
        schedule, main = schedule_around(anchor[0], outputs, [row], target)
        stage = schedule[main]
        *outer, last = stage.loops
        block = [outer.pop(self.data.position("C"))] if self.data.is_blocked else []
        vector, lane = stage.split(last, factor=target.lanes(main.dtype))
        *tasks, place = outer
        chunk, place = stage.split(place, factor=PLACES)
        stage.reorder(*tasks, chunk, *block, place, vector, lane)
        stage.vectorize(lane)
        stage.parallel(stage.fuse(*tasks))
        schedule[row].compute_at(stage, chunk)
        *_, place, vector, lane = schedule[row].loops
        if block:
            schedule[row].reorder(vector, place, lane)
        schedule[row].vectorize(lane)
        return schedule


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
    if attrs.layout and Layout(attrs.layout).axes[-1].name == "C":
        data = Layout(attrs.layout)
        channels = const_int(data.extents(kind.shape)["C"])
        if channels is not None:
            lanes = target.lanes(accumulator(kind.dtype))
            rows = _ChannelRows(data, channels, lanes, -(-attrs.size // lanes) * lanes)
            with strategy.specialized(few):
                strategy.add_implementation(rows.compute, rows.schedule, "nn.lrn.channels", plevel=20, cost=cost)
    elif kind.ndim > 2 and not Layout(attrs.layout or "NC").is_blocked:
        with strategy.specialized(few):
            strategy.add_implementation(_compute_planes, _schedule_planes, "nn.lrn.planes", plevel=20, cost=cost)
    return strategy


def lrn(x: Node, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0, layout: str = "") -> Call:
    """Local response normalisation over ``size`` neighbouring channels, (size - 1) // 2 of them before."""
    return LRN(x, attrs=LrnAttrs(size, real(alpha, "alpha"), real(beta, "beta"), real(bias, "bias"), layout))
