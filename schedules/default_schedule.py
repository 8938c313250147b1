"""A sane schedule for tensors that nobody scheduled. Used on request only."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from ..base.target import Target
from ..ir.constants import const_int
from ..ir.expr import Axis, TensorRead
from ..ir.functions import are_costly, lanes_of_functions
from ..ir.open_extents import LONG
from ..ir.visit import tensor_reads, walk
from ..lowering.access_strides import stride_along, strides_along
from ..lowering.rules.ragged import has_ragged_loops
from ..lowering.schedule import LoopView, Schedule, StageView, create_schedule
from ..lowering.stage import Inlined, Root, Stage
from ..lowering.state import ScheduleState
from ..te.reducer_laws import factoring_counterexample
from ..te.tensor import ComputeOp, Tensor
from .axis_choice import best_lanes, best_rows, neighbouring
from .gaps import COPIED_USES, loops_along_layout, moving_index, only_read, uses_of, with_last
from .register_tile import register_tile
from .running import RunningTile, running_axis, schedule_running
from .streamed_reduction import is_streamed, schedule_streamed

TASKS = 64
"""So many tasks share out evenly among the threads of a small machine."""
CHAINS = 4
"""Vectors of sums side by side: an addition takes as many cycles, and the next one of a chain waits for it."""
OPEN_ROWS = 4
"""Rows of a tile where their number is open: enough that many share what they read, and so few that a single one, which
the tile behind the last whole one computes, does not take much longer than in a tile of its own."""
REGISTERS_A_CHAIN = 8
"""So many for each of the vectors that are computed side by side where each takes a chain of many operations, such as a
polynomial: those of its intermediate values, and its part of those that hold constants."""


def default_schedule(outputs: Tensor | Sequence[Tensor], target: Target, reassociate: bool = True) -> Schedule:
    """A schedule for any tensors, from general rules alone.

    Stages that cost little are inlined into their readers, but for stencils that are read where data say. Of each
    remaining stage a spatial axis becomes vector lanes; a reduction runs around a tile of rows and vectors, so that
    sums stay in registers; what is left of the spatial axes is fused and runs on all threads. What a reduction uses
    often, but reads with gaps, is first copied into an order without gaps. Where ``reassociate`` allows it, long
    reductions along neighbours in memory are folded in lanes of their own.
    """
    schedule = create_schedule(outputs)
    inline_cheap_stages(schedule)
    for stage in schedule.state.stages:
        may_change = isinstance(stage.place, Root) and not has_ragged_loops(stage)
        if stage.is_compute and may_change and stage.compute.reduction is not None:
            closed = _close_gaps(schedule, stage.name)
            if reassociate and not closed:
                _fold_in_lanes(schedule, stage.name, target)
    for stage in schedule.state.stages:
        if stage.is_compute and not is_inlined(schedule.state, stage.name):
            schedule_stage(schedule[stage.name], target)
    return schedule


def _close_gaps(schedule: Schedule, name: str) -> bool:
    """Copy what a reduction uses often into an order in which its lanes read neighbours; gives whether all that it
    reads is in such an order then."""
    op = schedule.state.stage(name).compute
    if not op.axis:
        return False
    lanes = best_lanes(op, schedule[name].bodies).var
    copies: list[Tensor] = []
    for tensor in op.inputs:
        read = only_read(op, tensor)
        at = None if read is None or stride_along(read, lanes) in (0, 1) else moving_index(read, lanes)
        if at is None or uses_of(op, tensor) < COPIED_USES:
            continue
        copies.append(schedule.cache_read(tensor, "global", [name]))
        schedule[copies[-1]].transform_layout(with_last(tensor.ndim, *at))
    reads = (read for body in schedule[name].bodies for read in tensor_reads(body))
    others = (read for read in reads if all(read.tensor is not copy for copy in copies))
    return all(stride_along(read, lanes) in (0, 1) for read in others)


def _fold_in_lanes(schedule: Schedule, name: str, target: Target) -> None:
    """Where no spatial axis makes good lanes, but a long reduction axis does, fold its terms in lanes of their own."""
    stage, op = schedule[name], schedule.state.stage(name).compute
    bodies = stage.bodies
    if op.axis and all(stride in (0, 1) for stride in strides_along(bodies, best_lanes(op, bodies).var)):
        return
    if op.reduction is not None and factoring_counterexample(op.reduction.combiner) is not None:
        return  # the result depends on the order of folding
    lanes = _lanes(stage, target) * (1 if any(const_int(axis.extent) != 1 for axis in op.axis) else CHAINS)
    for axis in reversed(op.reduce_axis):
        long = (const_int(axis.extent) or LONG) >= 2 * lanes
        if long and all(stride in (0, 1) for stride in strides_along(bodies, axis.var)):
            _, lane = stage.split(axis, factor=lanes)
            schedule.rfactor(name, lane, factor_axis=-1)
            return


def schedule_freely(schedule: Schedule, name: str, target: Target) -> None:
    """Schedule one stage as ``default_schedule`` would, were it alone: a reduction may fold in lanes."""
    known = {other.name for other in schedule.state.stages} - {name}
    if schedule.state.stage(name).compute.reduction is not None:
        _fold_in_lanes(schedule, name, target)
    for other in schedule.state.stages:
        if other.name not in known:
            schedule_stage(schedule[other.name], target)


def inline_cheap_stages(schedule: Schedule, keep: Collection[str] = ()) -> None:
    """Inline the elementwise stages that cost little to compute again, or are read once, but for those in ``keep``."""
    for stage in schedule.state.stages:
        if stage.name not in keep and worth_inlining(schedule.state, stage):
            schedule[stage.name].compute_inline()


def is_inlined(state: ScheduleState, name: str) -> bool:
    """Whether the stage of this name is computed where it is read, and so has no loops."""
    return isinstance(state.stage(name).place, Inlined)


def worth_inlining(state: ScheduleState, stage: Stage) -> bool:
    """Whether a stage is computed within its readers at no loss: all are computed by loops, the stage is no reduction
    and no output, and it is read once, or costs little, and is no stencil that is gathered from."""
    if not stage.is_compute or stage.name in state.outputs or stage.compute.reduction is not None:
        return False
    if not all(consumer.is_compute for consumer in state.consumers(stage)):
        return False
    if _reads_of(state, stage) == 1:
        return True
    return not are_costly(stage.compute.body) and not (_is_stencil(stage.compute) and _is_gathered(state, stage))


def _is_stencil(op: ComputeOp) -> bool:
    """Whether an element takes several elements of one tensor."""
    reads = {node for body in op.body for node in walk(body) if isinstance(node, TensorRead)}
    return len({read.tensor for read in reads}) < len(reads)


def _is_gathered(state: ScheduleState, stage: Stage) -> bool:
    """Whether a reader's data say which elements it reads: then neighbours share nothing that is computed again."""
    own = set(stage.tensors)
    return any(
        node.tensor in own and any(isinstance(inner, TensorRead) for index in node.indices for inner in walk(index))
        for consumer in state.consumers(stage)
        for body in consumer.compute.body
        for node in walk(body)
        if isinstance(node, TensorRead)
    )


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
    op, *_ = stage.computes
    if not op.axis:
        return
    if (along := running_axis(op)) is not None:
        schedule_running(stage, along, RunningTile())
    elif op.ragged_axes:
        stage.parallel(stage.fuse(*(loop for loop in stage.loops if not loop.reduce)))
    elif op.reduction is not None:
        _schedule_reduction(stage, op, target)
    else:
        _schedule_elements(stage, op, target)


