"""Schedules of sums of products: register tiles, and where what is fused after an anchor is computed.

The stage that sums, the ``core``, has its columns in tiles: ``core[…, row, tile, column]``. What follows is computed
tile by tile, while the tile's sums are in cache.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base.target import Target
from ..ir.constants import const_int
from ..lowering.schedule import LoopView, Schedule, StageView
from ..te.tensor import Tensor
from .blocks import MANY_TASKS, bytes_of
from .register_tile import RegisterTile

PACKED_USES = 4
"""Columns that are used by so many blocks of rows are worth copying together."""


def schedule_core(
    schedule: Schedule, core: Tensor, tile: RegisterTile, unroll: Sequence[LoopView] = (), in_tiles: bool = True
) -> None:
    """Keep a tile of the core in registers while the reductions run: its last axes are rows, tiles and columns, or, if
    not ``in_tiles``, rows and columns, which are rounded up. ``unroll`` names reductions to unroll."""
    stage = schedule[core]
    spatial, reductions = stage.loops[: core.ndim], stage.loops[core.ndim :]
    *outer, row = spatial[:-2] if in_tiles else spatial[:-1]
    row_outer, row_inner = stage.split(row, factor=tile.rows)
    if in_tiles:
        at, column = spatial[-2:]
    else:
        at, column = stage.split(spatial[-1], factor=tile.columns, tail="round_up")
    vector, lane = stage.split(column, factor=tile.lanes)
    stage.reorder(*outer, row_outer, at, *reductions, row_inner, vector, lane)
    stage.vectorize(lane)
    stage.unroll(vector)
    stage.unroll(row_inner)
    for loop in unroll:
        stage.unroll(loop)


def schedule_product(
    schedule: Schedule, main: Tensor, core: Tensor, panels: Tensor, pack: bool, tile: RegisterTile, target: Target
) -> None:
    """Schedule ``core[n, row, tile, column] = Σ factor[row, k] · panels[n, tile, k, column]``, which ``main`` reads.

    The axes of that are n, the rows, and columns as one or several axes. With ``pack``, panels have memory of their
    own, else they are read where they come from.
    """
    stage = schedule[main]
    n, row, *columns = stage.loops[: main.ndim]
    at, column = stage.split(stage.fuse(*columns), factor=tile.columns)
    vector, lane = stage.split(column, factor=tile.lanes)
    block, row = stage.split(row, factor=tile.rows)
    stage.vectorize(lane)
    rows, tiles = (const_int(extent) or MANY_TASKS for extent in core.shape[1:3])
    if tiles >= MANY_TASKS or rows <= tile.rows:
        stage.reorder(n, at, block, row, vector, lane)
        tasks = stage.fuse(n, at)
        schedule[core].compute_at(stage, block)
        if pack and _fits(panels, target):
            schedule[panels].compute_at(stage, tasks)
            _, lane = schedule[panels].split(schedule[panels].loops[-1], factor=tile.lanes)
            schedule[panels].vectorize(lane)
        elif pack:
            _pack_at_root(schedule[panels], tile)
    else:
        stage.reorder(n, block, at, row, vector, lane)
        tasks = stage.fuse(n, block)
        schedule[core].compute_at(stage, at)
        if pack:
            _pack_at_root(schedule[panels], tile)
    if not pack:
        schedule[panels].compute_inline()
    stage.parallel(tasks)
    schedule_core(schedule, core, tile)


def _fits(panels: Tensor, target: Target) -> bool:
    """Whether what the panels are copied from is likely to be in a cache, so that it may be read in small pieces."""
    return bytes_of(panels.shape[-3:], panels.dtype) <= 4 * target.l2_bytes


def _pack_at_root(stage: StageView, tile: RegisterTile) -> None:
    """Copy to panels row by row, which reads the source in order."""
    *outer, at, term, column = stage.loops
    vector, lane = stage.split(column, factor=tile.lanes)
    stage.reorder(*outer, term, at, vector, lane)
    stage.vectorize(lane)
    stage.parallel(stage.fuse(*outer, term))
