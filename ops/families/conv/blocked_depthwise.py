"""Depthwise convolutions of blocked channels: NCHW16c data with OIHW16o weights, and the like.

y[n, k, o, c] = Σ x[n, k, o·stride + r·dilation - pad, c] · w[k, r, c]   over the window r

c is one vector, so that vectors of channels are multiplied with each other. A tile of sums beside each other stays in
registers while the rows of the window are gone through. Of one row, its weights and as many vectors of x stay there,
too: a vector of x is loaded once for all sums that it is added to. Rows beyond the border are left out; columns beyond
it are known where a tile is at one, and read as zero. A long row is not unrolled, but read of a copy with its border.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .... import te
from ....base.dtype import DType
from ....base.target import Target
from ....graph.types import Type
from ....ir.constants import const_int
from ....ir.expr import Axis, Expr
from ....ir.makers import as_index
from ....lowering.schedule import Schedule, StageView
from ....schedules.around import schedule_around
from ....schedules.blocks import MANY_TASKS, near_divisor
from ....te.tensor import Tensors
from ...definition.cost import elements, moved
from ...definition.layout_rule import LayoutCandidate, ValueLayout
from ...definition.relations import tensor_argument
from ...definition.strategy import OpStrategy
from ..window import inside, padded
from .attrs import ConvAttrs
from .layouts import channel_block, data_layout, kernel_layout
from .nchwc import ChannelTile, channel_tile
from .problem import ConvProblem
from .stages import ConvStages

MOST_TAPS = 16
"""Columns of a window up to which a row of it is unrolled: more are read of a copy with its border, one by one."""
EFFICIENCY = 0.9
"""Of the multiplications that a core can do."""


def add_blocked_depthwise(strategy: OpStrategy, problem: ConvProblem) -> None:
    """Offer it where x and the result have their channels in the same blocks, and positions are known."""
    block, outputs = problem.attrs.out.factor("C"), problem.outputs
    blocked = problem.held_in(data_layout(problem.rank, block)) and problem.has_panels_of(block)
    if block == 1 or not blocked or outputs is None or not _has_one_filter_a_channel(problem):
        return
    made = BlockedDepthwise(problem.attrs, block, problem.window, outputs, problem.dtype, problem.target)
    strategy.add_implementation(
        made.compute, made.schedule, "conv.blocked_depthwise", plevel=20, cost=made.cost(problem.types)
    )


def blocked_depthwise_candidates(problem: ConvProblem, given: ValueLayout | None) -> Iterator[LayoutCandidate]:
    """The layout rule of depthwise ones of N, C, … by O, I, …: as many channels in a block as a vector holds, or half
    of it."""
    if not (problem.is_plain and problem.has_plain_kernel and problem.is_of_one_float):
        return
    block = channel_block(problem.filters, problem.lanes)
    if block is None or not _has_one_filter_a_channel(problem):
        return
    held = ValueLayout(data_layout(problem.rank), data_layout(problem.rank, block))
    if given in (None, held):
        weights = ValueLayout(problem.plain_kernel, kernel_layout(problem.rank, 1, block))
        made = replace(problem.attrs, data_layout=str(held), kernel_layout=str(weights), out_layout=str(held))
        yield LayoutCandidate((held, weights), made, held)


def _has_one_filter_a_channel(problem: ConvProblem) -> bool:
    return problem.is_depthwise and problem.group_filters == 1


@dataclass(frozen=True, slots=True)
class BlockedDepthwise:
    """The numbers of a depthwise convolution of blocks of ``block`` channels, to ``outputs`` positions."""

    attrs: ConvAttrs
    block: int
    window: tuple[int, ...]
    outputs: tuple[int, ...]
    dtype: DType
    target: Target

    @property
    def vectors(self) -> int:
        """How many vectors a block takes."""
        return math.ceil(self.block / self.target.lanes(self.dtype))

    @property
    def unrolled(self) -> bool:
        """Whether a row of the window is."""
        return self.window[-1] <= MOST_TAPS

    @property
    def tile(self) -> ChannelTile:
        """The positions of a tile: as many as leave registers to an unrolled row of the window and its x, and at least
        half of all registers."""
        registers = self.target.vector_registers // self.vectors
        kept = 2 * (self.window[-1] - 1) if self.unrolled else 0
        rows, columns = (1, *self.outputs)[-2:]
        return channel_tile(rows, columns, 1, max(registers - kept, registers // 2))

    def cost(self, types: Sequence[Type]) -> float:
        """Cycles of the multiplications, and those to go through memory."""
        multiplications = elements(types[-1]) // self.block * self.vectors * math.prod(self.window)
        return multiplications / (EFFICIENCY * self.target.fma_per_cycle) + moved(types)

    def compute(self, attrs: ConvAttrs, inputs: Tensors, result: Type) -> ConvStages:
        x, weight = inputs
        kind, rank = tensor_argument(result, "result"), attrs.rank
        across = tuple(0 if axis % rank < rank - 1 else pad for axis, pad in enumerate(attrs.padding))
        down = (*attrs.padding[: rank - 1], *attrs.padding[rank:-1])
        source = padded(x, attrs.data, across, "conv.padded")
        taps = [te.reduce_axis((0, extent), name=f"r{d}") for d, extent in enumerate(self.window)]

        def element(n: Axis, k: Axis, *index: Axis) -> Expr:
            *output, c = (as_index(i) for i in index)
            position = [o * s + t * d for o, s, t, d in zip(output, attrs.strides, taps, attrs.dilation, strict=True)]
            rows = [at - pad for at, pad in zip(position[:-1], down, strict=False)]
            valid = inside(rows, x.shape[2 : 1 + rank], down, [False] * len(rows))
            return te.sum(source[(n, k, *rows, position[-1], c)] * weight[(k, 0, *taps, c)], axis=taps, where=valid)

        sums = te.compute(kind.shape, element, name="conv.sums")
        return ConvStages(te.compute(kind.shape, lambda *i: sums[i], name="conv"), x, source, weight, sums)

    def schedule(self, attrs: ConvAttrs, anchor: ConvStages, outputs: Tensors, target: Target) -> Schedule:
        """Blocks and chunks of their rows in parallel; in each, tiles of sums, and their epilogue.

        Rows are not told apart from those at the border, since that is one test for a tile and a row of the window.
        """
        tile, sums = self.tile, anchor.sums
        schedule, main = schedule_around(anchor.result, outputs, [sums, *anchor.copies], target)
        stage = schedule[main]
        n, block, *outer, column, lane = stage.loops
        across, column = stage.split(column, factor=tile.columns)
        down, rows = [], []
        if outer:
            strip, row = stage.split(outer.pop(), factor=tile.rows)
            chunk, strip = stage.split(strip, factor=self._chunk(const_int(main.shape[1]) or 1))
            stage.annotate(strip, "partition", False)
            outer, down, rows = [*outer, chunk], [strip], [row]
        stage.reorder(n, block, *outer, *down, across, *rows, column, lane)
        task = stage.fuse(n, block, *outer)
        stage.parallel(task)
        stage.annotate(task, "partition", False)
        stage.vectorize(lane)
        for loop in (*rows, column):
            stage.unroll(loop)
        if math.ceil(self.outputs[-1] / tile.columns) == 2:  # each is at a border
            stage.unroll(across)
        schedule[sums].compute_at(stage, across)
        for border in (schedule[tensor] for tensor in anchor.copies):
            if self.unrolled:
                border.compute_inline()
            else:
                border.compute_at(stage, task)
                border.vectorize(border.loops[-1])
        self._schedule_sums(schedule[sums], sums)
        return schedule

    def _schedule_sums(self, stage: StageView, sums: te.Tensor) -> None:
        """Rows of the window outside, so that the test of one stands around all that is read of it."""
        *outer, column, lane = stage.loops[: sums.ndim]
        *down, tap = stage.loops[sums.ndim :]
        rows = [outer.pop()] if down else []
        stage.reorder(*outer, *down, *rows, *((column, tap) if self.unrolled else (tap, column)), lane)
        stage.vectorize(lane)
        for loop in (*rows, column, *([tap] if self.unrolled else [])):
            stage.unroll(loop)

    def _chunk(self, blocks: int) -> int:
        """How many rows of tiles a task takes: few enough for tasks to be many."""
        *outer, rows, _ = self.outputs
        tiles = math.ceil(rows / self.tile.rows)
        chunks = math.ceil(2 * MANY_TASKS / (blocks * math.prod(outer)))
        return near_divisor(tiles, math.ceil(tiles / min(chunks, tiles)))