def _schedule_elements(stage: StageView, op: ComputeOp, target: Target) -> None:
    """Vectors along the innermost axes, as one where their elements are neighbours; the axes around run in parallel.

    Where these are many, a row of vectors stays a loop of its own, out of which comes what all of its elements share.
    """
    extents = [const_int(axis.extent) or LONG for axis in op.axis]
    if stage.layout is not None:
        outer, inner, row = loops_along_layout(stage, stage.layout)
        many = math.prod(extents) // (row or LONG) >= TASKS
    else:
        rank = len(op.axis) - neighbouring(stage, op)
        is_known = all(const_int(axis.extent) is not None for axis in op.axis[rank:])
        row = math.prod(extents[rank:]) if is_known else None
        outer, inner = list(stage.loops[:rank]), stage.fuse(*stage.loops[rank:])
        many = math.prod(extents[:rank]) >= TASKS
    vectors = _vectorize(stage, inner, row, target)
    spread = outer if many else [*outer, *vectors]
    if spread:
        stage.parallel(stage.fuse(*spread))


def _vectorize(stage: StageView, loop: LoopView, extent: int | None, target: Target) -> list[LoopView]:
    """Make vectors of a loop's iterations; gives what is left of the loop."""
    if extent == 1:
        return []
    outer, inner = stage.split(loop, factor=pointwise_lanes(stage, extent, target))
    stage.vectorize(inner)
    return [outer]


