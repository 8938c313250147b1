"""The implementation of nn.matmul and nn.dense for few columns and a long reduction: both factors stay as they lie.

Where a register tile is as wide as the result, the right factor is a panel already, and no second panel uses the rows
of the left one, so that a copy of either would not pay. The reduction is blocked, for the first cache to hold what a
block of it reads of the right factor, for all rows of a task:

    for task in parallel(blocks of rows):
        for block of the reduction:
            for each tile of rows, all columns wide: its sums, in memory between two blocks, go on
        what follows the sums
"""

from __future__ import annotations

import math
from typing import Any

from ....base.aligned import PAGE_BYTES
from ....base.dataclass import dataclass
from ....base.target import Target
from ....ir.constants import const_int
from ....ir.open_extents import LONG, MANY_ROWS
from ....lowering.schedule import Schedule
from ....schedules.around import schedule_around_sums
from ....schedules.blocks import largest_divisor, part_sizes
from ....schedules.decide_tile import decide_tile
from ....schedules.fetch_ahead import fetch_ahead
from ....schedules.machine import CORE
from ....schedules.register_tile import RegisterTile, register_tile
from ....te.tensor import Tensors
from ...definition.strategy import Compute, OpStrategy
from .blocking import UNROLLED
from .panels import MatrixProduct, ProductStages
from .streamed import sum_by_blocks

MOST_VECTORS = 4
"""How wide a tile may be that leaves registers for enough rows to use each vector often."""
MOST_FETCHED = PAGE_BYTES // 2
"""Bytes of the next tile's rows that are fetched ahead: some lines of each, at which a prefetcher would only begin."""
SUMS = 1.5
"""Cycles to bring a vector of sums from the first cache and back, before and after a block of the reduction."""
LEAST_BLOCK = 16
"""A shorter block of the reduction does not pay for the sums' way to memory and back."""
TASK_ROWS = 32
"""For so many rows of a task, the right factor comes once more from far away."""


@dataclass(frozen=True, slots=True)
class Long:
    """[…, M, K] · [batch…, K, N] with N as wide as a register tile, with the reduction in blocks of ``terms``;
    ``blocks`` of rows, as high as a tile, are a task: all of them decisions of the schedule, and what they are by
    default."""

    tile: RegisterTile
    terms: int
    blocks: int

    def schedule(self, attrs: Any, anchor: ProductStages, outputs: Tensors, target: Target) -> Schedule:
        """The schedule of the definition: some tiles of rows are a task, which goes through the reduction block by
        block, so that the rows of the right factor that a block reads stay in the first cache."""
        schedule, core, main = schedule_around_sums(anchor.result, anchor.sums, outputs, (), target)
        left, rows, columns = anchor.left, const_int(core.shape[-2]) or MANY_ROWS, const_int(core.shape[-1]) or 1
        tile = decide_tile(schedule, self.tile, rows, columns, target)
        terms = schedule.decide(
            "terms", part_sizes(const_int(core.op.reduce_axis[0].extent) or LONG, self.terms), self.terms
        )
        unrolled = [count for count in UNROLLED if terms % count == 0]
        steps = schedule.decide("steps", unrolled, CORE.steps_unrolled if CORE.steps_unrolled in unrolled else 1)
        blocks = schedule.decide("blocks", part_sizes(math.ceil(rows / tile.rows), self.blocks), self.blocks)
        short = tile.rows * terms * left.dtype.storage_bytes <= MOST_FETCHED
        ahead = schedule.decide("ahead", [0] if left.op.inputs else [0, 1, 2], int(short and not left.op.inputs))
        stage = schedule[main]
        *outer, row, column = stage.loops[: main.ndim]
        block, row = stage.split(row, factor=blocks * tile.rows)
        _, lane = stage.split(column, factor=tile.lanes)
        stage.vectorize(lane)
        task = stage.fuse(*outer, block)
        stage.parallel(task)
        schedule[core].compute_at(stage, task)
        next_rows = sum_by_blocks(schedule[core], tile, terms, steps)
        if ahead:
            fetch_ahead(schedule[core], left, next_rows, ahead)
        return schedule


def add_long(strategy: OpStrategy, compute: Compute, product: MatrixProduct, target: Target) -> None:
    """Offer it for a right factor that takes up some of the second cache, if low tiles cover the result as well."""
    kind, rows, lanes = product.result.dtype, const_int(product.left.shape[-2]), target.lanes(product.result.dtype)
    if product.transposed or not kind.is_float or kind.storage_bits < 32 or product.left.dtype is not kind:
        return
    vectors = product.columns // lanes
    if rows is None or product.columns % lanes or vectors > MOST_VECTORS or product.right_bytes <= target.l2_bytes // 8:
        return
    height = largest_divisor(rows, (target.vector_registers - 1) // vectors - CORE.steps_unrolled)
    terms = largest_divisor(product.reduction_extent, target.l1_bytes // 2 // (product.columns * kind.storage_bytes))
    tile = RegisterTile(height, vectors, lanes)
    usual = register_tile(rows, product.columns, target, kind, steps=CORE.steps_unrolled)
    if terms % CORE.steps_unrolled or terms < LEAST_BLOCK or product.cycles(tile) > product.cycles(usual):
        return
    cycles = product.cycles(tile, target.fma_per_cycle)
    made = Long(tile, terms, largest_divisor(rows // height, max(1, TASK_ROWS // height)))
    strategy.add_implementation(
        compute,
        made.schedule,
        "matmul.long",
        cost=cycles + product.moved() + SUMS * product.batch * rows * vectors * (product.reduction_extent // terms),
    )
