"""A sane schedule for tensors that nobody scheduled. Used on request only."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..ir.expr import Call, Expr, TensorRead, const_int
from ..ir.target import Target
from ..ir.visit import walk
from ..te.tensor import ComputeOp, Tensor
from .schedule import LoopView, Schedule, StageView, create_schedule
from .state import Inlined, ScheduleState, Stage

ROW_BLOCKS = (6, 4, 3, 2)
"""Rows of a register tile; the first that divides the extent is taken. Each loaded vector serves as many products."""


def default_schedule(outputs: Tensor | Sequence[Tensor], target: Target) -> Schedule:
    """A schedule for any tensors, from general rules alone.

    Cheap elementwise stages are inlined into their readers. Of each remaining stage the innermost spatial axis becomes
    a vector loop; a reduction runs around it, with a block of rows unrolled, so that sums stay in registers; what is
    left of the spatial axes is fused and runs on all threads.
    """
    schedule = create_schedule(outputs)
    inline_cheap_stages(schedule)
    for stage in schedule.state.stages:
        if not stage.is_input and not is_inlined(schedule.state, stage.name):
            schedule_stage(schedule[stage.name], target)
    return schedule


def inline_cheap_stages(schedule: Schedule, keep: Collection[str] = ()) -> None:
    """Inline the elementwise stages that cost little to compute again, or are read once, but for those in ``keep``."""
    for stage in schedule.state.stages:
        if stage.name not in keep and _worth_inlining(schedule.state, stage):
            schedule[stage.name].compute_inline()


def is_inlined(state: ScheduleState, name: str) -> bool:
    return isinstance(state.stage(name).place, Inlined)


def _worth_inlining(state: ScheduleState, stage: Stage) -> bool:
    if stage.is_input or stage.name in state.outputs or stage.compute.reduction is not None:
        return False
    costly = any(isinstance(node, Call) for body in stage.compute.body for node in walk(body))
    return not costly or _reads_of(state, stage) == 1


def _reads_of(state: ScheduleState, stage: Stage) -> int:
    """How many reads there are of a stage; a read inside a reduction that does not use all its axes counts as many."""
    own = set(stage.tensors)
    count = 0
    for consumer in state.consumers(stage):
        if consumer.compute.reduction is not None:
            return 2
        count += sum(
            isinstance(node, TensorRead) and node.tensor in own for body in consumer.compute.body for node in walk(body)
        )
    return count


def schedule_stage(stage: StageView, target: Target) -> None:
    """Vectorize, block and parallelise the loops of one stage, which stand as they were made."""
    op = stage.op
    assert isinstance(op, ComputeOp)
    spatial: list[LoopView] = [loop for loop, _ in zip(stage.loops, op.axis)]  # noqa: B905  reductions come after
    reductions = stage.loops[len(spatial) :]
    if not spatial:
        return
    if not reductions and _is_pointwise(op):
        spatial = [stage.fuse(*spatial)]
        extents: list[Expr | None] = [None]
    else:
        extents = [axis.extent for axis in op.axis]
    lanes = min(target.lanes(tensor.dtype) for tensor in op.outputs)
    last = extents[-1]
    inner_extent = const_int(last) if last is not None else None
    if inner_extent is None or inner_extent > 1:
        outer, inner = stage.split(spatial[-1], factor=lanes)
        stage.vectorize(inner)
        spatial[-1] = outer
        tail = [inner]
    else:
        tail = [spatial.pop()]
    if reductions:
        rows = _split_rows(stage, spatial, extents)
        stage.reorder(*spatial, *reductions, *rows, *tail)
    if spatial:
        stage.parallel(stage.fuse(*spatial))


def _split_rows(stage: StageView, spatial: list[LoopView], extents: list[Expr | None]) -> list[LoopView]:
    """Split a block of rows off the last spatial loop that has one; it is unrolled inside the reduction."""
    for at in range(len(spatial) - 2, -1, -1):
        axis_extent = extents[at]
        extent = const_int(axis_extent) if axis_extent is not None else None
        factor = next((f for f in ROW_BLOCKS if extent is not None and extent % f == 0 and extent > 0), None)
        if factor is not None:
            spatial[at], block = stage.split(spatial[at], factor=factor)
            stage.unroll(block)
            return [block]
    return []


def _is_pointwise(op: ComputeOp) -> bool:
    """Whether element i depends on the elements i of inputs of the same shape only: then loops may be fused."""
    axes = tuple(axis.var for axis in op.axis)
    shape = op.outputs[0].shape
    return len(axes) > 0 and all(
        not isinstance(node, TensorRead)
        or (
            len(node.indices) == len(axes)
            and all(i is v for i, v in zip(node.indices, axes, strict=True))
            and all(a is b for a, b in zip(node.tensor.shape, shape, strict=True))
        )
        for body in op.body
        for node in walk(body)
    )
