"""Depthwise convolutions of blocked channels: NCHW16c data with OIHW16o weights, and the like.

y[n, k, o, c] = Σ x[n, k, o·stride + r·dilation - pad, c] · w[k, r, c]   over the window r

That is the definition (``definition.py``) in these layouts, without taps above and below the image. c is one vector, so
that vectors of channels are multiplied with each other. A tile of sums beside each other stays in registers while the
rows of the window are gone through. Of one row, its weights and as many vectors of x stay there, too: a vector of x is
loaded once for all sums that it is added to. Rows beyond the border are left out; columns beyond it are known where a
tile is at one, and read as zero. A long row is not unrolled, but read of a copy with its border.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from ....base.dataclass import dataclass
from ....base.target import Target
from ....graph.types import Type
from ....lowering.schedule import Schedule, StageView
from ....schedules.around import schedule_around_sums
from ....schedules.blocks import MANY_TASKS, near_divisor, part_sizes
from ....schedules.channel_tile import ChannelTile, channel_tile, decide_channel_tile
from ....schedules.machine import CORE
from ....te.tensor import Tensors
from ...definition.cost import elements, moved
from ...definition.layout_rule import LayoutCandidate, ValueLayout
from ...definition.strategy import OpStrategy
from .attrs import ConvAttrs
from .border import Border
from .definition import DefinedStages, definition
from .layouts import channel_block, data_layout, kernel_layout
from .problem import ConvProblem

MOST_TAPS = 16
"""Columns of a window up to which a row of it is unrolled: more are read of a copy with its border, one by one."""
OPEN_COLUMNS = 7
"""Columns of a tile, at most, where the width is not known: those of the last tile are tested one by one."""


def add_blocked_depthwise(strategy: OpStrategy, problem: ConvProblem) -> None:
    """Offer it where x and the result have their channels in the same blocks."""
    block = problem.attrs.out.factor("C")
    blocked = problem.held_in(data_layout(problem.rank, block)) and problem.has_panels_of(block)
    if block == 1 or not blocked or not _has_one_filter_a_channel(problem):
        return
    made = BlockedDepthwise(problem, block, problem.assumed_outputs)
    strategy.add_implementation(made.compute, made.schedule, "conv.blocked_depthwise", cost=made.cost())


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
    """The numbers of a depthwise convolution of blocks of ``block`` channels, to ``outputs`` positions, where these
    are known, else to about so many."""

    problem: ConvProblem
    block: int
    outputs: tuple[int, ...]

    @property
    def vectors(self) -> int:
        """How many vectors a block takes."""
        return math.ceil(self.block / self.problem.lanes)

    @property
    def unrolled(self) -> bool:
        """Whether a row of the window is."""
        return self.problem.window[-1] <= MOST_TAPS

    @property
    def tile(self) -> ChannelTile:
        """The positions of a tile that take the least time; few of a row that may be short."""
        *_, rows, columns = (1, *self.outputs)
        if self.problem.outputs is None:
            rows, columns = 1, min(columns, OPEN_COLUMNS)
        return channel_tile(rows, columns, 1, self._registers)

    @property
    def _registers(self) -> int:
        """How many blocks the registers hold beside an unrolled row of the window and its x; at least half of all."""
        registers = self.problem.target.vector_registers // self.vectors
        kept = 2 * (self.problem.window[-1] - 1) if self.unrolled else 0
        return max(registers - kept, registers // 2)

    def cost(self) -> float:
        """Cycles of the multiplications, and those to go through memory."""
        problem = self.problem
        multiplications = elements(problem.result) // self.block * self.vectors * math.prod(problem.window)
        return multiplications / (CORE.shares.depthwise * problem.target.fma_per_cycle) + moved(problem.types)

    def compute(self, attrs: ConvAttrs, inputs: Tensors, result: Type) -> DefinedStages:
        """The definition, with taps beyond the border left out along all axes but the last."""
        rows = (*(1 for _ in self.outputs[1:]), None)
        return definition(attrs, inputs, result, border=Border(attrs, self.problem.window, self.outputs, rows))

    def schedule(self, attrs: ConvAttrs, anchor: DefinedStages, outputs: Tensors, target: Target) -> Schedule:
        """Run blocks and chunks of their rows in parallel; each computes tiles of sums, and their epilogue.

        Rows are not told apart from those at the border, since that is one test for a tile and a row of the window.
        """
        schedule, core, main = schedule_around_sums(anchor.result, anchor.sums, outputs, anchor.copies, target)
        tile, chunk_size = self._decide_sizes(schedule)
        stage = schedule[main]
        n, block, *outer, column, lane = stage.loops[: main.ndim]
        across, column = stage.split(column, factor=tile.columns)
        down, rows = [], []
        if outer:
            strip, row = stage.split(outer.pop(), factor=tile.rows)
            chunk, strip = stage.split(strip, factor=chunk_size)
            stage.annotate(strip, "partition", False)
            outer, down, rows = [*outer, chunk], [strip], [row]
        stage.reorder(n, block, *outer, *down, across, *rows, column, lane)
        task = stage.fuse(n, block, *outer)
        stage.parallel(task)
        stage.annotate(task, "partition", False)
        stage.vectorize(lane)
        for loop in (*rows, column):
            stage.unroll(loop)
        if self.problem.outputs is not None and math.ceil(self.outputs[-1] / tile.columns) == 2:  # each at a border
            stage.unroll(across)
        schedule[core].compute_at(stage, across)
        for border in (schedule[tensor] for tensor in anchor.copies):
            if self.unrolled:
                border.compute_inline()
            else:
                border.compute_at(stage, task)
                border.vectorize(border.loops[-1])
        self._schedule_sums(schedule[core])
        return schedule

    def _schedule_sums(self, stage: StageView) -> None:
        """Rows of the window outside, so that the test of one stands around all that is read of it."""
        (core,) = stage.op.outputs
        *outer, column, lane = stage.loops[: core.ndim]
        channel, *down, tap = stage.loops[core.ndim :]
        rows = [outer.pop()] if down else []
        stage.reorder(*outer, channel, *down, *rows, *((column, tap) if self.unrolled else (tap, column)), lane)
        stage.vectorize(lane)
        for loop in (*rows, column, *([tap] if self.unrolled else [])):
            stage.unroll(loop)

    def _decide_sizes(self, schedule: Schedule) -> tuple[ChannelTile, int]:
        """The tile, and how many rows of tiles a task takes: few enough for tasks to be many."""
        *outer, rows, columns = (1, *self.outputs)
        tile = decide_channel_tile(schedule, self.tile, rows, columns, 1, self._registers)
        tiles = math.ceil(rows / tile.rows)
        chunks = math.ceil(2 * MANY_TASKS / (self.problem.filters // self.block * math.prod(outer)))
        chunk = near_divisor(tiles, math.ceil(tiles / min(chunks, tiles)))
        return tile, schedule.decide("chunk", part_sizes(tiles, chunk), chunk)
