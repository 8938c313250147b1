"""Long reductions folded apart: in lanes, whose terms are neighbours in memory, or in tasks of their own."""

from __future__ import annotations

import math

from ....ir.constants import const_int
from ....ir.expr import Axis
from ....ir.open_extents import LONG
from ....lowering.access_strides import strides_along
from ....te.reducer_laws import factoring_counterexample
from ...axis_choice import best_lanes
from ...default_schedule import CHAINS, TASKS
from ..sketch import ScheduleRule, StageSketch

CHAIN_COUNTS = (1, 2, 4, 8)
TASK_COUNTS = (4, 8, 16, 32, 64)
FEW_RESULTS = TASKS // 4
"""A reduction that has so many results, or fewer, leaves threads without work."""
TERMS_A_TASK = 1 << 12
"""Fewer are not worth a task of their own."""


def _folds_apart(at: StageSketch) -> bool:
    reduction = at.op.reduction
    return at.reassociate and reduction is not None and factoring_counterexample(reduction.combiner) is None


def _row(at: StageSketch) -> Axis | None:
    """The innermost reduction axis that is long, and along which all that is read stays or moves to its neighbour."""
    for axis in reversed(at.op.reduce_axis):
        long = (const_int(axis.extent) or LONG) >= 2 * at.lanes
        strides = strides_along(at.bodies, axis.var)
        if long and all(stride in (0, 1) for stride in strides) and 1 in strides:
            return axis
    return None


def _has_spatial_lanes(at: StageSketch) -> bool:
    op = at.op
    if all(const_int(axis.extent) == 1 for axis in op.axis):
        return False
    return all(stride in (0, 1) for stride in strides_along(at.bodies, best_lanes(op, at.bodies).var))


def _needs_lanes(at: StageSketch) -> bool:
    return _folds_apart(at) and not _has_spatial_lanes(at) and _row(at) is not None


def _could_be_dots(at: StageSketch) -> bool:
    return _folds_apart(at) and _has_spatial_lanes(at) and _row(at) is not None


def _fold_in_lanes(at: StageSketch) -> None:
    axis = _row(at)
    assert axis is not None
    several = any(const_int(a.extent) != 1 for a in at.op.axis)
    longest = (const_int(axis.extent) or LONG) // at.lanes
    counts = [count for count in CHAIN_COUNTS if count <= longest]
    chains = at.decide("chains", counts, 1 if several else min(CHAINS, counts[-1]), reorders_sum=True)
    _, lane = at.stage.split(axis, factor=chains * at.lanes)
    at.schedule.rfactor(at.name, lane, factor_axis=-1)


def _has_few_results(at: StageSketch) -> bool:
    if not _folds_apart(at) or not at.op.reduce_axis or at.name.endswith(".rf"):
        return False
    results = math.prod(const_int(axis.extent) or LONG for axis in at.op.axis)
    terms = math.prod(const_int(axis.extent) or LONG for axis in at.op.reduce_axis)
    return results <= FEW_RESULTS and results * terms >= 2 * TERMS_A_TASK


def _fold_in_tasks(at: StageSketch) -> None:
    axis = max(at.op.reduce_axis, key=lambda a: const_int(a.extent) or LONG)
    extent = const_int(axis.extent) or LONG
    counts = [count for count in TASK_COUNTS if count <= extent // 2] or [1]
    tasks = at.decide("tasks", counts, counts[min(1, len(counts) - 1)], reorders_sum=True)
    task, _ = at.stage.split(axis, nparts=tasks)
    at.schedule.rfactor(at.name, task, factor_axis=0)


FOLD_IN_LANES = ScheduleRule("fold in lanes", "form", _needs_lanes, _fold_in_lanes)
DOTS = ScheduleRule("dots", "form", _could_be_dots, _fold_in_lanes)
FOLD_IN_TASKS = ScheduleRule("fold in tasks", "form", _has_few_results, _fold_in_tasks)
