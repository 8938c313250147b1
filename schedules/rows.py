"""Reductions along the innermost axes, row by row: what an operator computes of a row, while the row is in cache.

Shared by the operators that reduce rows in lanes (``te.sum(…, lanes=64)``), which are neighbours in memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import reduce
from operator import mul

from .. import te
from ..base.dataclass import dataclass
from ..base.target import Target
from ..ir.constants import ONE, const_int
from ..ir.expr import Axis, Expr
from ..ir.simplify import simplify
from ..lowering.schedule import LoopView, Schedule, StageView, create_schedule
from ..lowering.stage import Stage
from ..te.tensor import ComputeOp, PlaceholderOp, Tensors
from .default_schedule import inline_cheap_stages, is_inlined, pointwise_lanes, schedule_stage
from .fetch_ahead import fetch_ahead


def innermost(shape: Sequence[Expr]) -> int:
    """The last axis whose extent is not 1: its elements are neighbours in memory. The last of all if there is none."""
    return next((d for d in reversed(range(len(shape))) if const_int(shape[d]) != 1), len(shape) - 1)


def row_span(axes: Sequence[int], shape: Sequence[Expr]) -> tuple[int, ...]:
    """The innermost axes that are reduced as one, since their elements are neighbours."""
    last = innermost(shape)
    if last not in axes:
        return ()
    first = last
    while first - 1 in axes:
        first -= 1
    return tuple(range(first, last + 1))


def extent_of(shape: Sequence[Expr]) -> Expr:
    """How many elements a box has."""
    return simplify(reduce(mul, shape, ONE))


@dataclass(frozen=True, slots=True)
class _Parts:
    """The names of the stages of an operator, but of the output, and of those among them that fold lanes, and how many
    lanes these are, if there are such."""

    own: frozenset[str]
    lanes: frozenset[str]
    halves: frozenset[str]
    read_lanes: frozenset[str]
    count: int | None


def _parts(schedule: Schedule, totals: Sequence[te.Tensor], others: Sequence[te.Tensor], output: str) -> _Parts:
    def named(tensors: Iterable[te.Tensor]) -> frozenset[str]:
        return frozenset(schedule[tensor].name for tensor in tensors)

    parts = {total: te.lane_parts(total) for total in totals}
    own = named((*others, *totals, *(part for stages in parts.values() for part in stages)))
    lanes = named(stages[0] for stages in parts.values() if stages)
    halves = named(half for stages in parts.values() for half in stages[1:])
    counts = [const_int(stages[0].shape[-1]) or 1 for stages in parts.values() if stages]
    read_lanes = halves | named(total for total, stages in parts.items() if stages)
    return _Parts(own - {output}, lanes, halves, read_lanes, max(counts, default=None))


def schedule_rows(
    totals: Sequence[te.Tensor],
    others: Sequence[te.Tensor],
    outputs: Tensors,
    row_axes: Sequence[int],
    target: Target,
    across: int | None = None,
) -> Schedule:
    """Compute one output row by row, in parallel; a row is what the output's other axes span, but one vector of an axis
    ``across``, which is not reduced and whose elements are neighbours.

    The stages of an operator, the ``totals`` of its reductions with their lanes, and ``others``, are computed inside a
    row, and so are producers that have all axes of the output. Other stages, of smaller inputs, are computed before.
    """
    schedule = create_schedule(outputs)
    output = schedule[outputs[-1]]
    op = schedule.state.stage(output.name).compute
    parts = _parts(schedule, totals, others, output.name)
    one_a_row = {name for name in parts.own if schedule.state.stage(name).tensors[0].ndim < len(op.axis)}
    inline_cheap_stages(schedule, keep=(parts.own & parts.read_lanes) | one_a_row)
    row = _schedule_output(output, op, row_axes, target, across)
    inside = {output.name}
    fetched: set[te.Tensor] = set()
    for stage in reversed(schedule.state.stages):
        if stage.is_input or stage.name == output.name or is_inlined(schedule.state, stage.name):
            continue
        belongs = stage.name in parts.own or _has_axes_of(stage, op)
        if belongs and _read_inside(schedule, stage, inside):
            axis = _spanned(stage, op, row_axes, parts)
            if axis is not None:
                length = None if across is None else _lanes(op, target)
                loop, trips = _schedule_inside(schedule[stage.name], stage.compute, axis, parts, target, length)
                if row is not None and across is None:
                    again = _read_by_others(schedule, stage, parts.own)
                    fetched |= _fetch_next_row(schedule[stage.name], op, loop, trips, target, fetched, again)
            if row is not None:
                schedule[stage.name].compute_at(output, row)
            inside.add(stage.name)
        else:
            schedule_stage(schedule[stage.name], target)
    return schedule


def _schedule_output(
    output: StageView, op: ComputeOp, row_axes: Sequence[int], target: Target, across: int | None
) -> LoopView | None:
    """The loop over the rows of the output, if it has several; inside a row, neighbours are one vector."""
    rows = [op.axis[d] for d in row_axes]
    others = [axis for d, axis in enumerate(op.axis) if d not in row_axes]
    if across is not None:
        vector, lane = _vectorize(output, op.axis[across], target)
        output.reorder(*rows, vector, *(axis for axis in others if axis is not op.axis[across]), lane)
        row = output.fuse(*rows, vector)
        output.parallel(row)
        return row
    if rows:
        output.reorder(*rows, *others)
    if others:
        _vectorize(output, others[innermost([axis.extent for axis in others])], target)
    if not rows:
        return None
    row = output.fuse(*rows)
    output.parallel(row)
    return row


def _has_axes_of(stage: Stage, output: ComputeOp) -> bool:
    """Whether each element belongs to one row; an axis of extent 1 of the output may be one that was reduced."""
    shape = stage.tensors[0].shape
    return len(shape) >= len(output.axis) and all(
        extent is axis.extent or axis.extent is ONE for extent, axis in zip(shape, output.axis, strict=False)
    )


def _spanned(stage: Stage, output: ComputeOp, row_axes: Sequence[int], parts: _Parts) -> Axis | None:
    """The axis of a stage whose elements, in one row, are neighbours; None where a row has one element of it."""
    axes = stage.compute.axis
    if stage.name in parts.lanes | parts.halves:
        return axes[-1]
    d = innermost(stage.tensors[0].shape)
    if stage.name in parts.own:
        return axes[d] if len(axes) > len(row_axes) else None
    one_a_row = d in row_axes and output.axis[d].extent is not ONE
    return axes[d] if axes and not one_a_row else None


def _read_inside(schedule: Schedule, stage: Stage, inside: set[str]) -> bool:
    """Whether all that reads a stage, through inlined stages too, is computed inside a row."""
    return all(
        reader.name in inside or (is_inlined(schedule.state, reader.name) and _read_inside(schedule, reader, inside))
        for reader in schedule.state.consumers(stage)
    )


def _read_by_others(schedule: Schedule, stage: Stage, own: Collection[str]) -> set[te.Tensor]:
    """What a stage and others of its operator read, along rows."""
    others = [s for s in schedule.state.stages if s.name in own and s.name != stage.name]
    return {tensor for other in others for tensor in other.op.inputs} & set(stage.op.inputs)


def _schedule_inside(
    stage: StageView, op: ComputeOp, axis: Axis, parts: _Parts, target: Target, length: int | None
) -> tuple[LoopView, Expr]:
    """Vectorize the part of a stage that belongs to one row, which has so many neighbours if that is no whole axis. A
    reduction keeps its sums in registers.

    Gives the loop that goes through the row, and how often it does.
    """
    outer, lanes = _vectorize(stage, axis, target, length, parts.count)
    if stage.name in parts.lanes:
        block, vector = stage.split(outer, factor=_sums_at_once(op, target))
        *_, row = stage.loops
        stage.reorder(block, *op.reduce_axis, vector, lanes)
        stage.unroll(vector)
        return row, op.reduce_axis[-1].extent
    if stage.name in parts.halves:
        stage.unroll(outer)
    elif op.reduction is not None:
        stage.reorder(outer, *op.reduce_axis, lanes)
    return outer, simplify(axis.extent // pointwise_lanes(stage, const_int(axis.extent), target))


def _fetch_next_row(
    stage: StageView,
    output: ComputeOp,
    loop: LoopView,
    trips: Expr,
    target: Target,
    fetched: Collection[te.Tensor],
    again: Collection[te.Tensor],
) -> set[te.Tensor]:
    """While a stage computes a row, the next row of its inputs comes from memory, if they do not stay in cache.

    Gives what is fetched; ``fetched`` is what later stages fetch, ``again`` what an earlier one goes through as well:
    then memory would rest while this one does.
    """
    distance = const_int(trips)
    own = [t for t in stage.op.inputs if isinstance(t.op, PlaceholderOp) and (t in again or _fills(t, output))]
    large = [t for t in own if (const_int(extent_of(t.shape)) or 0) * t.dtype.storage_bytes > target.l2_bytes]
    wanted = [t for t in large if t not in fetched] if distance else []
    return {tensor for tensor in wanted if fetch_ahead(stage, tensor, loop, distance or 1)}


def _fills(tensor: te.Tensor, output: ComputeOp) -> bool:
    """Whether a tensor has as many elements as the output: those of its rows, not of one that all rows share."""
    return extent_of(tensor.shape) is extent_of(output.outputs[0].shape)


def _sums_at_once(op: ComputeOp, target: Target) -> int:
    """How many vectors of lanes are folded in one pass over a row: half of the registers hold sums at most."""
    lanes = const_int(op.axis[-1].extent) or 1
    return min(-(-lanes // _lanes(op, target)), target.vector_registers // 2)


def _lanes(op: ComputeOp, target: Target) -> int:
    return min(target.lanes(t.dtype) for t in op.outputs)


def _vectorize(
    stage: StageView, axis: Axis, target: Target, length: int | None = None, most: int | None = None
) -> tuple[LoopView, LoopView]:
    """Of an open axis, vectors hold at most as many elements as ``most``, the lanes that rows are folded in. A short
    row is a whole vector under a mask: without it, parts of a vector would be stored one by one, and to read them as
    one takes long."""
    op, *_ = stage.computes
    extent = const_int(axis.extent) if length is None else length
    lanes = _lanes(op, target)
    factor = pointwise_lanes(stage, extent, target) if op.reduction is None else lanes
    if extent is not None:
        factor = 1 << (max(1, extent) - 1).bit_length() if extent < lanes else min(extent, factor)
    elif most is not None:
        factor = min(factor, max(most, lanes))
    outer, lane = stage.split(axis, factor=factor)
    stage.vectorize(lane)
    return outer, lane
