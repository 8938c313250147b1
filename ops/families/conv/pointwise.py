"""Convolutions with windows of one element whose weights stand in panels of filters: layout OIHW8o, and the like.

sums[n, k, position] = Σ w[k, c] · x[n, c, position], vectors along the positions. A tile of sums, some filters times
some vectors, stays in registers while the channels go by; a step loads its vectors, and broadcasts the weights of its
filters, which stand side by side. ``pointwise_candidates`` is the layout rule that has them so; ``flat.py`` serves
others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from ....base.dataclass import dataclass
from ....base.target import Target
from ....ir.expr import Expr
from ....ir.row_major import ravel_index
from ....lowering.schedule import LoopView, Schedule, StageView
from ....schedules.around import schedule_around, sums_over
from ....schedules.blocks import MANY_TASKS, near_divisor, part_sizes
from ....schedules.machine import CORE
from ....schedules.product import PACKED_USES
from ....schedules.register_tile import RegisterTile
from ....te.tensor import Tensors
from ...definition.cost import elements, moved
from ...definition.layout_rule import LayoutCandidate, ValueLayout
from ...definition.strategy import OpStrategy
from .attrs import ConvAttrs
from .definition import DefinedStages, definition
from .flat import lanes_for
from .layouts import kernel_layout
from .problem import ConvProblem

WIDE = 4
"""Tiles side by side, at least: rows of the result are written, and rows of x read, some lines at a time."""
FEW_TASKS = 4
"""So many tasks that pack their own vectors are better than more that share them."""


@dataclass(frozen=True, slots=True)
class PackedPointwise:
    """A convolution to ``outputs`` of which all extents are known but N."""

    problem: ConvProblem
    outputs: tuple[int, ...]

    @property
    def vectors(self) -> int:
        """How many vectors the positions fill; the last one may be filled in part."""
        return math.ceil(math.prod(self.outputs) / self.problem.lanes)

    @property
    def tile(self) -> RegisterTile:
        """The tile that takes the least time."""
        return min(self.tiles, key=self._steps)

    @property
    def tiles(self) -> list[RegisterTile]:
        """All tiles that fit in the registers: of the height of the panels that the weights are in, if there is one."""
        lanes, registers = self.problem.lanes, self.problem.target.vector_registers
        given, filters = self.problem.attrs.kernel.factor("O"), self.problem.group_filters
        heights = [h for h in range(1, registers) if filters % h == 0] if given == 1 else [given]
        return [
            RegisterTile(height, width, lanes)
            for width in range(1, registers // 2)
            for height in heights
            if width * (height + CORE.steps_unrolled) + 1 <= registers or height * width == 1
        ]

    def _steps(self, tile: RegisterTile, rate: int = CORE.full_rate) -> float:
        """Cycles for one channel of all sums."""
        whole, rest = divmod(self.vectors, tile.vectors)
        last = step_cycles(tile.rows, rest, rate) if rest else 0.0
        return self.problem.filters / tile.rows * (whole * step_cycles(tile.rows, tile.vectors, rate) + last)

    @property
    def packs(self) -> bool:
        """Whether x is copied to vectors that stand one after the other, channel by channel."""
        return self.problem.is_strided or self.problem.group_filters >= PACKED_USES * self.tile.rows

    def cost(self) -> float:
        """Cycles of one core: the steps of all sums, and one passage through the arguments, the result, and a copy of x
        where vectors are packed."""
        problem = self.problem
        images = elements(problem.result) / (problem.filters * math.prod(self.outputs))
        copied = [problem.x] if self.packs else []
        steps = self._steps(self.tile, problem.target.fma_per_cycle)
        return images * problem.group_channels * steps + moved([*problem.types, *copied])

    def schedule(self, attrs: ConvAttrs, anchor: DefinedStages, outputs: Tensors, target: Target) -> Schedule:
        """Run chunks of positions in parallel, and shares of the filters if these are few; a task goes through panels
        of filters, and for each of these through the chunk's tiles, with what follows their sums."""
        sums, extents = anchor.sums, self.outputs
        schedule, main = schedule_around(anchor.result, outputs, [sums, *anchor.copies], target)
        tile, chunk, share = self._decide_sizes(schedule)
        pack = schedule.decide("pack", [False, True], self.packs)

        def vector_of_x(n: Expr, c: Expr, *o: Expr) -> tuple[Expr, ...]:
            position = ravel_index(o, extents)
            return n, position // tile.lanes, c, position % tile.lanes

        def in_vectors(n: Expr, k: Expr, *o: Expr) -> tuple[Expr, ...]:
            position = ravel_index(o, extents)
            return n, k, position // tile.lanes, position % tile.lanes

        vectors = schedule.cache_read(anchor.source, "local", [sums], pad=0, axes=vector_of_x)
        core = sums_over(schedule, sums, main, in_vectors)
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
        schedule[core].compute_at(stage, across)
        self._schedule_sums(schedule[core])
        if not pack:
            for stage_read in (vectors, *anchor.copies):
                schedule[stage_read].compute_inline()
            return schedule
        shared = share * tile.rows < self.problem.filters
        if not shared:
            schedule[vectors].compute_at(stage, task)
        channel = _schedule_vectors(schedule[vectors], tile.lanes, shared)
        for source in anchor.copies:  # what the strides leave of x, a channel at a time
            schedule[source].compute_at(schedule[vectors], channel)
            _, lane = schedule[source].split(schedule[source].loops[-1], factor=lanes_for(extents[-1], tile.lanes))
            schedule[source].vectorize(lane)
        return schedule

    def _schedule_sums(self, stage: StageView) -> None:
        n, k, vector, lane, channel, *taps = stage.loops
        steps = []
        if self.problem.channels_are_multiple_of(CORE.steps_unrolled):
            channel, step = stage.split(channel, factor=CORE.steps_unrolled)
            steps = [step]
        stage.reorder(n, channel, *steps, *taps, k, vector, lane)
        stage.vectorize(lane)
        for loop in (*steps, k, vector):
            stage.unroll(loop)

    def _decide_sizes(self, schedule: Schedule) -> tuple[RegisterTile, int, int]:
        """The tile, whose rows are those of a panel of weights, the tiles of a chunk, and the panels of a share."""
        tile = self.tile
        widths = sorted({each.vectors for each in self.tiles if each.rows == tile.rows})
        tile = replace(tile, vectors=schedule.decide("vectors", widths, tile.vectors))
        chunk, share = self._tasks(tile)
        tiles, panels = math.ceil(self.vectors / tile.vectors), self.problem.filters // tile.rows
        chunk = schedule.decide("chunk", part_sizes(tiles, chunk), chunk)
        return tile, chunk, schedule.decide("share", part_sizes(panels, share), share)

    def _tasks(self, tile: RegisterTile) -> tuple[int, int]:
        """How many tiles make a chunk, which is to stay in the second cache, and panels of filters a share of it.

        Where vectors are shared, each thread reads what others have packed. All of them stay in cache then, if they
        can, so that shares are equal; few panels of filters are not shared, but go with tiles one by one.
        """
        problem = self.problem
        tiles, panels = math.ceil(self.vectors / tile.vectors), problem.filters // tile.rows
        size = problem.group_channels * problem.attrs.groups * tile.columns * problem.dtype.storage_bytes
        fitting = problem.target.l2_bytes // (2 * size)
        wide = 1 if FEW_TASKS <= tiles <= fitting and panels < MANY_TASKS else WIDE
        chunk = near_divisor(tiles, min(max(tiles // MANY_TASKS, wide), fitting))
        chunks = math.ceil(tiles / chunk)
        if chunks >= FEW_TASKS:
            return chunk, panels
        if tiles <= fitting:
            chunk, chunks = tiles, 1
        return chunk, near_divisor(panels, panels // math.ceil(MANY_TASKS / chunks))


def step_cycles(rows: int, vectors: int, rate: int = CORE.full_rate) -> float:
    """Cycles for one channel of a tile's sums.

    Products are added ``rate`` vectors a cycle; a vector comes from the second cache in a cycle and a half; a sum waits
    four cycles for its last addition. Of a broadcast a tenth of a cycle is not hidden behind these, of a vector from
    the second cache a third; the loop takes one.
    """
    return (
        max(rows * vectors / rate, CORE.second_cache_cycles * vectors, CORE.sum_cycles)
        + rows / 10
        + vectors / 3
        + 1 / CORE.steps_unrolled
    )


def _schedule_vectors(stage: StageView, lanes: int, parallel: bool) -> LoopView:
    """Channel by channel, which reads the source in order, to lines at other offsets in a page; gives the loop over
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
    outputs, counts = problem.outputs, (problem.filters, problem.group_channels)
    if not (problem.is_plain and problem.is_pointwise and outputs and all((*counts, *outputs))):
        return None
    return PackedPointwise(problem, outputs)


def add_packed_pointwise(strategy: OpStrategy, problem: ConvProblem) -> None:
    """Offer it for weights in panels of filters, of one group each, whose sums fit in the registers."""
    made = packed_pointwise(problem)
    rows = problem.attrs.kernel.factor("O")
    if made is None or rows == 1 or not problem.has_panels_of(rows) or problem.group_filters % rows or not made.tiles:
        return
    strategy.add_implementation(definition, made.schedule, "conv.pointwise_packed", cost=made.cost())


def pointwise_candidates(problem: ConvProblem, given: ValueLayout | None) -> Iterator[LayoutCandidate]:
    """The layout rule: weights O, I, … in panels of as many filters as a tile has."""
    if given is not None or not problem.has_plain_kernel or not problem.is_of_one_float:
        return
    made = packed_pointwise(problem)
    if made is not None and made.tile.rows > 1:
        panels = ValueLayout(problem.plain_kernel, kernel_layout(problem.rank, 1, made.tile.rows))
        yield LayoutCandidate((None, panels), replace(problem.attrs, kernel_layout=str(panels)), None)
