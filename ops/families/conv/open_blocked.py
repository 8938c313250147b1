"""Convolutions of blocked channels whose positions are open: the definition, and a schedule that needs no extents.

A vector has filters, of which there are known to be enough, and positions are only counted. A tile of sums, some
positions of a row times some blocks of filters, stays in registers. The last tile of a row has fewer positions. Taps
that are beyond the border for a whole row are left out, and so are columns of taps that are for all positions of a row.

Where windows are dilated far, taps are left out for each tile of a row. The last tile goes beyond the end of the row
then, to positions that nobody reads; so what windows read is a copy of x that goes on there.
"""

from __future__ import annotations

import math

from ....base.dataclass import dataclass
from ....base.target import Target
from ....graph.types import Type
from ....lowering.schedule import LoopView, Schedule, StageView
from ....schedules.around import schedule_around_sums
from ....schedules.channel_tile import ChannelTile, tile_cycles
from ....schedules.fetch_ahead import fetch_ahead
from ....schedules.machine import CORE
from ....schedules.vector_rows import vectorize_padded
from ....te.tensor import PlaceholderOp, Tensor, Tensors
from ...definition.cost import moved
from ...definition.strategy import OpStrategy
from .attrs import ConvAttrs
from .border import WHOLE, Border, share_of_axis
from .definition import DefinedStages, definition
from .layouts import data_layout, kernel_layout
from .problem import ConvProblem

MOST_BLOCKS = 4
"""A tile has at most so many blocks of filters."""
USUAL_ROWS = (7, 8, 13, 14, 16, 20, 27, 28, 32, 40, 55, 56, 64)
"""Lengths of rows that networks for images of usual sizes have: wide tiles take few loads, but end far beyond some."""


def add_open_blocked(strategy: OpStrategy, problem: ConvProblem) -> None:
    """Offer it where the result has its channels in blocks, none in two groups, and its positions are not all known."""
    made = OpenBlocked.of(problem)
    if made is None:
        return
    cost = problem.products * made.product_cycles + moved([*problem.types, problem.x, problem.x])
    strategy.add_implementation(made.compute, made.schedule, "conv.open_blocked", cost=cost)


