"""Operands of convolutions of 8-bit integers as words of four bytes: of four channels, or of four taps of a row.

In words, a convolution is one of numbers, whose attributes differ where words are of taps: these have gone through the
last axis of the window, so that what is left of it has one element. Weights whose layout has the channels of a word
side by side, and the words of a tap, ``OHWI4i``, are read as they lie; others are packed in each call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from .... import te
from ....base.dataclass import dataclass
from ....base.target import Target
from ....graph.layout import Layout, rearranged
from ....graph.node import Constant, tensor_of
from ....ir.constants import ONE, const_int
from ....ir.expr import Axis, Expr
from ....ir.makers import as_index
from ....ir.row_major import unravel_index
from ....lowering.schedule import Schedule
from ....schedules.default_schedule import schedule_freely
from ....te.tensor import Tensor
from ...definition.accumulate import is_byte
from ..byte_words import BYTES, count_words, word
from ..window import spatial_axes
from .attrs import ConvAttrs
from .problem import ConvProblem

LEAST_CHANNELS = 3
"""Words of fewer channels would be mostly filled up with zeros."""


def word_layout(rank: int) -> str:
    """The layout of weights in which words of channels lie ready."""
    return f"O{spatial_axes(rank)}I{BYTES}i"


def in_words(weight: Constant, rank: int) -> tuple[Constant, str]:
    """A weight [K, C, …] with words ready, if it is of bytes and its channels fill them, and the layout that it has."""
    plain, packed = f"OI{spatial_axes(rank)}", word_layout(rank)
    kind = tensor_of(weight)
    if not is_byte(kind.dtype) or kind.ndim != rank + 2 or (const_int(kind.shape[1]) or 1) % BYTES:
        return weight, plain
    return Constant(rearranged(weight.value, Layout(plain), Layout(packed)), weight.name), packed


@dataclass(frozen=True, slots=True)
class ChannelWords:
    """Words of four channels of a group."""

    problem: ConvProblem

    @property
    def ready(self) -> bool:
        """Whether the words of the filters are."""
        return not self.problem.has_plain_kernel

    @property
    def count(self) -> int:
        """How many words stand for the channels of a group."""
        return count_words(self.problem.group_channels)

    @property
    def count_of_filter(self) -> int:
        """How many words a filter has."""
        return self.count * math.prod(self.problem.window)

    def attrs(self, attrs: ConvAttrs) -> ConvAttrs:
        """The attributes of the convolution of words."""
        return replace(attrs, kernel_layout=str(self.problem.plain_kernel))

    def of_x(self, x: Tensor, attrs: ConvAttrs, outputs: Sequence[Expr]) -> Tensor:
        """The words of x, of which ``outputs`` are the spatial extents of the result."""
        channels = self.problem.group_channels

        def element(n: Axis, w: Axis, *place: Axis) -> Expr:
            first = w // self.count * channels
            return word(lambda c: x[(n, first + c, *place)], w % self.count, channels)

        return te.compute((x.shape[0], attrs.groups * self.count, *x.shape[2:]), element, name="conv.words")

    def of_filters(self, weight: Tensor) -> Tensor:
        """The words of filters, [K, words, window…]."""
        channels = self.problem.group_channels

        def element(k: Axis, w: Axis, *taps: Axis) -> Expr:
            if self.ready:
                return word(lambda c: weight[(k, *taps, w, c - w * BYTES)], as_index(w), channels)
            return word(lambda c: weight[(k, c, *taps)], as_index(w), channels)

        first = 1 if self.ready else 2
        window = weight.shape[first : first + self.problem.rank]
        return te.compute((weight.shape[0], self.count, *window), element, name="conv.filters")

    def schedule_filters(self, schedule: Schedule, filters: Tensor, target: Target) -> None:
        """Schedule the words of the filters as any compute."""
        schedule_freely(schedule, schedule[filters].name, target)


@dataclass(frozen=True, slots=True)
class TapWords:
    """Words of four taps of a row of the window, those of each channel after the other."""

    problem: ConvProblem

    @property
    def ready(self) -> bool:
        """Whether the words of the filters are, which they never are."""
        return False

    @property
    def count(self) -> int:
        """How many words stand for a row of the window."""
        return count_words(self.problem.window[-1])

    @property
    def count_of_filter(self) -> int:
        """How many words a filter has."""
        return self.problem.group_channels * math.prod(self.problem.window[:-1]) * self.count

    def attrs(self, attrs: ConvAttrs) -> ConvAttrs:
        """The attributes of the convolution of words, which stand where outputs do along the last axis."""
        rank = attrs.rank
        padding = (*attrs.padding[: rank - 1], 0, *attrs.padding[rank:-1], 0)
        strides, dilation = (*attrs.strides[:-1], 1), (*attrs.dilation[:-1], 1)
        return replace(attrs, strides=strides, dilation=dilation, padding=padding, kernel_size=None)

    def of_x(self, x: Tensor, attrs: ConvAttrs, outputs: Sequence[Expr]) -> Tensor:
        """The words of x, of which ``outputs`` are the spatial extents of the result."""
        stride, dilation, pad = attrs.strides[-1], attrs.dilation[-1], attrs.padding[attrs.rank - 1]
        zero = te.const(0, x.dtype)

        def element(n: Axis, w: Axis, *place: Axis) -> Expr:
            def tap(t: Expr) -> Expr:
                column = place[-1] * stride + t * dilation - pad
                inside = te.all(column >= 0, column < x.shape[-1])
                return te.if_then_else(inside, x[(n, w // self.count, *place[:-1], column)], zero)

            return word(tap, w % self.count, self.problem.window[-1])

        shape = (x.shape[0], x.shape[1] * self.count, *x.shape[2:-1], outputs[-1])
        return te.compute(shape, element, name="conv.words")

    def of_filters(self, weight: Tensor) -> Tensor:
        """The words of filters, [K, words, window…, 1]."""
        *window, taps = self.problem.window

        def element(k: Axis, w: Axis, *place: Axis) -> Expr:
            return word(lambda t: weight[(k, w // self.count, *place[:-1], t)], w % self.count, taps)

        shape = (weight.shape[0], weight.shape[1] * self.count, *map(as_index, window), ONE)
        return te.compute(shape, element, name="conv.filters")

    def schedule_filters(self, schedule: Schedule, filters: Tensor, target: Target) -> None:
        """Vectors of the rows of all windows, whose first words are stored before all second ones: so the taps of a
        word are the same for all lanes."""
        stage = schedule[filters]
        names = ", ".join(f"p{d}" for d in range(self.problem.rank))
        stage.transform_layout(f"lambda k, w, {names}: (w % {self.count}, k, w // {self.count}, {names})")
        k, w, *place = stage.loops
        channel, part = stage.split(w, factor=self.count)
        stage.reorder(part, k, channel, *place)
        stage.unroll(part)
        _, lane = stage.split(reduce(stage.fuse, [k, channel, *place]), factor=target.lanes(filters.dtype))
        stage.vectorize(lane)


def filter_sums(weight: Tensor) -> Tensor:
    """The sum of each filter's weights, which lie side by side."""
    extents = [const_int(e) or 0 for e in weight.shape[1:]]
    at = te.reduce_axis((0, math.prod(extents)), name="at")

    def element(k: Axis) -> Expr:
        return te.sum(te.cast(weight[(k, *unravel_index(as_index(at), extents))], "int32"), axis=at)

    return te.compute(weight.shape[:1], element, name="conv.filter_sums")


def schedule_filter_sums(schedule: Schedule, sums: Tensor, terms: int, target: Target) -> None:
    """Filter by filter, in lanes, if there are terms enough for it."""
    stage = schedule[sums]
    k, at = stage.loops
    lanes = target.lanes(sums.dtype)
    if terms >= 2 * lanes:
        _, lane = stage.split(at, factor=lanes)
        partial = schedule.rfactor(sums, lane, factor_axis=-1)
        schedule[partial].compute_at(stage, k)
        *_, lane, rest = schedule[partial].loops
        schedule[partial].reorder(rest, lane)
        schedule[partial].vectorize(lane)
    stage.parallel(k)
