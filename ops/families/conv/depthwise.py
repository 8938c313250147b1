"""Depthwise convolutions: each channel has filters of its own, so that nothing is summed over channels.

With the spatial axes last, vectors are of neighbours in a row; of channels, where these stand last. A register tile is
of a few outputs below or beside each other; they share what they read, as a small window is unrolled. Of a large one a
column is unrolled: outputs below each other share its weights, too, and all of that fits in registers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .... import te
from ....base.target import Target
from ....graph.layout import Layout, source_index
from ....graph.node import Call, tensor_of
from ....graph.types import TensorType, Type
from ....ir.constants import ZERO, const_int
from ....ir.expr import Axis, Expr
from ....ir.makers import as_index
from ....lowering.schedule import LoopView, Schedule, StageView
from ....schedules.around import schedule_around
from ....schedules.blocks import largest_divisor
from ....schedules.default_schedule import schedule_stage
from ....schedules.vector_rows import vectorize_row
from ....te.tensor import Tensors
from ...definition.condition import clause
from ...definition.cost import elements, moved
from ...definition.strategy import OpStrategy
from ..window import inside, padded, spatial_axes
from .attrs import ConvAttrs
from .flat import lanes_for
from .problem import ConvProblem
from .stages import ConvStages

MOST_ROWS = 8
"""Outputs of a tile, each a vector: they and the weights of a small window fit in 32 registers, or nearly in 16."""
MOST_UNROLLED = 400
"""Terms of a tile's sums up to which a window, or a column of it, is unrolled as a whole; else only its last axis."""
MANY_TILES = 8
"""So many tiles of an image share the cost of its copy."""
NEIGHBOURS_PER_CYCLE, STRIDED_PER_CYCLE = 1.6, 0.4
"""Vectors that are multiplied in a cycle, if a core can do so many: of positions side by side, and of positions
apart."""


def add_depthwise(strategy: OpStrategy, problem: ConvProblem) -> None:
    """Offer one where x and the result are in the same layout, N, C, … or N, …, C, of known extents but for N."""
    attrs, outputs = problem.attrs, problem.outputs
    if attrs.kernel.is_blocked or outputs is None:
        return
    plan = Depthwise(attrs, problem.window, problem.group_filters, outputs, problem.result, problem.target)
    alone = clause("each channel is a group", problem.is_depthwise)
    if problem.is_plain:
        with strategy.specialized(alone):
            cost = plan.cost(problem.x)
            strategy.add_implementation(plan.compute_rows, plan.schedule_rows, "conv.depthwise", plevel=25, cost=cost)
    elif problem.held_in(Layout(f"N{spatial_axes(problem.rank)}C")):
        with strategy.specialized(alone, clause("one filter a channel", plan.multiplier == 1)):
            strategy.add_implementation(
                plan.compute_channels, plan.schedule_channels, "conv.depthwise_channels_last", plevel=25
            )


def axes_of_rows(call: Call) -> int | None:
    """How many axes a row has, of x in N, C, …: the spatial ones. Its channels are computed apart, so that rows may lie
    anywhere."""
    attrs: ConvAttrs = call.attrs
    x, weight = (tensor_of(argument) for argument in call.args)
    plain = attrs.data is attrs.out is Layout(f"NC{spatial_axes(attrs.rank)}") and x.dtype.is_float
    alone = attrs.groups > 1 and const_int(attrs.kernel.extents(weight.shape)["I"]) == 1
    return attrs.rank if plain and alone else None


