"""Vectors along the rows of copies."""

from __future__ import annotations

import math

from ..base.target import Target
from ..ir.constants import const_int
from ..lowering.relations import Tail
from ..lowering.schedule import StageView

VECTORS_OF_ROW = 16
"""A row of at most so many vectors is written one by one."""


def vectorize_row(stage: StageView, lanes: int, tail: Tail = "guard", stride: int = 1) -> None:
    """Vectors along the rows of a padded copy: a few one by one, whose lanes that are padding are then known
    beforehand. To compare indices takes longer than to copy; where rows are rounded up (``tail``), no store has to.

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


def vectorize_padded(stage: StageView, blocked: bool, target: Target) -> None:
    """A padded copy of images [n, channels, …], images and channels in parallel: vectors of the channels of a block,
    which are its last axis if it is ``blocked``, else along the rows."""
    *outer, last = stage.loops
    lane = last
    if not blocked:
        _, lane = stage.split(last, factor=target.lanes(stage.op.outputs[0].dtype))
    stage.vectorize(lane)
    stage.parallel(stage.fuse(*outer[:2]))


def vectorize_phases(stage: StageView, stride: int, target: Target) -> None:
    """A padded copy of images [n, channels, …] whose rows are stored by positions that are ``stride`` apart, images and
    channels in parallel: vectors of such positions, those of all phases in turn."""
    outer = stage.loops[:2]
    vectorize_row(stage, target.lanes(stage.op.outputs[0].dtype), stride=stride)
    stage.parallel(stage.fuse(*outer))
