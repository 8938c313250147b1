"""Implementations of convolutions on blocked channels: NCHW16c data with OIHW16i16o weights, and the like.

y[n, ko, o, ki] = Σ x[n, co, o·stride + r·dilation - pad, ci] · w[ko, co, r, ci, ki]   over co, window r, ci

That is the definition (``definition.py``) in these layouts; where most taps are beyond the border, with these left out,
by a test for a tile. ki is one vector, so no vector crosses a row of the image, whatever the stride. A tile of sums,
positions of the output times vectors of filters, stays in registers while the reduction runs: a step loads a vector of
weights for each block of filters, and broadcasts one element of x for each position. The data may be unblocked, as in
the first layer of a network, whose 3 channels make no block; then co are its channels. Of one spatial axis there is one
row; of three, tiles are of the last two. Depthwise convolutions, which multiply vectors of channels, are in
``blocked_depthwise.py``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from ....base.aligned import PAGE_BYTES
from ....base.dataclass import dataclass
from ....base.target import Target
from ....graph.types import Type
from ....ir.constants import const_int
from ....ir.expr import Expr
from ....ir.row_major import ravel_index
from ....lowering.schedule import LoopView, Schedule, StageView
from ....schedules.around import schedule_around, sums_over
from ....schedules.blocks import MANY_TASKS, near_divisor, part_sizes
from ....schedules.channel_tile import ChannelTile, channel_tile, decide_channel_tile, keep_channel_tile, tile_cycles
from ....schedules.fetch_ahead import fetch_ahead
from ....schedules.machine import CORE
from ....schedules.vector_rows import vectorize_padded
from ....te.tensor import Tensor, Tensors
from ...definition.cost import elements, moved
from ...definition.layout_rule import LayoutCandidate, ValueLayout
from ...definition.strategy import OpStrategy
from .attrs import ConvAttrs
from .border import Border
from .definition import DefinedStages, definition, schedule_copies
from .layouts import channel_block, data_layout, kernel_layout
from .problem import ConvProblem

FAR_PLANES, NEAR_PLANES = 1.6, 1.15
"""How much longer a convolution of many unblocked channels takes, as measured, where a step of the sum leads to another
plane. Near are those of windows of one element at most half a page apart: along such strides caches fetch ahead."""
MOST_READ = 0.8
"""Taps beyond the border are left out where at most this share of them is read: tests take time, too."""


def add_blocked(strategy: OpStrategy, problem: ConvProblem) -> None:
    """Offer it where the result has its channels in blocks, and x has or not; positions known, no block in two
    groups."""
    attrs, rank, outputs, group = problem.attrs, problem.rank, problem.outputs, problem.group_filters
    block, data, width = attrs.out.factor("C"), attrs.data.factor("C"), attrs.kernel.factor("O")
    if block == 1 or attrs.out is not data_layout(rank, block) or attrs.data is not data_layout(rank, data):
        return
    if width % block or group % block or group % width or attrs.kernel is not kernel_layout(rank, data, width):
        return
    if outputs is None:
        return
    made = Blocked(problem, block, outputs)
    strategy.add_implementation(made.compute, made.schedule, "conv.blocked", cost=made.cost())


def blocked_candidates(problem: ConvProblem, given: ValueLayout | None) -> Iterator[LayoutCandidate]:
    """The layout rule of convolutions of N, C, … by O, I, …: as many filters in a block as a vector holds, or half of
    it; of x as it is, in the blocks that it has, or in such ones."""
    if not (problem.is_plain and problem.has_plain_kernel and problem.is_of_one_float):
        return
    attrs, channels, lanes = problem.attrs, problem.group_channels, problem.lanes
    if not channels or not problem.filters:
        return
    plain, block = data_layout(attrs.rank), channel_block(problem.group_filters, lanes)
    if block is None or (given is not None and given.primal is not plain):
        return
    sizes = [1, channel_block(channels, lanes) or 1] if given is None else [given.layout.factor("C")]
    for size in dict.fromkeys(sizes):
        layout = data_layout(attrs.rank, size)
        if given not in (None, ValueLayout(plain, layout)) or channels % size:
            continue
        held = None if size == 1 else ValueLayout(plain, layout)
        out = ValueLayout(plain, data_layout(attrs.rank, block))
        width = block * _panel(problem, block)
        weights = ValueLayout(problem.plain_kernel, kernel_layout(attrs.rank, size, width))
        made = replace(attrs, data_layout=str(layout), kernel_layout=str(weights), out_layout=str(out))
        yield LayoutCandidate((held, weights), made, out)


def _panel(problem: ConvProblem, block: int) -> int:
    """The width of a panel: as many blocks of filters as a tile has, so that its weights are one stream."""
    outputs = problem.outputs
    return 1 if outputs is None else Blocked(problem, block, outputs).tile.blocks


@dataclass(frozen=True, slots=True)
class Blocked:
    """A convolution to blocks of ``block`` channels, and its numbers."""

    problem: ConvProblem
    block: int
    outputs: tuple[int, ...]

    @property
    def flat(self) -> bool:
        """Whether the output at a position needs the input at that position only; then rows need not be told apart."""
        return self.problem.is_pointwise and not self.problem.is_strided

    @property
    def in_row(self) -> bool:
        """Whether the positions are one row."""
        return self.flat or len(self.outputs) == 1

    @property
    def grid(self) -> tuple[int, ...]:
        """The positions: rows and columns, and those of a third axis before; one row, if rows need not be told
        apart."""
        return (1, math.prod(self.outputs)) if self.in_row else self.outputs

    @property
    def panel(self) -> int:
        """How many blocks of filters stand beside each other in the weights; one of weights that are not blocked."""
        return max(1, self.problem.attrs.kernel.factor("O") // self.block)

    def border(self, tile: ChannelTile) -> Border:
        """The taps that such tiles leave out."""
        return Border(self.problem.attrs, self.problem.window, self.outputs, self._sizes(tile))

    def _sizes(self, tile: ChannelTile) -> tuple[int, ...]:
        """The extents of a tile along the spatial axes."""
        return (*(1 for _ in self.outputs), tile.rows, tile.columns)[-len(self.outputs) :]

    @property
    def leaves_out(self) -> bool:
        """Whether taps beyond the border are left out."""
        return self.border(self._tile(leaves_out=True)).share <= MOST_READ

    @property
    def tile(self) -> ChannelTile:
        """The register tile of the sums, chosen by what the windows leave out beyond the border, too."""
        return self._tile(self.leaves_out)

    @lru_cache(maxsize=1024)  # noqa: B019  a value: strategies, costs, computes and schedules ask equal ones
    def _tile(self, leaves_out: bool) -> ChannelTile:
        rows, columns = self.grid[-2:]
        border = self.border(ChannelTile(1, 1, 1))
        share = (lambda tile: replace(border, tile=self._sizes(tile)).share) if leaves_out else None
        panel = None if self.panel == 1 else self.panel
        return channel_tile(rows, columns, self._group_blocks, self._registers, panel, share)

    @property
    def _group_blocks(self) -> int:
        """Blocks of filters in a group."""
        return self.problem.group_filters // self.block

    @property
    def _registers(self) -> int:
        """How many blocks of channels the registers hold."""
        return self.problem.target.vector_registers // self._vectors

    @property
    def _vectors(self) -> int:
        """How many vectors a block takes."""
        return math.ceil(self.block / self.problem.lanes)

    def cost(self) -> float:
        """Cycles of the steps of all tiles, and those to go through memory; again through x, if all of it is copied."""
        problem, tile = self.problem, self.tile
        stripes = elements(problem.result) // (self.block * math.prod(self.outputs)) / tile.blocks
        near = self.flat and math.prod(self.outputs) * problem.dtype.storage_bytes <= PAGE_BYTES // 2
        slowdown = 1.0
        if problem.group_channels > self.block and not problem.attrs.data.is_blocked:
            slowdown = NEAR_PLANES if near else FAR_PLANES
        copied = [problem.x, problem.x] if any(problem.attrs.padding) else []
        *outer, rows, columns = self.grid
        steps = math.prod(outer) * tile_cycles(rows, columns, tile, problem.target.fma_per_cycle)
        steps *= self.border(tile).share if self.leaves_out else 1.0
        products = slowdown * self._vectors * stripes * problem.reduction_extent * steps
        return products + moved([*problem.types, *copied])

    def compute(self, attrs: ConvAttrs, inputs: Tensors, result: Type) -> DefinedStages:
        """The definition; without taps beyond the border, where it is worth testing for them."""
        return definition(attrs, inputs, result, border=self.border(self.tile) if self.leaves_out else None)

    def schedule(self, attrs: ConvAttrs, anchor: DefinedStages, outputs: Tensors, target: Target) -> Schedule:
        """Run stripes of blocks over chunks of rows in parallel; each computes tiles of sums, and their epilogue."""
        sums = anchor.sums
        schedule, main = schedule_around(anchor.result, outputs, [sums, *anchor.copies], target)
        tile, chunk_size = self._decide_sizes(schedule, anchor.source)
        core = sums_over(schedule, sums, main, self._one_row if self.flat and len(self.outputs) > 1 else None)
        stage = schedule[main]
        n, block, *outer, column, lane = stage.loops
        stripe, part = stage.split(block, factor=tile.blocks)
        tiles: list[LoopView] = []
        rows: list[LoopView] = []
        if self.in_row:
            positions = stage.fuse(*outer, column) if outer else column
            outer = []
            chunk, column = stage.split(positions, factor=chunk_size * tile.columns)
        else:
            *outer, row = outer
            chunk, row = stage.split(row, factor=chunk_size * tile.rows)
            down, row = stage.split(row, factor=tile.rows)
            tiles, rows = [down], [row]
        across, column = stage.split(column, factor=tile.columns)
        stage.reorder(n, *outer, chunk, stripe, *tiles, across, *rows, column, part, lane)
        stage.vectorize(lane)
        for loop in (*rows, column, part):
            stage.unroll(loop)
        task = stage.fuse(n, *outer, chunk, stripe)
        stage.parallel(task)
        schedule[core].compute_at(stage, across)
        schedule_copies(schedule, anchor, attrs, lambda copy: vectorize_padded(copy, attrs.data.is_blocked, target))
        self._schedule_sums(schedule[core], anchor, tile)
        return schedule

    def _one_row(self, n: Expr, k: Expr, *index: Expr) -> tuple[Expr, ...]:
        """The axes of sums whose rows need not be told apart."""
        *output, c = index
        return n, k, ravel_index(output, self.outputs), c

    def _schedule_sums(self, stage: StageView, anchor: DefinedStages, tile: ChannelTile) -> None:
        """Put positions outside, blocks inside: a broadcast factor serves all blocks, and needs a register no
        longer."""
        (core,) = stage.op.outputs
        n, block, *outer, column, lane = stage.loops[: core.ndim]
        reductions = stage.loops[core.ndim :]
        rows = [] if self.in_row else [outer.pop()]
        stage.reorder(n, *outer, *reductions, *rows, column, block, lane)
        stage.vectorize(lane)
        for loop in (*rows, column, block):
            stage.unroll(loop)
        self._fetch_ahead(stage, anchor.weight, reductions[-1], tile)

    def _fetch_ahead(self, stage: StageView, weight: Tensor, innermost: LoopView, tile: ChannelTile) -> None:
        """Fetch weights some steps ahead, where a tile reads more than stays in the first cache until the next tile."""
        size = self.problem.reduction_extent * tile.blocks * self.block * self.problem.dtype.storage_bytes
        if size > self.problem.target.l1_bytes // 4:
            fetch_ahead(stage, weight, innermost, CORE.far_steps)

    def _decide_sizes(self, schedule: Schedule, data: Tensor) -> tuple[ChannelTile, int]:
        """The tile, and how many rows of tiles a task takes. A tile for which taps are left out is given."""
        tile, (*_, rows, columns) = self.tile, self.grid
        if self.leaves_out:
            tile = keep_channel_tile(schedule, tile)
        else:
            blocks = self.panel if self.panel > 1 else self._group_blocks
            tile = decide_channel_tile(schedule, tile, rows, columns, blocks, self._registers)
        tiles = math.ceil(columns / tile.columns) if self.in_row else math.ceil(rows / tile.rows)
        chunk = self._chunk(tiles, tile, data)
        return tile, schedule.decide("chunk", part_sizes(tiles, chunk), chunk)

    def _chunk(self, tiles: int, tile: ChannelTile, data: Tensor) -> int:
        """How many of so many rows of tiles a task takes: few enough for many tasks, and for the data that they read
        to stay in cache."""
        outer = self.grid[:-2]
        stripes = self.problem.filters // (self.block * tile.blocks) * math.prod(outer)
        positions = (const_int(extent) or 1 for extent in data.shape[2 : 2 + len(self.outputs)])
        channels = self.problem.group_channels * self.problem.attrs.groups
        image = channels * math.prod(positions) * data.dtype.storage_bytes
        for extent, window in zip(data.shape[2 : 2 + len(outer)], self.problem.window, strict=False):
            image = image * window // (const_int(extent) or 1)
        chunks = max(math.ceil(MANY_TASKS / stripes), math.ceil(2 * image / self.problem.target.l2_bytes))
        return near_divisor(tiles, math.ceil(tiles / min(chunks, tiles)))
