"""Convolutions of bytes summed in tiles, the registers that hold small matrices, with all spatial axes as one.

As in ``flat.py``, a tap is at a constant distance from an output in a copy of x in phases, which is of words here: so
the words of a step, of neighbouring channels, are rows of the copy, and those of a filter lie side by side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ....base.dataclass import dataclass
from ....base.dtype import DType
from ....base.target import Target
from ....ir.expr import Expr
from ....ir.row_major import ravel_index
from ....ir.tiles import TILE_EXTENT, TileBlock
from ....lowering.schedule import LoopView, Schedule
from ....schedules.around import schedule_around, sums_over
from ....schedules.blocks import largest_divisor
from ....schedules.machine import CORE
from ....schedules.tiles import SQUARE, sum_in_tiles, tile_cycles
from ....te.tensor import Tensor, Tensors
from ...definition.cost import multiplied
from .byte_operands import ChannelWords
from .definition import DefinedStages
from .flat import Flat, copy_in_phases, lanes_for, schedule_phases
from .problem import ConvProblem


@dataclass(frozen=True, slots=True)
class FilterTiles:
    """A block of filters by positions, of filters of bytes of a dtype, whose words of a tap lie side by side."""

    block: TileBlock
    weight: DType
    lost: float
    """Cycles that it takes longer than sums in vectors, where it does: for a small image it is not worth to begin."""

    @staticmethod
    def of(problem: ConvProblem, positions: int) -> FilterTiles | None:
        """The block for so many positions of an image; None where tiles cannot serve, or would be slower than vectors
        of all positions."""
        words, filters = ChannelWords(problem), problem.filters
        if not (problem.target.has_tiles and words.ready) or problem.attrs.groups > 1:
            return None
        rows = largest_divisor(filters, TILE_EXTENT)
        if filters % 2 == 0:
            rows = max(rows, 2 * largest_divisor(filters // 2, TILE_EXTENT))
        columns = min(SQUARE, math.ceil(positions / TILE_EXTENT) * TILE_EXTENT)
        block = TileBlock(rows, columns, largest_divisor(words.count, TILE_EXTENT))
        if not block.exists:
            return None
        blocks = filters // rows * math.ceil(positions / columns)
        products = filters * positions * words.count_of_filter
        in_vectors = multiplied(products, problem.dtype, problem.target, 1.0)
        in_tiles = tile_cycles(block, blocks, words.count_of_filter)
        if in_tiles >= in_vectors:
            return None
        return FilterTiles(block, problem.weight.dtype, max(0.0, CORE.tiles.begun + in_tiles - in_vectors))

    def sum(self, schedule: Schedule, core: Tensor, main: Tensor, at: LoopView) -> None:
        """Sum ``core[n, filter, position]`` where ``main`` needs a block of filters at a loop."""
        sum_in_tiles(schedule, core, self.block, self.weight, self.weight.is_signed, main, at, [-1], inside=True)

    def sum_panel(self, schedule: Schedule, core: Tensor, main: Tensor, at: LoopView) -> None:
        """Sum ``core[n, panel, filter, position]`` where ``main`` needs a block of filters and a panel at a loop."""
        sum_in_tiles(schedule, core, self.block, self.weight, self.weight.is_signed, main, at)


@dataclass(frozen=True, slots=True)
class TiledConv:
    """Sums of a block of filters by a block of positions, of an image of known extents."""

    flat: Flat
    tiles: FilterTiles

    @staticmethod
    def of(problem: ConvProblem, flat: Flat) -> TiledConv | None:
        """The convolution in tiles, if they serve."""
        tiles = FilterTiles.of(problem, flat.positions)
        return None if tiles is None else TiledConv(flat, tiles)

    def schedule_sums(
        self, anchor: DefinedStages, outputs: Tensors, target: Target, keep: Sequence[Tensor] = ()
    ) -> Schedule:
        """Schedule the sums, and what follows them. ``keep`` are stages that the caller schedules."""
        schedule, main = schedule_around(anchor.result, outputs, [anchor.sums, *anchor.copies, *keep], target)
        if self.flat.problem.is_pointwise and not self.flat.problem.is_strided:
            self._schedule_panels(schedule, anchor, main)
        else:
            self._schedule_shifted(schedule, anchor, main)
        return schedule

    def _schedule_panels(self, schedule: Schedule, anchor: DefinedStages, main: Tensor) -> None:
        """A product of filters with panels of positions: what follows a block of sums is computed block by block."""
        extents, (rows, width) = self.flat.outputs, (self.tiles.block.rows, self.tiles.block.columns)

        def panel(n: Expr, c: Expr, *o: Expr) -> tuple[Expr, ...]:
            position = ravel_index(o, extents)
            return n, position // width, c, position % width

        copy = schedule.cache_read(anchor.source, "local", [anchor.sums], pad=0, axes=panel)
        for source in anchor.copies:
            schedule[source].compute_inline()
        core = sums_over(schedule, anchor.sums, main, panel)
        stage, lanes = schedule[main], self.flat.tile.lanes
        n, k, *spatial = stage.loops
        filters, row = stage.split(k, factor=rows)
        at, column = stage.split(stage.fuse(*spatial), factor=width)
        vector, lane = stage.split(column, factor=lanes)
        stage.reorder(n, filters, at, row, vector, lane)
        stage.vectorize(lane)
        stage.parallel(stage.fuse(n, filters))
        made = schedule[copy]
        n, tile, c, column = made.loops
        vector, lane = made.split(column, factor=lanes)
        made.reorder(n, c, tile, vector, lane)
        made.vectorize(lane)
        made.parallel(made.fuse(n, c))
        self.tiles.sum_panel(schedule, core, main, at)

    def _schedule_shifted(self, schedule: Schedule, anchor: DefinedStages, main: Tensor) -> None:
        """Products with shifted positions of a copy in phases: what follows is computed when all positions of a block
        of filters are summed."""
        widths = self.flat.widths
        copy = copy_in_phases(schedule, anchor, self.flat)
        core = sums_over(schedule, anchor.sums, main, lambda n, k, *o: (n, k, ravel_index(o, widths)))
        stage = schedule[main]
        n, k, *spatial = stage.loops
        filters, _ = stage.split(k, factor=self.tiles.block.rows)
        _, lane = stage.split(spatial[-1], factor=lanes_for(self.flat.outputs[-1], self.flat.tile.lanes))
        stage.vectorize(lane)
        tasks = stage.fuse(n, filters)
        stage.parallel(tasks)
        schedule_phases(schedule, copy, self.flat)
        self.tiles.sum(schedule, core, main, tasks)
