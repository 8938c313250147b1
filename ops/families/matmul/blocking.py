"""How a product whose right factor stands in panels is cut: for registers, for caches and for threads.

    rows of the left factor, each copied to another place of a page than its neighbours, where they would evict each
    other from the first cache: an extent of 1024 is bad for that, one of 1000 is not
    for task in parallel(chunks of panels × blocks of rows):
        for panel in chunk:                                    a chunk stays in the second cache, for all blocks of rows
            sums of a register tile, over all terms
            what follows them, on the tile

Its sizes follow from those of the product and of the target. ``panels.py`` has the computes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ....base.target import Target
from ....ir.constants import const_int
from ....ir.expr import Expr
from ....lowering.schedule import LoopView, Schedule, StageView
from ....schedules.around import schedule_around
from ....schedules.blocks import MANY_TASKS, bytes_of, evict_each_other, near_divisor
from ....schedules.fetch_ahead import fetch_ahead
from ....schedules.register_tile import RegisterTile, register_tile
from ....te.tensor import Tensor
from ...definition.cost import moved
from .panels import ROWS, MatrixProduct

STREAMING = 0.25
"""Cycles that a vector of a panel costs beside the step it is for, as it comes from the second cache."""
STEPS_AHEAD = 8
"""Steps of the sum that a line takes from the second cache, and some more."""
FEW_BLOCKS = 16
"""For so many blocks of rows, panels that go to memory and come back cost more than columns that are read in parts."""
STEPS_UNROLLED = 2
"""Steps of the sum between two tests whether it ends."""


@dataclass(frozen=True, slots=True)
class Blocking:
    """A register tile; how many panels make a chunk; whether the left factor's rows are copied; whether a task has a
    chunk for all rows, and makes its panels, if they are made at run time."""

    tile: RegisterTile
    chunk: int
    copies_rows: bool
    packs_chunks: bool = False
    steps: int = STEPS_UNROLLED


def choose_blocking(product: MatrixProduct, target: Target, vectors: int | None = None) -> Blocking:
    """The cuts for a product; ``vectors`` is how wide the panels are, if that is given."""
    kind = product.result.dtype
    tile = register_tile(
        product.rows, product.columns, target, kind, vectors=vectors, streaming=STREAMING, steps=STEPS_UNROLLED
    )
    return with_tile(product, tile, target)


def with_tile(product: MatrixProduct, tile: RegisterTile, target: Target) -> Blocking:
    """The cuts for a product whose register tile is given."""
    kind = product.result.dtype
    panels = math.ceil(product.columns / tile.columns)
    tasks = product.batch * math.ceil(product.rows / tile.rows) * panels
    chunk = _chunk(product, tile, target, tasks // MANY_TASKS)
    return Blocking(tile, chunk, evict_each_other(tile.rows, product.terms, kind))


def copying(product: MatrixProduct, blocking: Blocking) -> float:
    """Cycles to copy the left factor's rows, if they are copied."""
    return moved([product.left, product.left]) if blocking.copies_rows else 0.0


