"""Convolutions of bytes summed in tiles, the registers that hold small matrices, with all spatial axes as one.

As in ``flat.py``, a tap is at a constant distance from an output in a copy of x in phases, which is of words here: so
the words of a step, of neighbouring channels, are rows of the copy, and those of a filter lie side by side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ....base.dataclass import dataclass
from ....base.target import Target
from ....ir.expr import Expr
from ....ir.row_major import ravel_index
from ....ir.tiles import TILE_EXTENT, TileBlock
from ....lowering.schedule import LoopView, Schedule
from ....schedules.around import schedule_around, sums_over
from ....schedules.blocks import largest_divisor
from ....schedules.tiles import SQUARE, sum_in_tiles, tile_cycles
from ....te.tensor import Tensor, Tensors
from ...definition.cost import multiplied
from .byte_operands import ChannelWords
from .definition import DefinedStages
from .flat import Flat, copy_in_phases, lanes_for, schedule_phases
from .problem import ConvProblem


@dataclass(frozen=True, slots=True)
class TiledConv:
    """Sums of a block of filters by a block of positions."""

    flat: Flat
    block: TileBlock

    @staticmethod
    def of(problem: ConvProblem, outputs: tuple[int, ...]) -> TiledConv | None:
        """The convolution in blocks of its filters; None where tiles cannot serve, or would be slower than vectors."""
        words = ChannelWords(problem)
        if not (problem.target.has_tiles and words.ready) or problem.attrs.groups > 1:
            return None
        filters = problem.filters
        rows = max(largest_divisor(filters, TILE_EXTENT), 2 * largest_divisor(filters // 2, TILE_EXTENT))
        flat = Flat.of(problem, outputs, words.count_of_filter)
        columns = min(SQUARE, math.ceil(flat.positions / TILE_EXTENT) * TILE_EXTENT)
        block = TileBlock(rows, columns, largest_divisor(words.count, TILE_EXTENT))
        if filters % rows or not block.exists:
            return None
        made = TiledConv(flat, block)
        blocks = filters // block.rows * math.ceil(flat.positions / columns)
        products = filters * flat.positions * words.count_of_filter
        in_vectors = multiplied(products, problem.dtype, problem.target, 1.0)
        return made if tile_cycles(block, blocks, words.count_of_filter) < in_vectors else None

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
        extents, (rows, width) = self.flat.outputs, (self.block.rows, self.block.columns)

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
        self._sum(schedule, core, main, at)

    def _schedule_shifted(self, schedule: Schedule, anchor: DefinedStages, main: Tensor) -> None:
        """Products with shifted positions of a copy in phases: what follows is computed when all positions of a block
        of filters are summed."""
        widths = self.flat.widths
        copy = copy_in_phases(schedule, anchor, self.flat)
        core = sums_over(schedule, anchor.sums, main, lambda n, k, *o: (n, k, ravel_index(o, widths)))
        stage = schedule[main]
        n, k, *spatial = stage.loops
        filters, _ = stage.split(k, factor=self.block.rows)
        _, lane = stage.split(spatial[-1], factor=lanes_for(self.flat.outputs[-1], self.flat.tile.lanes))
        stage.vectorize(lane)
        tasks = stage.fuse(n, filters)
        stage.parallel(tasks)
        schedule_phases(schedule, copy, self.flat)
        self._sum(schedule, core, main, tasks, [-1], inside=True)

    def _sum(
        self,
        schedule: Schedule,
        core: Tensor,
        main: Tensor,
        at: LoopView,
        ragged: Sequence[int] = (),
        inside: bool = False,
    ) -> None:
        weight = self.flat.problem.weight.dtype
        sum_in_tiles(schedule, core, self.block, weight, weight.is_signed, main, at, ragged, inside)
