"""Implementations of convolutions for 8-bit integers: sums in int32, four channels at a time, in words of four bytes.

In words, a convolution of bytes is one of numbers: its spatial axes are flattened as ``flat.py`` does it, or, where
they are open, stay rows, as those of ``open_rows.py``. Weights whose layout has the channels of a word side by side,
``OIHW4i``, are read as they lie; others are packed in each call.
With few channels in a group, words would be mostly empty; there, bytes are multiplied as int32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from .... import te
from ....base.target import Target
from ....graph.layout import Layout, rearranged
from ....graph.node import Constant, tensor_of
from ....graph.types import Type
from ....ir.constants import const_int
from ....ir.expr import Axis, Expr
from ....ir.makers import as_index
from ....ir.row_major import unravel_index
from ....lowering.schedule import Schedule
from ....schedules.default_schedule import schedule_freely
from ....te.tensor import Tensor, Tensors
from ...definition.accumulate import is_byte
from ...definition.strategy import OpStrategy, Stages
from ..byte_words import BYTES, ByteProduct, count_words, word
from ..window import spatial_axes
from .attrs import ConvAttrs
from .definition import DefinedStages, Terms, definition
from .flat import Flat, Pointwise, Shifted
from .open_rows import OpenRows
from .problem import ConvProblem

LEAST_CHANNELS = 3
"""Words of fewer channels, the rest filled up with zeros, are slower than one product a channel."""


def word_layout(rank: int) -> str:
    """The layout of weights in which words lie ready."""
    return f"OI{spatial_axes(rank)}{BYTES}i"


def in_words(weight: Constant, rank: int) -> tuple[Constant, str]:
    """A weight [K, C, …] with words ready, if it is of bytes and its channels fill them, and the layout that it has."""
    plain, packed = f"OI{spatial_axes(rank)}", word_layout(rank)
    kind = tensor_of(weight)
    if not is_byte(kind.dtype) or kind.ndim != rank + 2 or (const_int(kind.shape[1]) or 1) % BYTES:
        return weight, plain
    return Constant(rearranged(weight.value, Layout(plain), Layout(packed)), weight.name), packed


@dataclass(frozen=True, slots=True)
class ByteStages(Stages):
    """The convolution of words, the words of the filters, if they are made here, and the sum of each filter's weights,
    if it is needed."""

    flat: DefinedStages
    words: Tensor | None = None
    filter_sums: Tensor | None = None


@dataclass(frozen=True, slots=True)
class ByteConv:
    """A convolution of words of bytes, or of single channels widened to int32. ``problem`` is that of bytes, as the
    call has it, and ``made`` schedules the sums."""

    problem: ConvProblem
    made: Pointwise | Shifted | OpenRows
    in_words: bool

    @property
    def packed(self) -> bool:
        """Whether the words of the filters lie ready."""
        return not self.problem.has_plain_kernel

    def compute(self, attrs: ConvAttrs, inputs: Tensors, result: Type) -> ByteStages:
        """The sums in int32: of words of four channels, with a correction by the filters' sums where signs ask for it,
        or of single channels widened to int32."""
        x, weight = inputs
        if not self.in_words:
            wide = Terms(_widened, lambda value, factor: value * _widened(factor), lambda total, _: total)
            made = definition(attrs, inputs, result, wide)
            return ByteStages(made.result, made)
        product = ByteProduct(weight.dtype, x.dtype)
        sums = _filter_sums(weight)

        def finish(total: Expr, k: Axis) -> Expr:
            return total + product.correction(sums[k]) if product.shifted else total

        terms = Terms(product.right_word, lambda value, factor: product.multiply(factor, value), finish)
        words = self._filter_words(weight)
        of_words = replace(attrs, kernel_layout=str(self.problem.plain_kernel))
        made = definition(of_words, (self._channel_words(x, attrs.groups), words), result, terms)
        return ByteStages(made.result, made, None if self.packed else words, sums if product.shifted else None)

    def _channel_words(self, x: Tensor, groups: int) -> Tensor:
        channels = self.problem.group_channels
        count = count_words(channels)

        def element(n: Axis, w: Axis, *place: Axis) -> Expr:
            first = w // count * channels
            return word(lambda c: x[(n, first + c, *place)], w % count, channels)

        return te.compute((x.shape[0], groups * count, *x.shape[2:]), element, name="conv.words")

    def _filter_words(self, weight: Tensor) -> Tensor:
        """[K, words, window…]"""
        channels = self.problem.group_channels

        def element(k: Axis, w: Axis, *taps: Axis) -> Expr:
            if self.packed:
                return word(lambda c: weight[(k, w, *taps, c - w * BYTES)], as_index(w), channels)
            return word(lambda c: weight[(k, c, *taps)], as_index(w), channels)

        window = weight.shape[2 : 2 + self.problem.rank]
        return te.compute((weight.shape[0], count_words(channels), *window), element, name="conv.filters")

    def schedule(self, attrs: ConvAttrs, anchor: ByteStages, outputs: Tensors, target: Target) -> Schedule:
        """The schedule of the convolution of words, with the words and sums of the filters, which are made before
        it."""
        words, sums = anchor.words, anchor.filter_sums
        keep = [tensor for tensor in (words, sums) if tensor is not None]
        schedule = self.made.schedule_sums(anchor.flat, outputs, target, keep)
        if words is not None:
            schedule_freely(schedule, schedule[words].name, target)
        if sums is not None:
            _schedule_sums(schedule, sums, self.problem.reduction_extent, target)
        return schedule


def _widened(value: Expr) -> Expr:
    return te.cast(value, "int32")


def _filter_sums(weight: Tensor) -> Tensor:
    """The sum of each filter's weights, which lie side by side."""
    extents = [const_int(e) or 0 for e in weight.shape[1:]]
    at = te.reduce_axis((0, math.prod(extents)), name="at")

    def element(k: Axis) -> Expr:
        return te.sum(_widened(weight[(k, *unravel_index(as_index(at), extents))]), axis=at)

    return te.compute(weight.shape[:1], element, name="conv.filter_sums")


def _schedule_sums(schedule: Schedule, sums: Tensor, terms: int, target: Target) -> None:
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


def add_byte_conv(strategy: OpStrategy, problem: ConvProblem) -> None:
    """Offer it where N and C stand before the spatial axes."""
    packed, outputs = problem.attrs.kernel_layout == word_layout(problem.rank), problem.outputs
    if not (problem.is_plain and (packed or problem.has_plain_kernel)):
        return
    channels = problem.group_channels
    in_words = packed or channels >= LEAST_CHANNELS
    if outputs is None:
        if in_words:
            rows = ByteConv(problem, OpenRows(problem.group_filters), in_words)
            strategy.add_implementation(rows.compute, rows.schedule, "conv.bytes_open", plevel=17)
        return
    factors = (count_words(channels) if in_words else channels) * math.prod(problem.window)
    flat = Flat.of(problem, outputs, factors)
    made = ByteConv(problem, Pointwise(flat, pack=True) if problem.is_pointwise else Shifted(flat), in_words)
    name, plevel = ("conv.bytes_pointwise", 20) if problem.is_pointwise else ("conv.bytes_shifted", 15)
    strategy.add_implementation(made.compute, made.schedule, name, plevel)