@dataclass(frozen=True, slots=True)
class Depthwise:
    """The numbers of a depthwise convolution; ``multiplier`` is how many filters a channel has."""

    attrs: ConvAttrs
    window: tuple[int, ...]
    multiplier: int
    outputs: tuple[int, ...]
    result: TensorType
    target: Target

    def _taps(self) -> list[Axis]:
        return [te.reduce_axis((0, w), name=f"r{d}") for d, w in enumerate(self.window)]

    def _position(self, o: Sequence[Expr], taps: Sequence[Axis]) -> list[Expr]:
        """Where a tap reads the padded x."""
        a = self.attrs
        return [i * s + tap * d for i, s, tap, d in zip(o, a.strides, taps, a.dilation, strict=True)]

    @property
    def by_columns(self) -> bool:
        """Whether to go through the window column by column: it does not fit beside a tile, and the image, which is
        copied with its border, is large."""
        height = rows_for(self.outputs[-2]) if len(self.outputs) > 1 else 1
        tiles = math.ceil(math.prod(self.outputs[-2:]) / (height * self.lanes))
        crowded = math.prod(self.window) + MOST_ROWS > self.target.vector_registers
        return crowded and tiles >= MANY_TILES and 1 < math.prod(self.window[:-1]) <= MOST_UNROLLED // MOST_ROWS

    # N, C, …: vectors of neighbours in a row

    def cost(self, x: TensorType) -> float:
        """Cycles, by what was measured on layers of usual networks."""
        rate = NEIGHBOURS_PER_CYCLE if math.prod(self.attrs.strides) == 1 else STRIDED_PER_CYCLE
        vectors = elements(self.result) * math.prod(self.window) / self.target.lanes(self.result.dtype)
        return vectors / min(rate, self.target.fma_per_cycle) + moved([x, self.result])

    @property
    def lanes(self) -> int:
        return lanes_for(self.outputs[-1], self.target.lanes(self.result.dtype))

    def compute_rows(self, attrs: ConvAttrs, inputs: Tensors, result: Type) -> ConvStages:
        x, weight = inputs
        tiles = math.ceil(self.outputs[-1] / self.lanes)
        source = self._source(x, tiles * self.lanes)
        kernel = Layout(f"OI{spatial_axes(attrs.rank)}")
        taps = self._taps()

        def element(n: Axis, k: Axis, *index: Axis) -> Expr:
            *o, t, j = (as_index(i) for i in index)
            position = self._position([*o, t * self.lanes + j], taps)
            factor = weight[source_index((as_index(k), ZERO, *map(as_index, taps)), attrs.kernel, kernel)]
            reduced = [taps[-1], *taps[:-1]] if self.by_columns else taps
            return te.sum(source[(n, as_index(k) // self.multiplier, *position)] * factor, axis=reduced)

        core = te.compute((*self.result.shape[:-1], tiles, self.lanes), element, name="conv.sums")

        def unfold(*index: Axis) -> Expr:
            *outer, last = (as_index(i) for i in index)
            return core[(*outer, last // self.lanes, last % self.lanes)]

        return ConvStages(te.compute(self.result.shape, unfold, name="conv"), x, source, weight, core)

    def _source(self, x: te.Tensor, width: int) -> te.Tensor:
        """x with its padding, its rows so long that ``width`` outputs can be computed of each."""
        a = self.attrs
        counts = (*self.outputs[:-1], width)
        shape = [
            (o - 1) * s + (w - 1) * d + 1 for o, s, w, d in zip(counts, a.strides, self.window, a.dilation, strict=True)
        ]

        def element(n: Axis, c: Axis, *index: Axis) -> Expr:
            position = [as_index(i) - pad for i, pad in zip(index, a.padding, strict=False)]
            valid = inside(position, x.shape[2:], a.padding, [True] * len(position))
            return te.if_then_else(valid, x[(n, c, *position)], te.const(0, x.dtype))

        return te.compute((*x.shape[:2], *shape), element, name="conv.source")

    def schedule_rows(self, attrs: ConvAttrs, anchor: ConvStages, outputs: Tensors, target: Target) -> Schedule:
        core, source = anchor.sums, anchor.source
        schedule, main = schedule_around(anchor.result, outputs, [core, source], target)
        stage = schedule[main]
        n, k, *o = stage.loops
        c, filters = stage.split(k, factor=self.multiplier)
        t, lane = stage.split(o[-1], factor=self.lanes)
        stage.vectorize(lane)
        task = stage.fuse(n, c)
        stage.parallel(task)
        block = task
        if len(o) > 1:
            block, row = stage.split(o[-2], factor=rows_for(self.outputs[-2]))
            stage.reorder(task, filters, *o[:-2], block, t, row, lane)
            stage.unroll(row)
        schedule[core].compute_at(stage, t)
        *outer, t, lane = schedule[core].loops[: core.ndim]
        taps = schedule[core].loops[-len(self.window) :]
        unrolled = taps[1:] if self.by_columns else self._unrolled(taps)
        self._schedule_tile(schedule[core], [*outer, t], outer[-1] if len(o) > 1 else None, lane, unrolled)
        if attrs.strides[-1] == 1 and not self.by_columns:
            schedule[source].compute_inline()
        else:  # of a copy, which needs no masks: loads of every second element are shuffles, but with masks gathers
            size = math.prod(const_int(extent) or 1 for extent in source.shape[2:]) * source.dtype.storage_bytes
            schedule[source].compute_at(stage, task if size <= target.l1_bytes else block)
            vectorize_row(schedule[source], target.lanes(source.dtype))
        return schedule

    # N, …, C: vectors of channels

    def compute_channels(self, attrs: ConvAttrs, inputs: Tensors, result: Type) -> ConvStages:
        x, weight = inputs
        source = padded(x, attrs.data, attrs.padding, "conv.padded")
        kernel = Layout(f"OI{spatial_axes(attrs.rank)}")

        def factor(*index: Axis) -> Expr:
            *taps, c = index
            return weight[source_index((as_index(c), ZERO, *map(as_index, taps)), attrs.kernel, kernel)]

        weights = te.compute((*self.window, x.shape[-1]), factor, name="conv.weights")
        taps = self._taps()

        def element(n: Axis, *index: Axis) -> Expr:
            *o, c = (as_index(i) for i in index)
            return te.sum(source[(n, *self._position(o, taps), c)] * weights[(*taps, c)], axis=taps)

        core = te.compute(self.result.shape, element, name="conv.sums")
        return ConvStages(te.compute(self.result.shape, lambda *i: core[i], name="conv"), x, source, weights, core)

    def schedule_channels(self, attrs: ConvAttrs, anchor: ConvStages, outputs: Tensors, target: Target) -> Schedule:
        core = anchor.sums
        schedule, main = schedule_around(anchor.result, outputs, [core, anchor.weight, *anchor.copies], target)
        stage = schedule[main]
        n, *o, c = stage.loops
        lanes = target.lanes(main.dtype)
        vector, lane = stage.split(c, factor=lanes)
        block, row = stage.split(o[-1], factor=rows_for(self.outputs[-1]))
        stage.vectorize(lane)
        stage.reorder(n, *o[:-1], block, vector, row, lane)
        stage.parallel(stage.fuse(n, *o[:-1]) if len(o) > 1 else n)
        schedule[core].compute_at(stage, vector)
        *outer, c = schedule[core].loops[: core.ndim]
        vector, lane = schedule[core].split(c, factor=lanes)
        unrolled = self._unrolled(schedule[core].loops[-len(self.window) :])
        self._schedule_tile(schedule[core], [*outer, vector], outer[-1], lane, unrolled)
        for copy in anchor.copies:
            schedule[copy].compute_inline()
        schedule_stage(schedule[anchor.weight], target)
        return schedule

    # Both

    def _unrolled(self, taps: Sequence[LoopView]) -> Sequence[LoopView]:
        """All loops of a window row by row, or the last one."""
        return taps if math.prod(self.window) * MOST_ROWS <= MOST_UNROLLED else taps[-1:]

    def _schedule_tile(
        self,
        stage: StageView,
        outer: Sequence[LoopView],
        row: LoopView | None,
        lane: LoopView,
        unrolled: Sequence[LoopView],
    ) -> None:
        """Keep the tile in registers while the window is gone through."""
        taps = stage.loops[-len(self.window) :]
        rows = [] if row is None else [row]
        stage.reorder(*(loop for loop in outer if loop is not row), *taps, *rows, lane)
        stage.vectorize(lane)
        for loop in (*unrolled, *rows):
            stage.unroll(loop)


def rows_for(extent: int) -> int:
    """How many outputs share a tile: preferably a divisor of their number."""
    divisor = largest_divisor(extent, MOST_ROWS)
    return divisor if divisor > 1 else min(extent, MOST_ROWS // 2)
