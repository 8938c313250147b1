"""Implementations of convolutions on blocked channels: NCHW16c data with OIHW16i16o weights, and the like.

y[n, ko, o, ki] = Σ x[n, co, o·stride + r·dilation - pad, ci] · w[ko, co, r, ci, ki]   over co, window r, ci

ki is one vector, so no vector crosses a row of the image, whatever the stride. A tile of sums, positions of the output
times vectors of filters, stays in registers while the reduction runs: a step loads a vector of weights for each block
of filters, and broadcasts one element of x for each position. The data may be unblocked, as in the first layer of a
network, whose 3 channels make no block; then co are its channels. Of one spatial axis there is one row; of three, tiles
are of the last two. Depthwise convolutions, which multiply vectors of channels, are in ``blocked_depthwise.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from .... import te
from ....base.aligned import PAGE_BYTES
from ....base.dtype import DType
from ....base.target import Target
from ....graph.types import Type
from ....ir.constants import ZERO, const_int
from ....ir.expr import Axis, Expr, ExprLike
from ....ir.makers import as_index
from ....ir.row_major import ravel_index, unravel_index
from ....lowering.schedule import LoopView, Schedule, StageView
from ....schedules.around import schedule_around
from ....schedules.blocks import MANY_TASKS, near_divisor
from ....schedules.fetch_ahead import fetch_ahead
from ....schedules.register_tile import FULL_RATE
from ....te.tensor import Tensors
from ...definition.cost import elements, moved
from ...definition.layout_rule import LayoutCandidate, ValueLayout
from ...definition.relations import tensor_argument
from ...definition.strategy import OpStrategy
from ..window import padded
from .attrs import ConvAttrs
from .border import Border
from .layouts import channel_block, data_layout, kernel_layout
from .problem import ConvProblem
from .stages import ConvStages

STEPS_AHEAD = 16
"""How many steps of the sum ahead weights are fetched: a line of the third cache takes about as long."""
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
    made = Blocked(attrs, block, problem.window, outputs, problem.filters, problem.target, problem.dtype)
    cost = made.cost(problem.types)
    strategy.add_implementation(made.compute, made.schedule, "conv.blocked", plevel=20, cost=cost)


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
    if problem.outputs is None:
        return 1
    made = Blocked(
        problem.attrs, block, problem.window, problem.outputs, problem.filters, problem.target, problem.dtype
    )
    return made.tile.blocks


@dataclass(frozen=True, slots=True)
class ChannelTile:
    """Sums that are kept in registers: ``rows`` times ``columns`` positions of the output, ``blocks`` of filters
    each."""

    rows: int
    columns: int
    blocks: int


def channel_tile(
    rows: int,
    columns: int,
    blocks: int,
    registers: int,
    panel: int | None = None,
    share: Callable[[ChannelTile], float] | None = None,
) -> ChannelTile:
    """The tile that covers rows × columns positions of so many blocks in the least time, by a model of one step.

    Rows are only taken together where all columns are, unless ``share`` says which part of the steps such a tile takes.
    A tile's blocks have to divide ``blocks``, and are ``panel`` if that is given; positions that are left over at the
    end get smaller tiles. Of blocks that are too wide for the registers a tile is a position or two.
    """
    registers = max(registers, 2 * (panel or 1) + 2)
    best: tuple[float, int, ChannelTile] | None = None
    sides = [b for b in range(1, registers // 2) if blocks % b == 0] if panel is None else [panel]
    for side in sides:
        most = (registers - 1) // side - 1
        for tile in _tiles(rows, columns, side, most, share is not None):
            cost = blocks // side * tile_cycles(rows, columns, tile) * (1.0 if share is None else share(tile))
            if best is None or (cost, side) < best[:2]:
                best = cost, side, tile
    assert best is not None
    return best[2]


def _tiles(rows: int, columns: int, side: int, most: int, partial: bool) -> Iterator[ChannelTile]:
    """Tiles of at most so many positions; ``partial`` ones have some columns of several rows."""
    for width in range(1, min(columns, most) + 1):
        yield ChannelTile(1, width, side)
    for width in range(1 if partial else columns, columns + 1):
        for height in range(2, min(rows, most // width) + 1):
            yield ChannelTile(height, width, side)


def tile_cycles(rows: int, columns: int, tile: ChannelTile, rate: int = FULL_RATE) -> float:
    """Cycles for one term of all sums of a stripe of filters.

    Products are added ``rate`` vectors a cycle; weights come from the second cache, one vector in a cycle and a half; a
    sum waits four cycles for its last addition. Of a load, a broadcast as well, a tenth of a cycle is not hidden behind
    these, and a quarter for each vector that is fetched ahead. The loop itself takes one.
    """
    total = 0.0
    for height, down in _pieces(rows, tile.rows):
        for width, across in _pieces(columns, tile.columns):
            positions = height * width
            step = max(positions * tile.blocks / rate, 1.5 * tile.blocks, 4.0)
            total += down * across * (step + (positions + tile.blocks) / 10 + tile.blocks / 4 + 1)
    return total


def _pieces(extent: int, size: int) -> Iterator[tuple[int, int]]:
    """What an extent falls into: pieces of a size, and how many of them."""
    yield size, extent // size
    yield extent % size, int(extent % size > 0)


@dataclass(frozen=True, slots=True)
class Blocked:
    """A convolution to blocks of ``block`` channels, and its numbers."""

    attrs: ConvAttrs
    block: int
    window: tuple[int, ...]
    outputs: tuple[int, ...]
    filters: int
    target: Target
    dtype: DType

    @property
    def flat(self) -> bool:
        """Whether the output at a position needs the input at that position only; then rows need not be told apart."""
        a = self.attrs
        return math.prod(self.window) == 1 and math.prod(a.strides) == 1 and not any(a.padding)

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
        return max(1, self.attrs.kernel.factor("O") // self.block)

    def border(self, tile: ChannelTile) -> Border:
        """The taps that such tiles leave out."""
        sizes = (*(1 for _ in self.outputs), tile.rows, tile.columns)[-len(self.outputs) :]
        return Border(self.attrs, self.window, self.outputs, sizes)

    @property
    def leaves_out(self) -> bool:
        """Whether taps beyond the border are left out."""
        return self.border(self._tile(leaves_out=True)).share <= MOST_READ

    @property
    def tile(self) -> ChannelTile:
        return self._tile(self.leaves_out)

    @lru_cache(maxsize=1024)  # noqa: B019  a value: strategies, costs, computes and schedules ask equal ones
    def _tile(self, leaves_out: bool) -> ChannelTile:
        blocks = self.filters // self.attrs.groups // self.block
        vectors = math.ceil(self.block / self.target.lanes(self.dtype))
        rows, columns = self.grid[-2:]
        registers = self.target.vector_registers // vectors
        share = (lambda tile: self.border(tile).share) if leaves_out else None
        return channel_tile(rows, columns, blocks, registers, None if self.panel == 1 else self.panel, share)

    def cost(self, types: Sequence[Type]) -> float:
        """Cycles of the steps of all tiles, and those to go through memory; again through x, if all of it is copied."""
        x, weight, result = (tensor_argument(kind, "argument") for kind in types)
        tile = self.tile
        channels = (const_int(weight.shape[1]) or 0) * self.attrs.data.factor("C")
        reduction_extent = channels * math.prod(self.window)
        stripes = elements(result) // (self.block * math.prod(self.outputs)) / tile.blocks
        vectors = math.ceil(self.block / self.target.lanes(self.dtype))
        near = self.flat and math.prod(self.outputs) * self.dtype.storage_bytes <= PAGE_BYTES // 2
        slowdown = 1.0
        if channels > self.block and not self.attrs.data.is_blocked:
            slowdown = NEAR_PLANES if near else FAR_PLANES
        copied = [x, x] if any(self.attrs.padding) else []
        *outer, rows, columns = self.grid
        steps = math.prod(outer) * tile_cycles(rows, columns, tile, self.target.fma_per_cycle)
        steps *= self.border(tile).share if self.leaves_out else 1.0
        return slowdown * vectors * stripes * reduction_extent * steps + moved([x, weight, result, *copied])

    def compute(self, attrs: ConvAttrs, inputs: Tensors, result: Type) -> ConvStages:
        """Sums by row and column, where all is one row if ``flat``; then the result, which reads them."""
        x, weight = inputs
        kind = tensor_argument(result, "result")
        border = self.border(self.tile) if self.leaves_out else None
        source = padded(x, attrs.data, attrs.padding if border is None else border.padding, "conv.padded")
        spatial = x.shape[2 : 2 + attrs.rank]
        channel = te.reduce_axis((0, weight.shape[1]), name="co")
        taps = [te.reduce_axis((0, extent), name=f"r{d}") for d, extent in enumerate(self.window)]
        window = [as_index(tap) for tap in taps]
        inner = [te.reduce_axis((0, x.shape[-1]), name="ci")] if attrs.data.is_blocked else []
        reduced = [channel, *taps, *inner]

        def element(n: Axis, ko: Axis, *index: Axis) -> Expr:
            *positions, ki = (as_index(i) for i in index)
            output = unravel_index(positions[-1], self.outputs) if self.in_row else positions
            if border is None:
                position = [
                    o * s + t * d for o, s, t, d in zip(output, attrs.strides, window, attrs.dilation, strict=True)
                ]
                where = None
            else:
                position, where = border.reads(output, window), border.inside(output, window, spatial)
            data = source[(n, self._first(weight, ko) + channel, *position, *inner)]
            panel, part = as_index(ko) // self.panel, as_index(ko) % self.panel
            return te.sum(data * weight[(panel, *reduced, part * self.block + ki)], axis=reduced, where=where)

        sums = te.compute((*kind.shape[:2], *self.grid, self.block), element, name="conv.sums")

        def unfold(n: Axis, k: Axis, *index: Axis) -> Expr:
            *output, c = (as_index(i) for i in index)
            positions = (ZERO, ravel_index(output, self.outputs)) if self.in_row else output
            return sums[(n, k, *positions, c)]

        return ConvStages(te.compute(kind.shape, unfold, name="conv"), x, source, weight, sums)

    def _first(self, weight: te.Tensor, ko: Axis) -> ExprLike:
        """The first block of channels (or channel) of the group that a block of filters is in."""
        group = self.filters // self.attrs.groups
        return 0 if self.attrs.groups == 1 else ko * self.block // group * weight.shape[1]

    def schedule(self, attrs: ConvAttrs, anchor: ConvStages, outputs: Tensors, target: Target) -> Schedule:
        """Stripes of blocks over chunks of rows in parallel; in each, tiles of sums, and their epilogue."""
        tile, sums = self.tile, anchor.sums
        schedule, main = schedule_around(anchor.result, outputs, [sums, *anchor.copies], target)
        stage = schedule[main]
        n, block, *outer, column, lane = stage.loops
        stripe, part = stage.split(block, factor=tile.blocks)
        tiles: list[LoopView] = []
        rows: list[LoopView] = []
        if self.in_row:
            positions = stage.fuse(*outer, column) if outer else column
            outer = []
            chunk, column = stage.split(positions, factor=self._chunk(anchor.source) * tile.columns)
        else:
            *outer, row = outer
            chunk, row = stage.split(row, factor=self._chunk(anchor.source) * tile.rows)
            down, row = stage.split(row, factor=tile.rows)
            tiles, rows = [down], [row]
        across, column = stage.split(column, factor=tile.columns)
        stage.reorder(n, *outer, chunk, stripe, *tiles, across, *rows, column, part, lane)
        stage.vectorize(lane)
        for loop in (*rows, column, part):
            stage.unroll(loop)
        task = stage.fuse(n, *outer, chunk, stripe)
        stage.parallel(task)
        schedule[sums].compute_at(stage, across)
        for tensor in anchor.copies:
            schedule_padded(schedule[tensor], attrs.data.is_blocked, target)
        self._schedule_sums(schedule[sums], anchor)  # last of all: each step after a prefetch would check it again
        return schedule

    def _schedule_sums(self, stage: StageView, anchor: ConvStages) -> None:
        """Put positions outside, blocks inside: a broadcast factor serves all blocks, and needs a register no
        longer."""
        n, block, *outer, row, column, lane = stage.loops[: anchor.sums.ndim]
        reductions = stage.loops[anchor.sums.ndim :]
        stage.reorder(n, *outer, *reductions, row, column, block, lane)
        stage.vectorize(lane)
        for loop in (row, column, block):
            stage.unroll(loop)
        self._fetch_ahead(stage, anchor.weight, reductions[-1])

    def _fetch_ahead(self, stage: StageView, weight: te.Tensor, innermost: LoopView) -> None:
        """Fetch weights some steps ahead, where a tile reads more than stays in the first cache until the next tile."""
        steps = math.prod(const_int(extent) or 1 for extent in weight.shape[1:-1])
        size = steps * self.tile.blocks * self.block * self.dtype.storage_bytes
        if size > self.target.l1_bytes // 4:
            fetch_ahead(stage, weight, innermost, STEPS_AHEAD)

    def _chunk(self, data: te.Tensor) -> int:
        """How many rows of tiles a task takes: few enough for many tasks, and for the data that they read to stay in
        cache."""
        tile, (*outer, rows, columns) = self.tile, self.grid
        tiles = math.ceil(columns / tile.columns) if self.in_row else math.ceil(rows / tile.rows)
        stripes = self.filters // (self.block * tile.blocks) * math.prod(outer)
        image = math.prod(const_int(extent) or 1 for extent in data.shape[1:]) * data.dtype.storage_bytes
        for extent, window in zip(data.shape[2 : 2 + len(outer)], self.window, strict=False):
            image = image * window // (const_int(extent) or 1)
        chunks = max(math.ceil(MANY_TASKS / stripes), math.ceil(2 * image / self.target.l2_bytes))
        most = math.ceil(tiles / min(chunks, tiles))
        return near_divisor(tiles, most)


def schedule_padded(stage: StageView, blocked: bool, target: Target) -> None:
    *outer, last = stage.loops
    lane = last
    if not blocked:
        _, lane = stage.split(last, factor=target.lanes(stage.op.outputs[0].dtype))
    stage.vectorize(lane)
    stage.parallel(stage.fuse(*outer[:2]))