def packed_by_chunks(product: MatrixProduct, blocking: Blocking, target: Target) -> Blocking:
    """The cuts for panels that are made at run time: for few blocks of rows, by the task that has a chunk, which finds
    them in the second cache then. More blocks of rows are tasks of their own, and all panels are made before."""
    tile = blocking.tile
    panels, blocks = math.ceil(product.columns / tile.columns), math.ceil(product.rows / tile.rows)
    known = const_int(product.left.shape[-2]) is not None
    if product.batch > 1 or product.transposed or not known or blocks > FEW_BLOCKS or panels < MANY_TASKS:
        return blocking
    return replace(blocking, chunk=_chunk(product, tile, target, panels // MANY_TASKS), packs_chunks=True)


def _chunk(product: MatrixProduct, tile: RegisterTile, target: Target, most: int) -> int:
    """How many panels are a chunk, at most so many, that stays in half of the second cache."""
    panels = math.ceil(product.columns / tile.columns)
    panel_bytes = product.terms * tile.columns * product.result.dtype.storage_bytes
    return near_divisor(panels, min(target.l2_bytes // 2 // panel_bytes, most))


def schedule_blocked(
    anchor: Tensor,
    panels: Tensor,
    outputs: Sequence[Tensor],
    blocking: Blocking,
    target: Target,
    keep: Sequence[Tensor] = (),
) -> Schedule:
    """Schedule a tensor that reads the sums of ``sum_panels``, and what follows it. ``keep`` are stages, such as the
    panels if they are made here, that the caller schedules."""
    core = anchor.op.inputs[0]
    rows = next(t for t in core.op.inputs if t.op.name == ROWS)
    schedule, main = schedule_around(anchor, outputs, [core, rows, *keep], target)
    stage, tile = schedule[main], blocking.tile
    *outer, row, column = stage.loops[: main.ndim]
    panel, column = stage.split(column, factor=tile.columns)
    chunk, panel = stage.split(panel, factor=blocking.chunk)
    vector, lane = stage.split(column, factor=tile.lanes)
    block, row = stage.split(row, factor=tile.rows)
    stage.reorder(*outer, chunk, block, panel, row, vector, lane)
    stage.vectorize(lane)
    if main is anchor:  # stored from where they are summed
        stage.unroll(vector)
        stage.unroll(row)
    packs_chunks = blocking.packs_chunks and panels in keep
    task = stage.fuse(*outer, chunk) if packs_chunks else stage.fuse(*outer, chunk, block)
    stage.parallel(task)
    schedule[core].compute_at(stage, panel)
    if packs_chunks:
        schedule[panels].compute_at(stage, task)
    if blocking.copies_rows and not rows.op.inputs[0].op.inputs:
        _copy_rows(schedule[rows], tile, target)
    elif rows not in keep:
        schedule[rows].compute_inline()
    term = _sum_terms(schedule[core], tile, panels.shape[-2], blocking.steps)
    if (panels in keep or not panels.op.inputs) and bytes_of(panels.shape[-2:], panels.dtype) > target.l1_bytes // 2:
        fetch_ahead(schedule[core], panels, term, max(1, STEPS_AHEAD // blocking.steps))
    if bytes_of(main.shape, main.dtype) > target.l2_bytes // 2 and blocking.chunk > 1:
        fetch_ahead(stage, main, panel, 1)
    return schedule


def _sum_terms(stage: StageView, tile: RegisterTile, terms: Expr, steps: int) -> LoopView:
    """Keep a tile of sums in registers while the terms go by; gives the loop over these."""
    *outer, row, panel, column, term = stage.loops
    vector, lane = stage.split(column, factor=tile.lanes)
    inner: list[LoopView] = []
    if steps > 1 and (const_int(terms) or 1) % steps == 0:
        term, step = stage.split(term, factor=steps)
        inner = [step]
    stage.reorder(*outer, panel, term, *inner, row, vector, lane)
    stage.vectorize(lane)
    for loop in (*inner, row, vector):
        stage.unroll(loop)
    return term


def _copy_rows(stage: StageView, tile: RegisterTile, target: Target) -> None:
    """By blocks of rows, whose stride is an odd number of vectors."""
    (copy,) = stage.op.outputs
    line = target.lanes(copy.dtype)
    stage.storage_align(copy.ndim - 2, 2 * line, line)
    *outer, row, term = stage.loops
    block, row = stage.split(row, factor=tile.rows)
    _, lane = stage.split(term, factor=tile.lanes)
    stage.vectorize(lane)
    stage.parallel(stage.fuse(*outer, block))


def pack_panels(stage: StageView, blocking: Blocking) -> None:
    """Copy to panels row by row, which reads the source in order."""
    *outer, panel, term, column = stage.loops
    vector, lane = stage.split(column, factor=blocking.tile.lanes)
    stage.reorder(*outer, term, panel, vector, lane)
    stage.vectorize(lane)
    stage.unroll(vector)
    if not blocking.packs_chunks:
        stage.parallel(stage.fuse(*outer, term))
