"""Running folds, as running sums are: each element waits for the one before it, so several run side by side.

Part of the library of schedules: of any stage that can accumulate, alone or with what reads it.
"""

from __future__ import annotations

import math

from ..base.dataclass import dataclass
from ..ir.constants import const_int
from ..ir.expr import Axis
from ..ir.functions import are_costly
from ..ir.open_extents import LONG
from ..lowering.primitives.accumulate import accumulation
from ..lowering.schedule import LoopView, StageView
from ..te.tensor import ComputeOp
from .axis_choice import neighbouring


@dataclass(frozen=True, slots=True)
class RunningTile:
    """What is folded side by side: ``rows`` where neighbours in memory follow each other in the fold, for an addition
    takes about as many cycles; else ``columns`` neighbours, whose folds stay in the first cache, in vectors of
    ``lanes``."""

    rows: int = 4
    columns: int = 1024
    lanes: int = 32


def running_axis(op: ComputeOp) -> int | None:
    """The position of the axis along which a stage that computes ``op`` can accumulate; None if there is none."""
    return next((k for k, axis in enumerate(op.axis) if accumulation(op, axis) is not None), None)


def schedule_running(stage: StageView, along: int, tile: RunningTile, reader: StageView | None = None) -> None:
    """Accumulate a stage, whose loops stand as they were made, along an axis, a tile in each parallel task.

    A ``reader`` of the same axes is computed after each step, or, where the tile is rows and it takes functions, after
    a task, in vectors along the rows. A tile is whole along all of its axes but one for it.

    >>> import loopwright as lw
    >>> from loopwright import te
    >>> A = te.placeholder((6, 100), name="A")
    >>> def running(i, k):
    ...     j = te.reduce_axis((0, k + 1), name="j")
    ...     return te.sum(A[i, j], axis=j)
    >>> B = te.compute((6, 100), running, name="B")
    >>> s = lw.create_schedule(B)
    >>> schedule_running(s["B"], 1, RunningTile(rows=3))
    >>> print(s)
    for i_outer in parallel(2):
        B.fold: float32[3] = allocate('local')
        for i_inner_init in unrolled(3):
            B.fold[i_inner_init] = 0.0
        for k in range(100):
            for i_inner in unrolled(3):
                B.fold[i_inner] = B.fold[i_inner] + A[i_outer * 3 + i_inner, k]
                B[i_outer * 3 + i_inner, k] = B.fold[i_inner]
    """
    axes, loops = _axes(stage), list(stage.loops[: len(_axes(stage))])
    time = loops[along]
    outer, inside = loops[:along], loops[along + 1 :]
    stage.accumulate(time)
    joined = 1
    by_rows = _is_one(axes[along + 1 :])
    if by_rows:
        tasks, tiled = _tile_rows(stage, outer, axes[:along], tile)
        tasks += inside
    else:
        tasks, tiled, joined = _tile_columns(stage, inside, axes[along + 1 :], tile, reader is not None)
        tasks = [*outer, *tasks]
    stage.reorder(*tasks, time, *tiled)
    task = stage.fuse(*tasks) if tasks else None
    if task is not None:
        stage.parallel(task)
    if reader is None:
        return
    if by_rows and are_costly(reader.bodies):
        _read_by_rows(reader, stage, task, along, tile)
    else:
        reader.reverse_compute_at(stage, tiled[0] if len(tiled) == 2 and joined == 1 else time)
        _schedule_step(reader, along, tile)


def _read_by_rows(reader: StageView, stage: StageView, task: LoopView | None, along: int, tile: RunningTile) -> None:
    """Vectors along the rows of a stage that is computed after each task, or, where there is but one, after all."""
    if task is not None:
        reader.reverse_compute_at(stage, task)
    vector, *_ = _vectorize(reader, reader.loops[along], tile)
    if task is None:
        reader.parallel(vector)


def _schedule_step(stage: StageView, along: int, tile: RunningTile) -> None:
    """Vectors, or unrolled rows, of a stage of the same axes that is computed after each step."""
    axes, loops = _axes(stage), list(stage.loops)
    if not _is_one(axes[along + 1 :]):
        _vectorize(stage, stage.fuse(*loops[along + 1 :]), tile)
    elif along:
        stage.unroll(loops[_longest(axes[:along])])


def _axes(stage: StageView) -> tuple[Axis, ...]:
    return stage.computes[0].axis


def _is_one(axes: tuple[Axis, ...]) -> bool:
    return all(const_int(axis.extent) == 1 for axis in axes)


def _longest(axes: tuple[Axis, ...]) -> int:
    extents = [const_int(axis.extent) or LONG for axis in axes]
    return max(range(len(axes)), key=lambda k: (extents[k], k))


def _tile_rows(
    stage: StageView, outer: list[LoopView], axes: tuple[Axis, ...], tile: RunningTile
) -> tuple[list[LoopView], list[LoopView]]:
    """Some iterations of the longest loop side by side: the loops of tasks, and those of a tile."""
    if not outer:
        return [], []
    at = _longest(axes)
    block, row = stage.split(outer[at], factor=min(tile.rows, const_int(axes[at].extent) or LONG), tail="peel")
    stage.unroll(row)
    return [*outer[:at], block, *outer[at + 1 :]], [row]


def _tile_columns(
    stage: StageView, inside: list[LoopView], axes: tuple[Axis, ...], tile: RunningTile, is_whole: bool
) -> tuple[list[LoopView], list[LoopView], int]:
    """Neighbours in vectors, as many at a time as a tile has: of as many axes, as one, as it takes to have these, if
    what is read lies in order along them, and a tile that is to be whole has all of them. Gives the loops of tasks,
    those of a tile, and how many axes these are of."""
    extents = [const_int(axis.extent) or LONG for axis in axes]
    first, least = len(axes) - 1, len(axes) - neighbouring(stage, stage.computes[0])
    while first > max(least, 0) and math.prod(extents[first:]) < tile.columns:
        if is_whole and math.prod(extents[first - 1 :]) > tile.columns:
            break
        first -= 1
    tasks, part = inside[:first], stage.fuse(*inside[first:])
    count = math.prod(extents[first:])
    if count > tile.columns:
        is_known = all(const_int(axis.extent) is not None for axis in axes[first:])
        even = -(-count // -(-count // tile.columns))
        size = -(-even // tile.lanes) * tile.lanes if is_known else tile.columns
        block, part = stage.split(part, factor=size)
        tasks = [*tasks, block]
    return tasks, _vectorize(stage, part, tile), len(axes) - first


def _vectorize(stage: StageView, loop: LoopView, tile: RunningTile) -> list[LoopView]:
    vector, lane = stage.split(loop, factor=tile.lanes)
    stage.vectorize(lane)
    return [vector, lane]
