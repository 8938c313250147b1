"""The schedule of reductions that use each element once: memory is read in long runs, and sums wait in the first cache.

A tile of sums in registers would read a few vectors of each row, and rows far apart: other pages, the same sets of
the cache, and nothing that the processor could fetch ahead. ``default_schedule.py`` asks here.
"""

from __future__ import annotations

import math

from ..base.aligned import PAGE_BYTES
from ..base.target import Target
from ..ir.constants import const_int
from ..ir.expr import Expr, TensorRead
from ..ir.visit import tensor_reads
from ..lowering.access_strides import stride_along
from ..lowering.schedule import StageView
from ..te.tensor import ComputeOp

TERMS = 4
"""Terms that are added to a sum at a time, each from a row of its own: so often less it is loaded and stored. Of rows
shorter than a page, which follow one another, it is one: memory is read fastest in order."""
TASKS = 4
"""Runs are cut into so many tasks, if they stay long. An open extent counts as so many."""
SHORTEST_RUN = 1024
"""Bytes of a row that are read at a time, at least: a quarter of a page."""


def is_streamed(op: ComputeOp, bodies: tuple[Expr, ...], run: int, target: Target) -> bool:
    """Whether the last ``run`` axes are more than registers hold sums of, and what runs along them is read once."""
    columns = _extent(op, run)
    if columns is not None and columns <= target.vector_registers // 4 * _lanes(op, target):
        return False
    reads = [read for body in bodies for read in tensor_reads(body)]
    moving = [(read, stride_along(read, op.axis[-1].var)) for read in reads]
    return all(stride in (0, 1) for _, stride in moving) and any(s == 1 and _reads_once(op, read) for read, s in moving)


def _reads_once(op: ComputeOp, read: TensorRead) -> bool:
    """Whether each axis moves a read along an axis of its tensor."""
    axes = [axis.var for axis in (*op.axis, *op.reduce_axis) if const_int(axis.extent) != 1]
    return all(any(index is var for index in read.indices) for var in axes)


def schedule_streamed(stage: StageView, op: ComputeOp, run: int, target: Target) -> None:
    """Sum runs of the last ``run`` axes, as long as the first cache holds their sums, some terms at a time."""
    lanes = _lanes(op, target)
    spatial, reductions = stage.loops[: len(op.axis)], stage.loops[len(op.axis) :]
    columns = stage.fuse(*spatial[-run:])
    block, vectors = stage.split(columns, factor=_run_length(op, run, target))
    vector, lane = stage.split(vectors, factor=lanes)
    *others, last = reductions
    rows, row = stage.split(last, factor=_terms(stage, op, target))
    stage.reorder(*spatial[:-run], block, *others, rows, vector, row, lane)
    stage.unroll(row)
    stage.vectorize(lane)
    stage.parallel(stage.fuse(*spatial[:-run], block))


def _terms(stage: StageView, op: ComputeOp, target: Target) -> int:
    """How many terms are added to a sum at a time."""
    last = op.reduce_axis[-1]
    for read in (read for body in stage.bodies for read in tensor_reads(body)):
        size = math.prod(const_int(extent) or TASKS for extent in read.tensor.shape) * read.dtype.storage_bytes
        step = stride_along(read, last.var)
        if size > target.l2_bytes and step and step * read.dtype.storage_bytes < PAGE_BYTES:
            return 1
    return min(TERMS, const_int(last.extent) or TERMS)


def _run_length(op: ComputeOp, run: int, target: Target) -> int:
    """Elements of a run, in whole vectors: their sums take half of the first cache."""
    lanes, element = _lanes(op, target), sum(tensor.dtype.storage_bytes for tensor in op.outputs)
    most, least = target.l1_bytes // 2 // element, SHORTEST_RUN // element
    columns = _extent(op, run) or most
    outer = math.prod(const_int(axis.extent) or TASKS for axis in op.axis[:-run])
    shared = columns if outer >= TASKS else math.ceil(columns / TASKS)
    return math.ceil(min(most, max(least, shared)) / lanes) * lanes


def _extent(op: ComputeOp, run: int) -> int | None:
    extents = [const_int(axis.extent) for axis in op.axis[-run:]]
    return None if None in extents else math.prod(extent for extent in extents if extent is not None)


def _lanes(op: ComputeOp, target: Target) -> int:
    return min(target.lanes(tensor.dtype) for tensor in op.outputs)