@dataclass(frozen=True, slots=True)
class OpenBlocked:
    """The schedule of a convolution to blocks of so many filters, of which ``blocks``, those of a group, may be summed
    side by side."""

    problem: ConvProblem
    block: int
    blocks: int

    @classmethod
    def of(cls, problem: ConvProblem) -> OpenBlocked | None:
        """The schedule of a convolution, if it has such blocks, and not all of its positions are known."""
        attrs, rank = problem.attrs, problem.rank
        block, data, width = attrs.out.factor("C"), attrs.data.factor("C"), attrs.kernel.factor("O")
        group = problem.group_filters
        if problem.outputs is not None or block == 1 or group % block or width % block:
            return None
        if attrs.out is not data_layout(rank, block) or attrs.data is not data_layout(rank, data):
            return None
        if attrs.kernel is not kernel_layout(rank, data, width) or (attrs.groups > 1 and group % width):
            return None
        return cls(problem, block, group // block)

    @property
    def product_cycles(self) -> float:
        """Cycles of a product of two numbers, in whole tiles."""
        tile, rate = self._tile(), self.problem.target.fma_per_cycle
        return tile_cycles(1, tile.columns, tile, rate) / (tile.columns * tile.blocks * self.block)

    def compute(self, attrs: ConvAttrs, inputs: Tensors, result: Type) -> DefinedStages:
        """The definition, with taps beyond the border left out: in rows by themselves, and in tiles of these where some
        tile may lie in the padding as a whole, else where all of a row does."""
        sizes = (*(1 for _ in range(attrs.rank - 1)), self._tile().columns if self._leaves_out_columns else WHOLE)
        border = Border(attrs, self.problem.window, self.problem.assumed_outputs, sizes)
        return definition(attrs, inputs, result, border=border)

    @property
    def _leaves_out_columns(self) -> bool:
        """Whether tiles of positions leave out taps."""
        return self._may_lie_beyond(self._tile().columns)

    def _may_lie_beyond(self, columns: int) -> bool:
        """Whether the padding of a row, at either end, is as long as what so many positions read at a tap."""
        attrs = self.problem.attrs
        return min(attrs.padding[attrs.rank - 1], attrs.padding[-1]) >= columns * attrs.strides[-1]

    def schedule(self, attrs: ConvAttrs, anchor: DefinedStages, outputs: Tensors, target: Target) -> Schedule:
        """Run stripes of blocks, and the rows of each, in parallel; a row computes tiles of sums, and their epilogue.

        Rows are not told apart from those at the border, since that is one test for a tile and a row of the window.
        """
        schedule, core, main = schedule_around_sums(anchor.result, anchor.sums, outputs, [anchor.source], target)
        columns, side = self.decide_tile(schedule, keeps_columns=self._leaves_out_columns)
        stage = schedule[main]
        n, block, *outer, column, lane = stage.loops[: main.ndim]
        stripe, part = stage.split(block, factor=side)
        across, column = stage.split(column, factor=columns)
        stage.reorder(n, stripe, *outer, across, column, part, lane)
        stage.vectorize(lane)
        task = stage.fuse(n, stripe, *outer)
        stage.parallel(task)
        stage.annotate(task, "partition", False)
        if anchor.copies or self._leaves_out_columns or not isinstance(anchor.source.op, PlaceholderOp):
            source = schedule.cache_read(anchor.source, "global", [core], pad=0)
            vectorize_padded(schedule[source], attrs.data.is_blocked, target)
        if anchor.copies:
            schedule[anchor.source].compute_inline()
        schedule[core].compute_at(stage, across)
        step = schedule_tile_of_sums(schedule[core], columns if self._leaves_out_columns else 1)
        self.fetch_weights(schedule[core], anchor.weight, step, side)
        return schedule

    def fetch_weights(self, stage: StageView, weight: Tensor, step: LoopView, blocks: int) -> None:
        """Fetch weights some steps of a sum ahead, where a tile of so many blocks reads more than stays in the first
        cache until the next tile."""
        if self._weight_bytes(blocks) > self.problem.target.l1_bytes // 4:
            fetch_ahead(stage, weight, step, CORE.far_steps)

    def decide_tile(self, schedule: Schedule, stripes: int = 1, keeps_columns: bool = False) -> tuple[int, int]:
        """The positions and the blocks of a tile whose sums, weights and a factor fit the registers, by default those
        with which rows of usual lengths take the least time, with blocks left for so many ``stripes``, if there are.
        ``keeps_columns`` leaves no choice of the positions."""
        tile = self._tile(stripes)
        side = schedule.decide("blocks", [tile.blocks] if keeps_columns else self._sides, tile.blocks)
        widths = [tile.columns] if keeps_columns else self._widths(side)
        return schedule.decide("columns", widths, min(tile.columns, widths[-1])), side

    def _tile(self, stripes: int = 1) -> ChannelTile:
        usual = [side for side in self._sides if self.blocks // side >= stripes] or self._sides[:1]
        tiles = (ChannelTile(1, columns, side) for side in usual for columns in self._widths(side))
        return min(tiles, key=self._cycles_of_usual_rows)

    @property
    def _sides(self) -> list[int]:
        return [side for side in range(1, MOST_BLOCKS + 1) if self.blocks % side == 0]

    def _widths(self, side: int) -> range:
        """How many positions a tile of so many blocks may have."""
        registers = self.problem.target.vector_registers // -(-self.block // self.problem.lanes)
        return range(1, max(1, (registers - side - 1) // side) + 1)

    def _cycles_of_usual_rows(self, tile: ChannelTile) -> float:
        """Cycles of a step for each sum of rows of whole tiles, on average over lengths of rows."""
        stay = self._weight_bytes(tile.blocks) <= self.problem.target.l2_bytes
        step = tile_cycles(
            1, tile.columns, tile, weight_cycles=CORE.second_cache_cycles if stay else CORE.third_cache_cycles
        )
        tiles = (math.ceil(row / tile.columns) * self._share(row, tile.columns) / row for row in USUAL_ROWS)
        return sum(tiles) * step / tile.blocks

    def _share(self, row: int, columns: int) -> float:
        """The share of all pairs of a tap and a tile of a row in which the tap is not left out."""
        attrs = self.problem.attrs
        if not self._may_lie_beyond(columns):
            return 1.0
        pads = attrs.padding[attrs.rank - 1], attrs.padding[-1]
        return share_of_axis(row, self.problem.window[-1], columns, attrs.strides[-1], attrs.dilation[-1], *pads)

    def _weight_bytes(self, blocks: int) -> int:
        """How much of the weights a tile of so many blocks goes through."""
        return self.problem.reduction_extent * blocks * self.block * self.problem.dtype.storage_bytes


def schedule_tile_of_sums(stage: StageView, columns: int = 1) -> LoopView:
    """Positions outside, blocks inside: a broadcast factor serves all blocks, and needs a register no longer. Rows of
    sums go on to a multiple of ``columns``. Gives the loop over the steps of a sum."""
    (core,) = stage.op.outputs
    n, blocks, *outer, column, lane = stage.loops[: core.ndim]
    reductions = stage.loops[core.ndim :]
    if columns > 1:
        column = stage.round_up(column, factor=columns)
    stage.reorder(n, *outer, *reductions, column, blocks, lane)
    stage.vectorize(lane)
    stage.unroll(column)
    stage.unroll(blocks)
    return reductions[-1]
