"""Convolutions of data whose batch stands last: WCN, HWCN, DHWCN. Vectors are of images, so loads are contiguous.

At each output position a product of matrices: a register tile is of filters times vectors of images, the weights are
broadcast. The compute is the definition (``definition.py``).
"""

from __future__ import annotations

from ....base.dataclass import dataclass
from ....base.target import Target
from ....graph.layout import Layout
from ....ir.expr import Expr
from ....lowering.schedule import Schedule
from ....schedules.around import schedule_around, sums_over
from ....schedules.decide_tile import decide_tile
from ....schedules.default_schedule import schedule_stage
from ....schedules.product import schedule_core
from ....schedules.register_tile import RegisterTile, register_tile
from ....te.tensor import Tensors
from ...definition.cost import moved
from ...definition.strategy import OpStrategy
from ..window import spatial_axes
from .attrs import ConvAttrs
from .definition import DefinedStages, definition, schedule_copies
from .problem import ConvProblem


def add_batch_last(strategy: OpStrategy, problem: ConvProblem) -> None:
    """Offer it where x and the result have their batch last, which is known and half fills a vector."""
    attrs, kind, batch = problem.attrs, problem.result, problem.batch
    if not problem.held_in(Layout(f"{spatial_axes(problem.rank)}CN")) or attrs.kernel.is_blocked or batch is None:
        return
    tile = register_tile(problem.group_filters, batch, problem.target, kind.dtype, divides=attrs.groups > 1)
    made = BatchLast(problem.group_filters, batch, tile)
    with strategy.specialized(2 * kind.shape[-1] >= tile.lanes):
        strategy.add_implementation(definition, made.schedule, "conv.batch_last", cost=moved(problem.types))


@dataclass(frozen=True, slots=True)
class BatchLast:
    """The schedule of a convolution with so many filters in a group, of a batch of images."""

    filters: int
    batch: int
    tile: RegisterTile

    def schedule(self, attrs: ConvAttrs, anchor: DefinedStages, outputs: Tensors, target: Target) -> Schedule:
        """Run positions in parallel; each computes tiles of sums, and their epilogue."""
        sums = anchor.sums
        schedule, main = schedule_around(anchor.result, outputs, [sums, *anchor.copies], target)
        group = self.filters if attrs.groups > 1 else 0
        tile = decide_tile(schedule, self.tile, self.filters, self.batch, target, rows_divide=group)
        width = tile.columns

        def in_tiles(*index: Expr) -> tuple[Expr, ...]:
            *o, c, n = index
            return *o, c, n // width, n % width

        if self.batch % width:  # where it lies, and 0 beyond the last image
            images = schedule.cache_read(anchor.source, "local", [sums], pad=0, axes=in_tiles)
            schedule[images].compute_inline()
        core = sums_over(schedule, sums, main, in_tiles)
        stage = schedule[main]
        *o, k, n = stage.loops
        t, column = stage.split(n, factor=width)
        block, row = stage.split(k, factor=tile.rows)
        vector, lane = stage.split(column, factor=tile.lanes)
        stage.vectorize(lane)
        stage.reorder(*o, t, block, row, vector, lane)
        stage.parallel(stage.fuse(*o))
        schedule[core].compute_at(stage, block)
        schedule_core(schedule, core, tile)
        schedule_copies(schedule, anchor, attrs, lambda copy: schedule_stage(copy, target))
        return schedule
