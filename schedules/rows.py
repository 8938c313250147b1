"""Reductions along the innermost axes, row by row: each lane folds every LANES-th element, then the lanes are folded.

Shared by the operators that reduce rows. Vector lanes thus run over neighbours in memory; the order of folding is fixed
by LANES, so that results do not depend on the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
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
LEAST_EXTENT = LANES
"""Shorter rows are folded as they stand: what the lanes save, their folding would cost."""


@dataclass(frozen=True, slots=True)
class Fold:
    """A reduction, ``reduce(source, axis=…, where=…)``, and what it does to two values."""

    reduce: Callable[..., Expr]
    combine: Callable[[Expr, Expr], Expr]


@dataclass(frozen=True, slots=True, eq=False)
class FoldedRows:
    """The stages of a fold: its ``total``, the ``lanes`` that are folded side by side, if there are, and the ``halves``
    in which these are folded, widest first."""

    total: te.Tensor
    lanes: te.Tensor | None = None
    halves: tuple[te.Tensor, ...] = ()

    @property
    def parts(self) -> tuple[te.Tensor, ...]:
        """The stages on the way to the total, in order of computation."""
        return self.halves if self.lanes is None else (self.lanes, *self.halves)


RowFold: TypeAlias = Callable[
    [str, Sequence[Expr], Expr, Fold, Callable[[tuple[Operand, ...], Expr], Expr], Sequence[Axis]], FoldedRows
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
) -> FoldedRows:
    """A fold whose total has the shape ``rows``: of ``term(row, k)`` for k below ``extent``, and over ``others``."""
    block = te.reduce_axis((0, simplify((extent + (LANES - 1)) // LANES)), name="block")
    whole = const_int(simplify(extent % LANES)) == 0

    def lane(*i: Axis) -> Expr:
        k = block * LANES + i[-1]
        return fold.reduce(term(i[:-1], k), axis=(*others, block), where=None if whole else k < extent)

    lanes = half = te.compute((*rows, LANES), lane, name=f"{name}.lanes")
    halves: list[te.Tensor] = []
    width = LANES
    while width > 2:
        width //= 2
        half = _halved(half, width, fold, f"{name}.half{width}")
        halves.append(half)
    total = te.compute(rows, lambda *row: fold.combine(half[(*row, 0)], half[(*row, 1)]), name=name)
    return FoldedRows(total, lanes, tuple(halves))


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


@dataclass(frozen=True, slots=True)
class _Parts:
    """The names of the stages of an operator, but of the output, and of those among them that fold lanes."""

    own: frozenset[str]
    lanes: frozenset[str]
    halves: frozenset[str]
    read_lanes: frozenset[str]


def _parts(schedule: Schedule, folds: Sequence[FoldedRows], others: Sequence[te.Tensor], output: str) -> _Parts:
    def named(tensors: Iterable[te.Tensor]) -> frozenset[str]:
        return frozenset(schedule[tensor].name for tensor in tensors)

    own = named((*others, *(tensor for fold in folds for tensor in (*fold.parts, fold.total))))
    halves = named(half for fold in folds for half in fold.halves)
    lanes = named(fold.lanes for fold in folds if fold.lanes is not None)
    return _Parts(own - {output}, lanes, halves, halves | named(fold.total for fold in folds if fold.parts))


def schedule_rows(
    folds: Sequence[FoldedRows],
    others: Sequence[te.Tensor],
    outputs: Tensors,
    row_axes: Sequence[int],
    target: Target,
) -> Schedule:
    """Compute one output row by row, in parallel; a row is what the output's other axes span.

    The stages of an operator, its ``folds`` and ``others``, and producers that have all axes of the output are computed
    inside a row. Other stages, of smaller inputs, are computed before.
    """
    schedule = create_schedule(outputs)
    output = schedule[outputs[-1]]
    op = schedule.state.stage(output.name).compute
    parts = _parts(schedule, folds, others, output.name)
    one_a_row = {name for name in parts.own if schedule.state.stage(name).tensors[0].ndim < len(op.axis)}
    inline_cheap_stages(schedule, keep=(parts.own & parts.read_lanes) | one_a_row)
    row = _schedule_output(output, op, row_axes, target)
    inside = {output.name}
    fetched: set[te.Tensor] = set()
    for stage in reversed(schedule.state.stages):
        if stage.is_input or stage.name == output.name or is_inlined(schedule.state, stage.name):
            continue
        belongs = stage.name in parts.own or _has_axes_of(stage, op)
        if belongs and _read_inside(schedule, stage, inside):
            axis = _spanned(stage, op, row_axes, parts)
            if axis is not None:
                loop, trips = _schedule_inside(schedule[stage.name], stage.compute, axis, parts, target)
                if row is not None:
                    again = _read_by_others(schedule, stage, parts.own)
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
    stage: StageView, op: ComputeOp, axis: Axis, parts: _Parts, target: Target
) -> tuple[LoopView, Expr]:
    """Vectorize the part of a stage that belongs to one row. A reduction keeps its sums in registers.

    Gives the loop that goes through the row, and how often it does.
    """
    outer, lanes = _vectorize(stage, axis, target)
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
    return min(-(-LANES // _lanes(op, target)), target.vector_registers // 2)


def _lanes(op: ComputeOp, target: Target) -> int:
    return min(target.lanes(t.dtype) for t in op.outputs)


def _vectorize(stage: StageView, axis: Axis, target: Target) -> tuple[LoopView, LoopView]:
    op, *_ = stage.computes
    extent = const_int(axis.extent)
    factor = pointwise_lanes(stage, extent, target) if op.reduction is None else _lanes(op, target)
    outer, lanes = stage.split(axis, factor=factor if extent is None else max(1, min(extent, factor)))
    stage.vectorize(lanes)
    return outer, lanes
