"""Reductions along the innermost axes, row by row: each lane folds every LANES-th element, then the lanes are folded.

Shared by the operators that reduce rows. Vector lanes thus run over neighbours in memory; the order of folding is fixed
by LANES, so that results do not depend on the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import mul
from typing import TypeAlias

import numpy as np

from .. import te
from ..base.dtype import DType
from ..base.target import Target
from ..ir.constants import ONE, const_int
from ..ir.expr import Axis, Expr
from ..ir.operand import Operand
from ..ir.simplify import simplify
from ..lowering.schedule import LoopView, Schedule, StageView, create_schedule
from ..lowering.state import Stage
from ..te.tensor import ComputeOp, PlaceholderOp, Tensors
from .default_schedule import inline_cheap_stages, is_inlined, pointwise_lanes, schedule_stage
from .fetch_ahead import fetch_ahead

LANES = 64
"""Four of the longest vectors: as many sums side by side hide how long an addition takes."""
_LANES_SUFFIX = ".lanes"
_HALF_SUFFIX = ".half"
LEAST_EXTENT = LANES
"""Shorter rows are folded as they stand: what the lanes save, their folding would cost."""


@dataclass(frozen=True, slots=True)
class Fold:
    """A reduction, ``reduce(source, axis=…, where=…)``, and what it does to two values."""

    reduce: Callable[..., Expr]
    combine: Callable[[Expr, Expr], Expr]


RowFold: TypeAlias = Callable[
    [str, Sequence[Expr], Expr, Fold, Callable[[tuple[Operand, ...], Expr], Expr], Sequence[Axis]], te.Tensor
]
"""Makes a fold of rows, as ``fold_rows`` does."""

SUM = Fold(te.sum, lambda a, b: a + b)
PROD = Fold(te.prod, lambda a, b: a * b)
MAX = Fold(te.max, te.maximum)
MIN = Fold(te.min, te.minimum)


def lowest(kind: DType) -> Expr:
    """The least finite number: less -inf it is infinite, so that scores that are all -inf have exponentials of 0."""
    return te.const(float(np.finfo(kind.to_numpy()).min), kind)


def _larger(a: Expr, b: Expr) -> Expr:
    return te.select(b > a, b, a)


_peak_of = te.reducer("largest_finite", lambda a, b: (_larger(a[0], b[0]),), lambda kinds: (lowest(kinds[0]),))


def peak_of(source: Expr, axis: Axis | Sequence[Axis], where: Expr | None = None) -> Expr:
    """The maximum that softmax subtracts, one instruction a vector: it leaves out NaNs, which the sum of exponentials
    does not, and of nothing but -inf it is the lowest number, so that their exponentials are 0."""
    return _peak_of((source,), axis, where)[0]


PEAK = Fold(peak_of, _larger)


def fold_rows(
    name: str,
    rows: Sequence[Expr],
    extent: Expr,
    fold: Fold,
    term: Callable[[tuple[Operand, ...], Expr], Expr],
    others: Sequence[Axis] = (),
) -> te.Tensor:
    """A tensor of shape ``rows``: the fold of ``term(row, k)`` for k below ``extent``, and over the axes ``others``."""
    block = te.reduce_axis((0, simplify((extent + (LANES - 1)) // LANES)), name="block")
    whole = const_int(simplify(extent % LANES)) == 0

    def lane(*i: Axis) -> Expr:
        k = block * LANES + i[-1]
        return fold.reduce(term(i[:-1], k), axis=(*others, block), where=None if whole else k < extent)

    lanes = te.compute((*rows, LANES), lane, name=f"{name}{_LANES_SUFFIX}")
    width = LANES
    while width > 2:
        width //= 2
        lanes = _halved(lanes, width, fold, f"{name}{_HALF_SUFFIX}{width}")
    return te.compute(rows, lambda *row: fold.combine(lanes[(*row, 0)], lanes[(*row, 1)]), name=name)


def _halved(lanes: te.Tensor, width: int, fold: Fold, name: str) -> te.Tensor:
    """Each lane of the lower half folded with one of the upper half."""

    def pair(*i: Axis) -> Expr:
        *row, k = i
        return fold.combine(lanes[(*row, k)], lanes[(*row, k + width)])

    return te.compute((*lanes.shape[:-1], width), pair, name=name)


def innermost(shape: Sequence[Expr]) -> int:
    """The last axis whose extent is not 1: its elements are neighbours in memory. The last of all if there is none."""
    return next((d for d in reversed(range(len(shape))) if const_int(shape[d]) != 1), len(shape) - 1)


def row_span(axes: Sequence[int], shape: Sequence[Expr]) -> tuple[int, ...]:
    """The innermost axes that are reduced as one, since their elements are neighbours: several if all are constants."""
    last = innermost(shape)
    if last not in axes:
        return ()
    first = last
    while first - 1 in axes and None not in map(const_int, shape[first - 1 : last + 1]):
        first -= 1
    return tuple(range(first, last + 1))


def extent_of(shape: Sequence[Expr]) -> Expr:
    """How many elements a box has."""
    return simplify(reduce(mul, shape, ONE))


def schedule_rows(anchor: Tensors, outputs: Tensors, row_axes: Sequence[int], target: Target) -> Schedule:
    """One output computed row by row, in parallel; a row is what the output's other axes span.

    The stages of the anchor's operator, which are named ``<its name>.<…>``, and producers that have all axes of the
    output are computed inside a row. Other stages, of smaller inputs, are computed before.
    """
    schedule = create_schedule(outputs)
    output = schedule[outputs[-1]]
    op = output.op
    assert isinstance(op, ComputeOp)
    operator = f"{schedule[anchor[-1]].name.partition('.')[0]}."
    own = {stage.name for stage in schedule.state.stages if f"{stage.name}.".startswith(operator)} - {output.name}
    inline_cheap_stages(schedule, keep={n for n in own if _has_a_value_a_row(schedule.state.stage(n), op)})
    row = _schedule_output(output, op, row_axes, target)
    inside = {output.name}
    fetched: set[te.Tensor] = set()
    for stage in reversed(schedule.state.stages):
        if stage.is_input or stage.name == output.name or is_inlined(schedule.state, stage.name):
            continue
        belongs = stage.name in own or _has_axes_of(stage, op)
        if belongs and _read_inside(schedule, stage, inside):
            axis = _spanned(stage, op, row_axes, stage.name in own)
            if axis is not None:
                loop, trips = _schedule_inside(schedule[stage.name], axis, target)
                if row is not None:
                    again = _read_by_others(schedule, stage, own)
                    fetched |= _fetch_next_row(schedule[stage.name], op, loop, trips, target, fetched, again)
            if row is not None:
                schedule[stage.name].compute_at(output, row)
            inside.add(stage.name)
        else:
            schedule_stage(schedule[stage.name], target)
    return schedule


def _schedule_output(output: StageView, op: ComputeOp, row_axes: Sequence[int], target: Target) -> LoopView | None:
    """The loop over the rows of the output, if it has several; inside a row, neighbours are one vector."""
    rows = [op.axis[d] for d in row_axes]
    others = [axis for d, axis in enumerate(op.axis) if d not in row_axes]
    if rows:
        output.reorder(*rows, *others)
    if others:
        _vectorize(output, others[innermost([axis.extent for axis in others])], target)
    if not rows:
        return None
    row = output.fuse(*rows)
    output.parallel(row)
    return row


def _has_a_value_a_row(stage: Stage, output: ComputeOp) -> bool:
    """Whether a stage would be computed again for each element of a row if it were inlined."""
    return _folds_lanes(stage) or stage.tensors[0].ndim < len(output.axis)


def _folds_lanes(stage: Stage) -> bool:
    return any(_LANES_SUFFIX in tensor.name or _HALF_SUFFIX in tensor.name for tensor in stage.op.inputs)


def _has_axes_of(stage: Stage, output: ComputeOp) -> bool:
    """Whether each element belongs to one row; an axis of extent 1 of the output may be one that was reduced."""
    shape = stage.tensors[0].shape
    return len(shape) >= len(output.axis) and all(
        extent is axis.extent or axis.extent is ONE for extent, axis in zip(shape, output.axis, strict=False)
    )


def _spanned(stage: Stage, output: ComputeOp, row_axes: Sequence[int], own: bool) -> Axis | None:
    """The axis of a stage whose elements, in one row, are neighbours; None where a row has one element of it."""
    axes = stage.compute.axis
    if _LANES_SUFFIX in stage.name or _HALF_SUFFIX in stage.name:
        return axes[-1]
    d = innermost(stage.tensors[0].shape)
    if own:
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


def _schedule_inside(stage: StageView, axis: Axis, target: Target) -> tuple[LoopView, Expr]:
    """Vectorize the part of a stage that belongs to one row. A reduction keeps its sums in registers.

    Gives the loop that goes through the row, and how often it does.
    """
    op = stage.op
    assert isinstance(op, ComputeOp)
    outer, lanes = _vectorize(stage, axis, target)
    if stage.name.endswith(_LANES_SUFFIX):
        block, vector = stage.split(outer, factor=_sums_at_once(op, target))
        *_, row = stage.loops
        stage.reorder(block, *op.reduce_axis, vector, lanes)
        stage.unroll(vector)
        return row, op.reduce_axis[-1].extent
    if _HALF_SUFFIX in stage.name:
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
    op, distance = stage.op, const_int(trips)
    assert isinstance(op, ComputeOp)
    own = [t for t in op.inputs if isinstance(t.op, PlaceholderOp) and (t in again or _fills(t, output))]
    large = [t for t in own if (const_int(extent_of(t.shape)) or 0) * t.dtype.storage_bytes > target.l2_bytes]
    wanted = [t for t in large if t not in fetched] if distance else []
    return {tensor for tensor in wanted if fetch_ahead(stage, tensor, loop, distance or 1)}


def _fills(tensor: te.Tensor, output: ComputeOp) -> bool:
    """Whether a tensor has as many elements as the output: those of its rows, not of one that all rows share."""
    return extent_of(tensor.shape) is extent_of(output.outputs[0].shape)


def _sums_at_once(op: ComputeOp, target: Target) -> int:
    """How many vectors of lanes are folded in one pass over a row: half of the registers hold sums at most."""
    return min(-(-LANES // _lanes(op, target)), target.vector_registers // 2)


def _lanes(op: ComputeOp, target: Target) -> int:
    return min(target.lanes(t.dtype) for t in op.outputs)


def _vectorize(stage: StageView, axis: Axis, target: Target) -> tuple[LoopView, LoopView]:
    op = stage.op
    assert isinstance(op, ComputeOp)
    extent = const_int(axis.extent)
    factor = pointwise_lanes(stage, extent, target) if op.reduction is None else _lanes(op, target)
    outer, lanes = stage.split(axis, factor=factor if extent is None else max(1, min(extent, factor)))
    stage.vectorize(lanes)
    return outer, lanes
