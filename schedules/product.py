"""Schedules of sums of products: register tiles, and where what is fused after an anchor is computed.

An anchor here is a copy of a ``core``, the stage that sums, whose columns are in tiles: ``core[…, row, tile, column]``.
What follows the anchor is computed tile by tile, while the tile's sums are in cache.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base.target import Target
from ..ir.constants import const_int
from ..lowering.schedule import LoopView, Schedule, StageView
from ..te.tensor import Tensor
from .around import schedule_around
from .blocks import MANY_TASKS, bytes_of
from .register_tile import RegisterTile

PACKED_USES = 4
"""Columns that are used by so many blocks of rows are worth copying together."""


def schedule_core(schedule: Schedule, core: Tensor, tile: RegisterTile, unroll: Sequence[LoopView] = ()) -> None:
    """Keep a tile of the core in registers while the reductions run; ``unroll`` names reductions to unroll."""
    stage = schedule[core]
    *outer, row, at, column = stage.loops[: core.ndim]
    reductions = stage.loops[core.ndim :]
    vector, lane = stage.split(column, factor=tile.lanes)
    row_outer, row_inner = stage.split(row, factor=tile.rows)
    stage.reorder(*outer, row_outer, at, *reductions, row_inner, vector, lane)
    stage.vectorize(lane)
    stage.unroll(vector)
    stage.unroll(row_inner)
    for loop in unroll:
        stage.unroll(loop)


def schedule_product(
    anchor: Tensor,
    core: Tensor,
    panels: Tensor,
    batch: int,
    pack: bool,
    outputs: Sequence[Tensor],
    tile: RegisterTile,
    target: Target,
    keep: Sequence[Tensor] = (),
) -> Schedule:
    """Schedule ``core[…, row, tile, column] = Σ factor[…, row, k] · panels[batch…, tile, k, column]``.

    The anchor's axes are some outer ones, of which the first ``batch`` are those of the panels, the rows, and columns
    as one or several axes. With ``pack``, panels have memory of their own, else they are read where they come from.
    ``keep`` are stages that the caller schedules.
    """
    schedule, main = schedule_around(anchor, outputs, [core, panels, *keep], target)
    stage = schedule[main]
    axes = core.ndim - 3
    outer, row = stage.loops[:axes], stage.loops[axes]
    columns = stage.fuse(*stage.loops[axes + 1 : main.ndim])
    at, column = stage.split(columns, factor=tile.columns)
    vector, lane = stage.split(column, factor=tile.lanes)
    block, row = stage.split(row, factor=tile.rows)
    stage.vectorize(lane)
    tiles = const_int(core.shape[-2]) or MANY_TASKS
    if tiles >= MANY_TASKS or (const_int(core.shape[-3]) or MANY_TASKS) <= tile.rows:
        stage.reorder(*outer[:batch], at, *outer[batch:], block, row, vector, lane)
        tasks = stage.fuse(*outer[:batch], at)
        schedule[core].compute_at(stage, block)
        if pack and _fits(panels, target):
            schedule[panels].compute_at(stage, tasks)
            _, lane = schedule[panels].split(schedule[panels].loops[-1], factor=tile.lanes)
            schedule[panels].vectorize(lane)
        elif pack:
            _pack_at_root(schedule[panels], tile)
    else:
        stage.reorder(*outer, block, at, row, vector, lane)
        tasks = stage.fuse(*outer, block)
        schedule[core].compute_at(stage, at)
        if pack:
            _pack_at_root(schedule[panels], tile)
    if not pack:
        schedule[panels].compute_inline()
    stage.parallel(tasks)
    schedule_core(schedule, core, tile)
    return schedule


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
