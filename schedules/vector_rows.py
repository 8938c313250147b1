"""Vectors along the rows of copies."""

from __future__ import annotations

import math

from ..base.target import Target
from ..ir.constants import const_int
from ..lowering.relations import Tail
from ..lowering.schedule import LoopView, Schedule, StageView
from ..te.tensor import Tensor
from .gaps import with_last

VECTORS_OF_ROW = 16
"""A row of at most so many vectors is written one by one."""


def vectorize_row(stage: StageView, lanes: int, tail: Tail = "guard", stride: int = 1) -> LoopView:
    """Vectors along the rows of a padded copy; gives the loop over them. A few are written one by one, whose lanes
    that are padding are then known beforehand. To compare indices takes longer than to copy; where rows are rounded up
    (``tail``), no store has to.

    Of a copy whose rows are stored by positions that are ``stride`` apart, a vector has such positions, and vectors of
    all phases follow each other.
    """
    vector, lane = stage.split(stage.loops[-1], factor=lanes * stride, tail=tail)
    if stride > 1:
        lane, phase = stage.split(lane, factor=stride)
        stage.reorder(phase, lane)
        stage.unroll(phase)
    stage.vectorize(lane)
    if (const_int(stage.op.outputs[0].shape[-1]) or math.inf) <= VECTORS_OF_ROW * lanes:
        stage.unroll(vector)
    return vector


def copied_in_phases(
    schedule: Schedule, copy: Tensor, reader: Tensor, stride: int, lanes: int, scope: str = "local"
) -> Tensor:
    """A second copy of a padded one for its reader, which stores the rows by positions that are ``stride`` apart, in
    vectors of all phases in turn. The first one is then made vector by vector, and stays in registers: where the end
    of a row is not known, neighbours are loaded under masks, not lanes that are apart."""
    phases = schedule.cache_read(copy, scope, [reader])
    schedule[phases].transform_layout(with_last(copy.ndim, copy.ndim - 1, stride))
    vector = vectorize_row(schedule[phases], lanes, "round_up", stride)
    schedule[copy].compute_at(schedule[phases], vector)
    schedule[copy].unroll(vectorize_row(schedule[copy], lanes, "round_up"))
    return phases


def vectorize_padded(stage: StageView, blocked: bool, target: Target) -> None:
    """A padded copy of images [n, channels, …], images and channels in parallel: vectors of the channels of a block,
    which are its last axis if it is ``blocked``, else along the rows."""
    *outer, last = stage.loops
    lane = last
    if not blocked:
        _, lane = stage.split(last, factor=target.lanes(stage.op.outputs[0].dtype))
    stage.vectorize(lane)
    stage.parallel(stage.fuse(*outer[:2]))
