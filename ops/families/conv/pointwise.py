"""Convolutions with windows of one element whose weights stand in panels of filters: layout OIHW8o, and the like.

sums[n, k, position] = Σ w[k, c] · x[n, c, position], vectors along the positions. A tile of sums, some filters times
some vectors, stays in registers while the channels go by; a step loads its vectors, and broadcasts the weights of its
filters, which stand side by side. ``pointwise_candidates`` is the layout rule that has them so; ``flat.py`` serves
others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .... import te
from ....base.dtype import DType
from ....base.target import Target
from ....graph.types import Type
from ....ir.expr import Axis, Expr
from ....ir.makers import as_index
from ....ir.row_major import ravel_index, unravel_index
from ....lowering.schedule import LoopView, Schedule, StageView
from ....schedules.around import schedule_around
from ....schedules.blocks import MANY_TASKS, near_divisor
from ....schedules.product import PACKED_USES
from ....schedules.register_tile import FULL_RATE, RegisterTile
from ....te.tensor import Tensors
from ...definition.cost import elements, moved
from ...definition.layout_rule import LayoutCandidate, ValueLayout
from ...definition.relations import tensor_argument
from ...definition.strategy import OpStrategy
from .attrs import ConvAttrs
from .flat import lanes_for
from .layouts import kernel_layout
from .problem import ConvProblem
from .stages import ConvStages

STEPS_UNROLLED = 2
"""Channels between two tests whether the sum ends."""
WIDE = 4
"""Tiles side by side, at least: rows of the result are written, and rows of x read, some lines at a time."""
FEW_TASKS = 4
"""So many tasks that pack their own vectors are better than more that share them."""


@dataclass(frozen=True, slots=True)
class PackedStages(ConvStages):
    """The source are vectors of ``places``: x, or what its strides leave of it."""

    places: te.Tensor


@dataclass(frozen=True, slots=True)
class PackedPointwise:
    """A convolution of known extents but N, and its numbers; ``channels`` are those of a group."""

    attrs: ConvAttrs
    outputs: tuple[int, ...]
    filters: int
    channels: int
    target: Target
    dtype: DType

    @property
    def group_filters(self) -> int:
        return self.filters // self.attrs.groups

    @property
    def vectors(self) -> int:
        """How many vectors the positions fill; the last one may be filled in part."""
        return math.ceil(math.prod(self.outputs) / self.target.lanes(self.dtype))

    @property
    def tile(self) -> RegisterTile:
        """The tile that takes the least time."""
        return min(self.tiles, key=self._steps)

    @property
    def tiles(self) -> list[RegisterTile]:
        """Those that fit in the registers: of the height of the panels that the weights are in, if there is one."""
        lanes, registers = self.target.lanes(self.dtype), self.target.vector_registers
        given = self.attrs.kernel.factor("O")
        heights = [h for h in range(1, registers) if self.group_filters % h == 0] if given == 1 else [given]
        return [
            RegisterTile(height, width, lanes)
            for width in range(1, registers // 2)
            for height in heights
            if width * (height + STEPS_UNROLLED) + 1 <= registers or height * width == 1
        ]

    def _steps(self, tile: RegisterTile, rate: int = FULL_RATE) -> float:
        """Cycles for one channel of all sums."""
        whole, rest = divmod(self.vectors, tile.vectors)
        last = step_cycles(tile.rows, rest, rate) if rest else 0.0
        return self.filters / tile.rows * (whole * step_cycles(tile.rows, tile.vectors, rate) + last)

    @property
    def strided(self) -> bool:
        return any(s > 1 for s in self.attrs.strides)

    @property
    def packs(self) -> bool:
        """Whether x is copied to vectors that stand one after the other, channel by channel."""
        return self.strided or self.group_filters >= PACKED_USES * self.tile.rows

    def cost(self, types: Sequence[Type]) -> float:
        x, weight, result = (tensor_argument(kind, "argument") for kind in types)
        images = elements(result) / (self.filters * math.prod(self.outputs))
        copied = [x] if self.packs else []
        steps = self._steps(self.tile, self.target.fma_per_cycle)
        return images * self.channels * steps + moved([x, weight, result, *copied])

    def compute(self, attrs: ConvAttrs, inputs: Tensors, result: Type) -> PackedStages:
        x, weight = inputs
        kind = tensor_argument(result, "result")
        count, lanes, rows = math.prod(self.outputs), self.tile.lanes, self.tile.rows

        def place(n: Axis, c: Axis, *o: Axis) -> Expr:
            return x[(n, c, *(i * s for i, s in zip(o, attrs.strides, strict=True)))]

        places = te.compute((*x.shape[:2], *self.outputs), place, name="conv.places") if self.strided else x

        def vector(n: Axis, v: Axis, c: Axis, lane: Axis) -> Expr:
            position = v * lanes + lane
            value = places[(n, c, *unravel_index(position, self.outputs))]
            return value if count % lanes == 0 else te.if_then_else(position < count, value, te.const(0, value.dtype))

        source = te.compute((x.shape[0], self.vectors, x.shape[1], lanes), vector, name="conv.vectors")
        c = te.reduce_axis((0, self.channels), name="c")
        ones = (0,) * attrs.rank

        def element(n: Axis, k: Axis, v: Axis, lane: Axis) -> Expr:
            channel = c if attrs.groups == 1 else as_index(k) // self.group_filters * self.channels + c
            return te.sum(source[n, v, channel, lane] * weight[(as_index(k) // rows, c, *ones, k % rows)], axis=c)

        sums = te.compute((x.shape[0], self.filters, self.vectors, lanes), element, name="conv.sums")

        def unfold(n: Axis, k: Axis, *o: Axis) -> Expr:
            position = ravel_index([as_index(i) for i in o], self.outputs)
            return sums[n, k, position // lanes, position % lanes]

        return PackedStages(te.compute(kind.shape, unfold, name="conv"), x, source, weight, sums, places)

    def schedule(self, attrs: ConvAttrs, anchor: PackedStages, outputs: Tensors, target: Target) -> Schedule:
        """Chunks of positions in parallel, and shares of the filters if these are few; in each, panels of filters, and
        for each of these the chunk's tiles, with what follows their sums."""
        tile, (chunk, share) = self.tile, self._tasks()
        sums, source = anchor.sums, anchor.source
        places = [anchor.places] if self.strided else []
        schedule, main = schedule_around(anchor.result, outputs, [sums, source, *places], target)
        stage = schedule[main]
        n, k, *spatial = stage.loops[: main.ndim]
        vector, lane = stage.split(stage.fuse(*spatial), factor=tile.lanes)
        across, vector = stage.split(vector, factor=tile.vectors)
        outer, across = stage.split(across, factor=chunk)
        panel, row = stage.split(k, factor=tile.rows)
        part, panel = stage.split(panel, factor=share)
        stage.reorder(n, outer, part, panel, across, row, vector, lane)
        stage.vectorize(lane)
        stage.unroll(vector)
        stage.unroll(row)
        task = stage.fuse(n, outer, part)
        stage.parallel(task)
        schedule[sums].compute_at(stage, across)
        self._schedule_sums(schedule[sums])
        if not self.packs:
            schedule[source].compute_inline()
            return schedule
        shared = share * tile.rows < self.filters
        if not shared:
            schedule[source].compute_at(stage, task)
        channel = _schedule_vectors(schedule[source], tile.lanes, shared)
        for tensor in places:
            schedule[tensor].compute_at(schedule[source], channel)
            _, lane = schedule[tensor].split(schedule[tensor].loops[-1], factor=lanes_for(self.outputs[-1], tile.lanes))
            schedule[tensor].vectorize(lane)
        return schedule

    def _schedule_sums(self, stage: StageView) -> None:
        n, k, vector, lane, channel = stage.loops
        steps = []
        if self.channels % STEPS_UNROLLED == 0:
            channel, step = stage.split(channel, factor=STEPS_UNROLLED)
            steps = [step]
        stage.reorder(n, channel, *steps, k, vector, lane)
        stage.vectorize(lane)
        for loop in (*steps, k, vector):
            stage.unroll(loop)

    def _tasks(self) -> tuple[int, int]:
        """How many tiles make a chunk, which is to stay in the second cache, and panels of filters a share of it.

        Where vectors are shared, each thread reads what others have packed. All of them stay in cache then, if they
        can, so that shares are equal; few panels of filters are not shared, but go with tiles one by one.
        """
        tile = self.tile
        tiles, panels = math.ceil(self.vectors / tile.vectors), self.filters // tile.rows
        size = self.channels * self.attrs.groups * tile.columns * self.dtype.storage_bytes
        fitting = self.target.l2_bytes // (2 * size)
        wide = 1 if FEW_TASKS <= tiles <= fitting and panels < MANY_TASKS else WIDE
        chunk = near_divisor(tiles, min(max(tiles // MANY_TASKS, wide), fitting))
        chunks = math.ceil(tiles / chunk)
        if chunks >= FEW_TASKS:
            return chunk, panels
        if tiles <= fitting:
            chunk, chunks = tiles, 1
        return chunk, near_divisor(panels, panels // math.ceil(MANY_TASKS / chunks))


def step_cycles(rows: int, vectors: int, rate: int = FULL_RATE) -> float:
    """Cycles for one channel of a tile's sums.

    Products are added ``rate`` vectors a cycle; a vector comes from the second cache in a cycle and a half; a sum waits
    four cycles for its last addition. Of a broadcast a tenth of a cycle is not hidden behind these, of a vector from
    the second cache a third; the loop takes one.
    """
    return max(rows * vectors / rate, 1.5 * vectors, 4.0) + rows / 10 + vectors / 3 + 1 / STEPS_UNROLLED


def _schedule_vectors(stage: StageView, lanes: int, parallel: bool) -> LoopView:
    """Channel by channel, which reads the source in order, to lines at other places of a page; gives the loop over
    channels."""
    n, vector, channel, lane = stage.loops
    stage.storage_align(1, 2 * lanes, lanes)
    stage.reorder(n, channel, vector, lane)
    stage.vectorize(lane)
    channel = stage.fuse(n, channel)
    if parallel:
        stage.parallel(channel)
    return channel


def packed_pointwise(problem: ConvProblem) -> PackedPointwise | None:
    """The numbers of a convolution of N, C, …, if its window is one element and all extents but N are known."""
    outputs, filters, channels = problem.outputs, problem.filters, problem.group_channels
    if not (problem.is_plain and problem.is_pointwise and outputs and all((filters, channels, *outputs))):
        return None
    return PackedPointwise(problem.attrs, outputs, filters, channels, problem.target, problem.dtype)


def add_packed_pointwise(strategy: OpStrategy, problem: ConvProblem) -> None:
    """Offer it for weights in panels of filters, of one group each, whose sums fit in the registers."""
    made = packed_pointwise(problem)
    rows = problem.attrs.kernel.factor("O")
    if made is None or rows == 1 or not problem.has_panels_of(rows) or made.group_filters % rows or not made.tiles:
        return
    cost = made.cost(problem.types)
    strategy.add_implementation(made.compute, made.schedule, "conv.pointwise_packed", 25, cost=cost)


def pointwise_candidates(problem: ConvProblem, given: ValueLayout | None) -> Iterator[LayoutCandidate]:
    """The layout rule: weights O, I, … in panels of as many filters as a tile has."""
    if given is not None or not problem.has_plain_kernel or not problem.is_of_one_float:
        return
    made = packed_pointwise(problem)
    if made is not None and made.tile.rows > 1:
        panels = ValueLayout(problem.plain_kernel, kernel_layout(problem.rank, 1, made.tile.rows))
        yield LayoutCandidate((None, panels), replace(problem.attrs, kernel_layout=str(panels)), None)
