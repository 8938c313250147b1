"""Implementations of convolutions for 8-bit integers: sums in int32, four products at a time, of words of four bytes.

In words (``byte_operands.py``), a convolution of bytes is one of numbers: its spatial axes are flattened as ``flat.py``
does it, or, where they are open, as ``open_flat.py`` and ``open_pointwise.py``. Where words of channels would be
emptier, as of few channels in a group, they are of taps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from ....base.dataclass import dataclass
from ....base.target import Target
from ....graph.types import Type
from ....ir.expr import Axis, Expr
from ....ir.open_extents import LONG
from ....lowering.schedule import Schedule
from ....te.tensor import Tensor, Tensors
from ...definition.cost import moved
from ...definition.relations import tensor_argument
from ...definition.strategy import OpStrategy, Stages
from ..byte_words import BYTES, ByteProduct
from .attrs import ConvAttrs
from .byte_dots import OnePosition
from .byte_floats import ByteFloats
from .byte_operands import (
    LEAST_CHANNELS,
    ChannelWords,
    TapWords,
    filter_sums,
    schedule_filter_sums,
    word_layout,
)
from .byte_rows import add_byte_rows
from .byte_tiles import FilterTiles, TiledConv
from .definition import DefinedStages, Terms, definition
from .flat import Flat, Pointwise, Shifted
from .open_flat import OpenFlat, flat_definition
from .open_pointwise import InRows, one_row_definition
from .open_rows import OpenRows
from .problem import ConvProblem

Definition: TypeAlias = Callable[[ConvAttrs, Tensors, Type, Terms], DefinedStages]


@dataclass(frozen=True, slots=True)
class ByteStages(Stages):
    """The convolution of words, the words of x, those of the filters, if they are made here, and the sum of each
    filter's weights, if it is needed."""

    flat: DefinedStages
    filters: Tensor | None = None
    filter_sums: Tensor | None = None


@dataclass(frozen=True, slots=True)
class ByteConv:
    """A convolution of ``words``, by a ``definition`` of sums that ``made`` schedules."""

    words: ChannelWords | TapWords
    definition: Definition
    made: Pointwise | Shifted | OpenFlat | InRows | OnePosition | TiledConv

    def compute(self, attrs: ConvAttrs, inputs: Tensors, result: Type) -> ByteStages:
        """The sums in int32, with a correction by the filters' sums where signs ask for it."""
        x, weight = inputs
        product = ByteProduct(weight.dtype, x.dtype)
        sums, filters = filter_sums(weight), self.words.of_filters(weight)

        def finish(total: Expr, k: Axis) -> Expr:
            return total + product.correction(sums[k]) if product.shifted else total

        terms = Terms(product.right_word, lambda value, factor: product.multiply(factor, value), finish)
        outputs = tensor_argument(result, "result").shape[2:]
        words = self.words.of_x(x, attrs, outputs)
        made = replace(self.definition(self.words.attrs(attrs), (words, filters), result, terms), x=x)
        return ByteStages(made.result, made, None if self.words.ready else filters, sums if product.shifted else None)

    def schedule(self, attrs: ConvAttrs, anchor: ByteStages, outputs: Tensors, target: Target) -> Schedule:
        """The schedule of the convolution of words, with the words and sums of the filters, which are made before
        it."""
        filters, sums = anchor.filters, anchor.filter_sums
        keep = [tensor for tensor in (filters, sums) if tensor is not None]
        schedule = self.made.schedule_sums(anchor.flat, outputs, target, keep)
        if filters is not None:
            self.words.schedule_filters(schedule, filters, target)
        if sums is not None:
            schedule_filter_sums(schedule, sums, self.words.problem.reduction_extent, target)
        return schedule


def _has_words_of_taps(problem: ConvProblem) -> bool:
    """Whether words are of taps: with few channels in a group, and where they are fewer than those of channels, as in
    first layers. What lies far apart in x, or behind masks, takes longer to bring together than that saves."""
    if problem.group_channels < LEAST_CHANNELS:
        return True
    near = problem.outputs is not None and problem.attrs.strides[-1] <= BYTES
    return near and TapWords(problem).count_of_filter < ChannelWords(problem).count_of_filter


def add_byte_conv(strategy: OpStrategy, problem: ConvProblem) -> None:
    """Offer it where N and C stand before the spatial axes."""
    packed = problem.attrs.kernel_layout == word_layout(problem.rank)
    if not (problem.is_plain and (packed or problem.has_plain_kernel)):
        return

    def offer(made: ByteConv, name: str, lost: float = 0.0) -> None:
        strategy.add_implementation(made.compute, made.schedule, name, cost=cost + lost)

    cost = moved(problem.types)

    if not packed and _has_words_of_taps(problem):
        floats = ByteFloats(problem)
        if floats.is_exact and problem.is_depthwise and not problem.target.multiplies_bytes:
            strategy.add_implementation(floats.compute, floats.schedule, "conv.bytes_floats", cost=cost)
        if problem.is_depthwise and problem.target.multiplies_bytes:
            add_byte_rows(strategy, problem, cost)
            return
        offer(ByteConv(TapWords(problem), flat_definition, OpenFlat(problem.group_filters)), "conv.bytes_taps")
        return
    words, outputs = ChannelWords(problem), problem.outputs
    if outputs is not None:
        flat = Flat.of(problem, outputs, words.count_of_filter)
        tiled = TiledConv.of(problem, flat)
        if tiled is not None:
            offer(ByteConv(words, definition, tiled), "conv.bytes_tiles", tiled.tiles.lost)
        if OnePosition.serves(problem, words.count):
            offer(ByteConv(words, definition, OnePosition(problem)), "conv.bytes_dots")
        elif problem.is_pointwise:
            offer(ByteConv(words, definition, Pointwise(flat, pack=True)), "conv.bytes_pointwise")
        else:
            offer(ByteConv(words, definition, Shifted(flat)), "conv.bytes_shifted")
        return
    tiles = FilterTiles.of(problem, LONG)
    if tiles is not None:
        made = ByteConv(words, flat_definition, OpenFlat(problem.group_filters, tiles=tiles))
        offer(made, "conv.bytes_open_tiles", tiles.lost)
    if problem.is_pointwise:
        rows = InRows(OpenRows(problem.group_filters))
        offer(ByteConv(words, one_row_definition, rows), "conv.bytes_open_pointwise")
    else:
        offer(ByteConv(words, flat_definition, OpenFlat(problem.group_filters, words.ready)), "conv.bytes_open")
