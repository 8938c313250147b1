"""Reductions along rows too short to be folded like long ones: several rows side by side.

Each row has a few lanes, one vector or less. Then neighbours are folded, in all rows at once, until each row has one
result: those of some rows are a vector again, which is stored as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from .. import te
from ..base.target import Target
from ..ir.constants import const_int
from ..lowering.schedule import Schedule, StageView
from ..te.tensor import Tensors
from .around import schedule_around
from .rows import extent_of

MOST_TOGETHER = 16
"""How many rows are folded at once, at most; each is a copy of the code that reads one."""


def schedule_short_rows(result: te.Tensor, totals: Sequence[te.Tensor], outputs: Tensors, target: Target) -> Schedule:
    """Keep all lanes of some rows in registers, until these rows' results are stored as one vector.

    ``totals`` are reductions in lanes, folded by neighbours, over the last axis of a matrix: a vector each. ``result``
    is made of them, an element a row."""
    stages = [stage for total in reversed(totals) for stage in (total, *reversed(te.lane_parts(total)))]
    schedule, main = schedule_around(result, outputs, (*stages, result), target)
    if main is not result and result not in totals:  # also if it costs much: its parts are in main's loop only
        schedule[result].compute_inline()
    stage = schedule[main]
    together = min(MOST_TOGETHER, *(target.lanes(total.dtype) for total in totals))
    count = const_int(extent_of(main.shape))
    whole = count is not None and count % together == 0
    rows = stage.fuse(*stage.loops)
    block, row = stage.split(rows, factor=min(together, count or together), tail="guard" if whole else "peel")
    stage.vectorize(row)
    stage.parallel(block)
    for tensor in stages:
        if tensor is main:
            continue
        part = schedule[tensor]
        part.compute_at(stage, block)
        if part.computes[0].reduction is None:
            _fold_neighbours(part, tensor, target)
        else:
            _fold_in_lanes(part, tensor, target)
    return schedule


def _fold_in_lanes(part: StageView, lanes: te.Tensor, target: Target) -> None:
    """Read a row after the other, a vector of lanes at a time."""
    row, lane, block = part.loops
    vector, element = part.split(lane, factor=min(target.lanes(lanes.dtype), const_int(lanes.shape[-1]) or 1))
    part.reorder(row, vector, block, element)
    part.vectorize(element)
    known = const_int(part.computes[0].reduce_axis[0].extent) is not None
    for loop in (row, vector, *([block] if known else [])):
        part.unroll(loop)


def _fold_neighbours(part: StageView, halves: te.Tensor, target: Target) -> None:
    """Fold the lanes of all rows as if they were of one."""
    vector, element = part.split(part.fuse(*part.loops), factor=target.lanes(halves.dtype))
    part.vectorize(element)
    part.unroll(vector)
