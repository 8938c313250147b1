"""The implementation of nn.matmul and nn.dense for few rows of floats: the right factor goes by once, as it lies.

Few rows do not use panels often enough to pay for the copy; what takes the time is to fetch the right factor. Tiles
over the whole reduction would jump from row to row of it, to another page each. So the reduction is blocked, around the
columns:

    for task in parallel(columns that are neighbours in memory):
        for block of the reduction:
            for each register tile of rows × columns: its sums, in memory between two blocks, go on
        what follows the sums
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from ....base.aligned import PAGE_BYTES
from ....base.dataclass import dataclass
from ....base.target import Target
from ....ir.constants import const_int
from ....ir.open_extents import LONG, MANY_ROWS
from ....lowering.schedule import LoopView, Schedule, StageView
from ....schedules.around import schedule_around_sums
from ....schedules.blocks import part_sizes
from ....schedules.decide_tile import decide_tile
from ....schedules.machine import CORE
from ....schedules.register_tile import RegisterTile, register_tile
from ....te.tensor import Tensors
from ...definition.cost import elements_of, moved
from ...definition.strategy import Compute, OpStrategy
from .blocking import UNROLLED
from .panels import MatrixProduct, ProductStages

MOST_ROWS = 48
"""With more rows, a copy in panels is used often enough to pay."""
WAITING_ROWS = 4
"""So few rows wait for memory, which gives most where few rows of the right factor are read at once, and these long:
what the processor fetches ahead ends with each page, and goes on in the others meanwhile."""
STREAMS = 8
"""Rows of the right factor that are read at once for rows that wait: a vector of each, by an instruction of its own, as
the processor tells by the instruction how a row goes on."""
LONGEST_RUN = 4 * PAGE_BYTES
"""Bytes of a row that a task reads for rows that wait, at most: the sums stay in the first cache."""
MANY_STREAMS = 16
"""Rows of the right factor that are read at once for more rows: fewer than prefetchers follow, enough to pay for the
sums' way to memory and back."""
SUM_CYCLES = 1.5
"""Cycles to store a vector of sums and to load it, between two blocks of the reduction; few rows wait for memory in
that time anyway."""
REDUCTION_BLOCKS = (2, 4, 8, 16, 32, 64, 128, 256)
PAGES_APART = 0.1
"""What reading rows that lie in other pages costs more than panels one after the other, as a share of one reading."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """[…, M, K] · [batch…, K, N] by register tiles; ``panels`` of these are neighbours in memory, and a task that
    reads ``streams`` rows of the right factor at once, ``steps`` of these by instructions of their own: all of them
    decisions of the schedule, and what they are by default."""

    tile: RegisterTile
    panels: int
    streams: int
    steps: int

    def schedule(self, attrs: Any, anchor: ProductStages, outputs: Tensors, target: Target) -> Schedule:
        """The schedule of the definition: neighbouring panels of columns are a task, which goes through the reduction
        block by block, so that the right factor is read once in long runs."""
        schedule, core, main = schedule_around_sums(anchor.result, anchor.sums, outputs, (), target)
        rows, columns = (const_int(extent) or MANY_ROWS for extent in core.shape[-2:])
        extent = const_int(core.op.reduce_axis[0].extent) or LONG
        tile = decide_tile(schedule, self.tile, rows, columns, target)
        panels = schedule.decide("panels", part_sizes(math.ceil(columns / tile.columns), self.panels), self.panels)
        streams = schedule.decide(
            "streams",
            sorted({*(size for size in REDUCTION_BLOCKS if size <= extent), self.streams, extent}),
            self.streams,
        )
        unrolled = [count for count in UNROLLED if streams % count == 0]
        steps = schedule.decide("steps", unrolled, self.steps if self.steps in unrolled else 1)
        stage = schedule[main]
        *outer, row, column = stage.loops[: main.ndim]
        panel, column = stage.split(column, factor=tile.columns)
        part, panel = stage.split(panel, factor=panels)
        stage.reorder(*outer, part, row, panel, column)
        _, lane = stage.split(column, factor=tile.lanes)
        stage.vectorize(lane)
        task = stage.fuse(*outer, part)
        stage.parallel(task)
        schedule[core].compute_at(stage, task)
        sum_by_blocks(schedule[core], tile, streams, steps)
        return schedule


def sum_by_blocks(stage: StageView, tile: RegisterTile, size: int, steps: int) -> LoopView:
    """Schedule sums in register tiles, the reduction in blocks of ``size``, ``steps`` of them unrolled; a tile's sums
    are in registers while a block goes by. Gives the loop over tiles."""
    *outer, row, column, term = stage.loops
    panel, column = stage.split(column, factor=tile.columns)
    vector, lane = stage.split(column, factor=tile.lanes)
    tiles, row = stage.split(row, factor=tile.rows)
    block, term = stage.split(term, factor=size)
    term, step = stage.split(term, factor=steps)
    stage.reorder(*outer, block, tiles, panel, term, step, row, vector, lane)
    stage.vectorize(lane)
    for loop in (step, row, vector):
        stage.unroll(loop)
    return tiles


def add_streamed(strategy: OpStrategy, compute: Compute, product: MatrixProduct, target: Target) -> None:
    """Offer it for a large right factor whose rows are pages apart, if a copy of it would not be used enough."""
    kind = product.result.dtype
    if product.transposed or not kind.is_float or kind.storage_bits < 32 or product.left.dtype is not kind:
        return
    row_bytes = product.columns * kind.storage_bytes
    rows = product.left.shape[-2:-1] if product.right.ndim > 2 else product.left.shape[:-1]  # that read a right factor
    few = const_int(product.left.shape[-2]) is not None and elements_of(rows) <= MOST_ROWS
    if not few or row_bytes < PAGE_BYTES or product.right_bytes <= target.l2_bytes:
        return
    tile = register_tile(product.rows, product.columns, target, kind, steps=CORE.steps_unrolled)
    cost = product.cycles(tile, target.fma_per_cycle) + product.moved() + PAGES_APART * moved([product.right])
    if product.rows <= WAITING_ROWS:  # runs as long as leave two tasks
        tile = replace(tile, vectors=1)
        part, streams, steps = min(max(row_bytes // 2, PAGE_BYTES), LONGEST_RUN), STREAMS, STREAMS
    else:
        part, streams, steps = PAGE_BYTES // 2, MANY_STREAMS, CORE.steps_unrolled
        more_blocks = max(0.0, product.reduction_extent / streams - 1)
        cost += SUM_CYCLES * more_blocks * elements_of(product.result.shape) / tile.lanes
    streamed = Streamed(tile, max(1, part // (tile.columns * kind.storage_bytes)), streams, steps)
    strategy.add_implementation(
        compute,
        streamed.schedule,
        "matmul.streamed",
        cost=cost,
    )