def pointwise_lanes(stage: StageView, extent: int | None, target: Target) -> int:
    """The lanes of an elementwise stage: a vector, or several of functions, unless the loop is too short."""
    lanes = _lanes(stage, target)
    width = lanes_of_functions((body for op in stage.computes for body in op.body), target)
    if width is None:
        return lanes
    several = max(lanes, max(2, target.vector_registers // REGISTERS_A_CHAIN) * width)
    while several > lanes and extent is not None and extent < several:
        several //= 2
    return several


def _lanes(stage: StageView, target: Target) -> int:
    return min(target.lanes(tensor.dtype) for tensor in stage.op.outputs)


def _schedule_reduction(stage: StageView, op: ComputeOp, target: Target) -> None:
    """Keep a tile of sums in registers while the reduction runs: rows, which share vectors, times vectors of lanes."""
    bodies = stage.bodies
    lanes_axis, run = best_lanes(op, bodies), neighbouring(stage, op)
    if lanes_axis is op.axis[-1] and is_streamed(op, bodies, run, target):
        schedule_streamed(stage, op, run, target)
        return
    row_axis = best_rows(op, bodies, lanes_axis)
    rows, vectors = _tile(op, lanes_axis, row_axis, target)
    outer, inner, unrolled = [], [], []
    for axis, loop in zip(op.axis, stage.loops, strict=False):
        if axis is lanes_axis and const_int(axis.extent) != 1:
            columns, lane = stage.split(loop, factor=_lanes(stage, target))
            block, vector = stage.split(columns, factor=vectors)
            outer.append(block)
            inner += [vector, lane]
            unrolled.append(vector)
            stage.vectorize(lane)
        elif axis is row_axis:
            block, row = stage.split(loop, factor=rows, tail="peel")
            outer.append(block)
            inner.insert(0, row)
            unrolled.append(row)
        else:
            outer.append(loop)
    reductions = [loop for loop in stage.loops if loop.reduce]
    stage.reorder(*outer, *reductions, *inner)
    for loop in unrolled:
        stage.unroll(loop)
    if outer:
        stage.parallel(stage.fuse(*outer))


def _tile(op: ComputeOp, lanes_axis: Axis, row_axis: Axis | None, target: Target) -> tuple[int, int]:
    """How many rows and vectors of sums to keep in registers."""
    columns = const_int(lanes_axis.extent)
    if columns == 1:
        return 1, 1
    if row_axis is None:
        # As much as possible of each row of what is read: far rows are on other pages.
        return 1, min(target.vector_registers // 4, -(-(columns or LONG) // target.lanes(op.outputs[0].dtype)))
    height = const_int(row_axis.extent)
    if height is None:
        widest = min(CHAINS, (target.vector_registers - 1) // (OPEN_ROWS + 1))
        return OPEN_ROWS, min(widest, -(-(columns or LONG) // target.lanes(op.outputs[0].dtype)))
    element = min((tensor.dtype for tensor in op.outputs), key=target.lanes)
    tile = register_tile(height, columns or LONG, target, element, outputs=len(op.outputs))
    return tile.rows, tile.vectors
