"""Depthwise convolutions of 8-bit integers, where a core multiplies four bytes at once: vectors of neighbours in a row.

Words are of four taps of a row of the window (``byte_operands.py``). They are brought together in registers, by a
shuffle of what lies in a copy of an image with its padding: outputs below each other in a tile share them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from .... import te
from ....base.dataclass import dataclass
from ....base.target import Target
from ....graph.types import Type
from ....ir.expr import Axis, Expr
from ....lowering.schedule import LoopView, Schedule, StageView
from ....schedules.around import schedule_around_sums
from ....schedules.vector_rows import vectorize_row
from ....te.tensor import Tensor, Tensors
from ...definition.condition import clause
from ...definition.relations import tensor_argument
from ...definition.strategy import OpStrategy, Stages
from ..byte_words import ByteProduct, word
from ..window import padded
from .attrs import ConvAttrs
from .byte_operands import TapWords, filter_sums, schedule_filter_sums
from .definition import DefinedStages, Terms, definition
from .depthwise import MOST_UNROLLED, SHORT_ROW, rows_for
from .flat import lanes_for
from .problem import ConvProblem

OPEN_ROWS = 4
"""Rows of a tile of an open number of them."""


def add_byte_rows(strategy: OpStrategy, problem: ConvProblem, cost: float) -> None:
    """Offer it; for an open length of rows once more for short ones."""
    columns, width = problem.assumed_outputs[-1], problem.open_width
    if width is not None and problem.lanes >= 2 * SHORT_ROW:
        with strategy.specialized(clause("short rows", width <= SHORT_ROW)):
            short = ByteRows(problem, SHORT_ROW)
            strategy.add_implementation(short.compute, short.schedule, "conv.bytes_short_rows", cost=cost)
    made = ByteRows(problem, columns)
    strategy.add_implementation(made.compute, made.schedule, "conv.bytes_rows", cost=cost)


@dataclass(frozen=True, slots=True)
class ByteRowStages(Stages):
    """The convolution of ``words``, which are of the bytes of ``image``, x with its padding or x itself; the words of
    the filters; and the sum of each filter's weights, if it is needed."""

    made: DefinedStages
    image: Tensor
    words: Tensor
    filters: Tensor
    filter_sums: Tensor | None


@dataclass(frozen=True, slots=True)
class ByteRows:
    """A depthwise convolution of bytes."""

    problem: ConvProblem
    columns: int
    """The extent of a row of outputs, or about that where it is open."""

    def compute(self, attrs: ConvAttrs, inputs: Tensors, result: Type) -> ByteRowStages:
        """The sums in int32, with a correction by the filters' sums where signs ask for it."""
        x, weight = inputs
        product, taps = ByteProduct(weight.dtype, x.dtype), TapWords(self.problem)
        sums, filters = filter_sums(weight), taps.of_filters(weight)

        def finish(total: Expr, k: Axis) -> Expr:
            return total + product.correction(sums[k]) if product.shifted else total

        terms = Terms(product.right_word, lambda value, factor: product.multiply(factor, value), finish)
        image = padded(x, attrs.data, attrs.padding, "conv.image")
        words = self._words(image, attrs, tensor_argument(result, "result").shape[-1])
        alone = replace(taps.attrs(attrs), padding=(0,) * (2 * attrs.rank))
        made = replace(definition(alone, (words, filters), result, terms), x=x)
        return ByteRowStages(made.result, made, image, words, filters, sums if product.shifted else None)

    def _words(self, image: Tensor, attrs: ConvAttrs, columns: Expr) -> Tensor:
        """The words that outputs of so many columns read, w for a row of the window."""
        count, stride, dilation = TapWords(self.problem).count, attrs.strides[-1], attrs.dilation[-1]

        def element(n: Axis, w: Axis, *place: Axis) -> Expr:
            def tap(t: Expr) -> Expr:
                return image[(n, w // count, *place[:-1], place[-1] * stride + t * dilation)]

            return word(tap, w % count, self.problem.window[-1])

        shape = (image.shape[0], image.shape[1] * count, *image.shape[2:-1], columns)
        return te.compute(shape, element, name="conv.words")

    @property
    def _lanes(self) -> int:
        return lanes_for(self.columns, self.problem.lanes)

    def schedule(self, attrs: ConvAttrs, anchor: ByteRowStages, outputs: Tensors, target: Target) -> Schedule:
        """Run channels in parallel; each copies its image, and computes tiles of vectors below each other, and their
        epilogue. Rows go on to the end of their last vector."""
        made, filters, sums = anchor.made, anchor.filters, anchor.filter_sums
        inlined = [*made.copies, anchor.words, *([] if anchor.image is made.x else [anchor.image])]
        keep = [tensor for tensor in (*inlined, filters, sums) if tensor is not None]
        schedule, core, main = schedule_around_sums(made.result, made.sums, outputs, keep, target)
        stage, rows = schedule[main], self._decide_rows(schedule)
        n, k, *o = stage.loops[: main.ndim]
        c, of_channel = stage.split(k, factor=self.problem.group_filters)
        across, lane = stage.split(o[-1], factor=self._lanes)
        stage.vectorize(lane)
        task = stage.fuse(n, c)
        stage.parallel(task)
        if len(o) > 1:
            down, row = stage.split(o[-2], factor=rows)
            stage.reorder(task, of_channel, *o[:-2], down, across, row, lane)
            stage.unroll(row)
        copy = schedule.cache_read(anchor.image, "local", [anchor.words], pad=0)
        for tensor in inlined:
            schedule[tensor].compute_inline()
        schedule[core].compute_at(stage, across)
        self._sum(schedule[core], rows)
        schedule[copy].compute_at(stage, task)
        vectorize_row(schedule[copy], target.lanes(copy.dtype), "round_up")
        TapWords(self.problem).schedule_filters(schedule, filters, target)
        if sums is not None:
            schedule_filter_sums(schedule, sums, self.problem.reduction_extent, target)
        return schedule

    def _decide_rows(self, schedule: Schedule) -> int:
        outputs = self.problem.outputs
        if len(self.problem.window) == 1:
            return 1
        most = self.problem.target.vector_registers // 2
        if outputs is None:
            return schedule.decide("rows", range(1, most + 1), OPEN_ROWS)
        highest = min(most, outputs[-2])
        return schedule.decide("rows", range(1, highest + 1), min(rows_for(outputs[-2]), highest))

    def _sum(self, stage: StageView, height: int) -> None:
        (core,) = stage.op.outputs
        *outer, column = stage.loops[: core.ndim]
        part, *taps = stage.loops[core.ndim :]
        across, lane = stage.split(column, factor=self._lanes, tail="round_up")
        rows = [outer.pop()] if len(taps) > 1 else []
        if self.problem.outputs is None:
            rows = [stage.round_up(row, factor=height) for row in rows]
        stage.reorder(*outer, across, *taps[:-2], part, *taps[-2:], *rows, lane)
        stage.vectorize(lane)
        for loop in (*self._unrolled([part, *taps[-2:]], height), *rows):
            stage.unroll(loop)

    def _unrolled(self, loops: Sequence[LoopView], height: int) -> Sequence[LoopView]:
        terms = TapWords(self.problem).count * math.prod(self.problem.window[-2:-1])
        return loops if terms * height <= MOST_UNROLLED else loops[1:]
