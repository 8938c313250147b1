"""Reductions along the innermost axis, row by row: each lane folds every LANES-th element, then the lanes are folded.

Shared by the operators that reduce rows. Vector lanes thus run over neighbours in memory; the order of folding is fixed
by LANES, so that results do not depend on the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .. import te
from ..ir.expr import Axis, Expr, const_int
from ..ir.target import Target
from ..lowering.default_schedule import inline_cheap_stages, is_inlined, schedule_stage
from ..lowering.schedule import LoopView, Schedule, StageView, create_schedule
from ..lowering.state import Stage
from ..te.tensor import ComputeOp
from .strategy import Tensors

LANES = 32
_LANES_SUFFIX = ".lanes"
LEAST_EXTENT = 2 * LANES
"""Shorter rows are folded as they stand: what the lanes save, their folding would cost."""


@dataclass(frozen=True, slots=True)
class Fold:
    """A reduction, ``reduce(source, axis=…, where=…)``, and what it does to two values."""

    name: str
    reduce: Callable[..., Expr]
    combine: Callable[[Expr, Expr], Expr]


SUM = Fold("sum", te.sum, lambda a, b: a + b)
PROD = Fold("prod", te.prod, lambda a, b: a * b)
MAX = Fold("max", te.max, te.maximum)
MIN = Fold("min", te.min, te.minimum)


def fold_rows(
    name: str,
    rows: Sequence[Expr],
    extent: int,
    fold: Fold,
    term: Callable[[tuple[Axis, ...], Expr], Expr],
    others: Sequence[Axis] = (),
) -> te.Tensor:
    """A tensor of shape ``rows``: the fold of ``term(row, k)`` for k below ``extent``, and over the axes ``others``."""
    block = te.reduce_axis((0, -(-extent // LANES)), name="block")

    def lane(*i: Axis) -> Expr:
        k = block * LANES + i[-1]
        where = None if extent % LANES == 0 else k < extent
        return fold.reduce(term(i[:-1], k), axis=(*others, block), where=where)

    lanes = te.compute((*rows, LANES), lane, name=f"{name}{_LANES_SUFFIX}")

    def pairwise(*row: Axis) -> Expr:
        values: list[Expr] = [lanes[(*row, k)] for k in range(LANES)]
        while len(values) > 1:
            half = len(values) // 2
            values = [fold.combine(a, b) for a, b in zip(values[:half], values[half:], strict=True)]
        return values[0]

    return te.compute(rows, pairwise, name=name)


def schedule_rows(outputs: Tensors, row_rank: int, target: Target) -> Schedule:
    """One output computed row by row, its rows being its first ``row_rank`` axes: all that has rows of its own inside.

    The rest of the output's axes is one vector loop. Stages without rows, of small inputs, are computed before.
    """
    schedule = create_schedule(outputs)
    inline_cheap_stages(schedule, keep={s.name for s in schedule.state.stages if _folds_lanes(s)})
    output = schedule[outputs[-1]]
    assert isinstance(output.op, ComputeOp)
    extents = tuple(axis.extent for axis in output.op.axis[:row_rank])
    row = output.fuse(*output.op.axis[:row_rank]) if row_rank else None
    if row_rank < len(output.op.axis):
        _vectorize_last(output, target)
    if row is not None:
        output.parallel(row)
    inside = {output.name}
    for stage in reversed(schedule.state.stages):
        if stage.is_input or stage.name == output.name or is_inlined(schedule.state, stage.name):
            continue
        if row is not None and _has_rows(stage, extents) and _read_inside(schedule, stage, inside):
            _schedule_inside(schedule[stage.name], row_rank, target)
            schedule[stage.name].compute_at(output, row)
            inside.add(stage.name)
        else:
            schedule_stage(schedule[stage.name], target)
    return schedule


def _folds_lanes(stage: Stage) -> bool:
    """Whether a stage folds lanes: a value a row, which would be computed again for each element if inlined."""
    return any(tensor.name.endswith(_LANES_SUFFIX) for tensor in stage.op.inputs)


def _has_rows(stage: Stage, extents: Sequence[Expr]) -> bool:
    shape = stage.tensors[0].shape
    return len(shape) >= len(extents) and all(a is b for a, b in zip(shape, extents, strict=False))


def _read_inside(schedule: Schedule, stage: Stage, inside: set[str]) -> bool:
    """Whether all that reads a stage, through inlined stages too, is computed inside a row."""
    return all(
        reader.name in inside or (is_inlined(schedule.state, reader.name) and _read_inside(schedule, reader, inside))
        for reader in schedule.state.consumers(stage)
    )


def _schedule_inside(stage: StageView, row_rank: int, target: Target) -> None:
    """Vectorize the part of a stage that belongs to one row; a reduction keeps its lanes in registers."""
    op = stage.op
    assert isinstance(op, ComputeOp)
    if len(op.axis) == row_rank:
        return
    outer, lanes = _vectorize_last(stage, target)
    if op.reduction is not None:
        stage.reorder(*op.reduce_axis, outer, lanes)
        stage.unroll(outer)


def _vectorize_last(stage: StageView, target: Target) -> tuple[LoopView, LoopView]:
    op = stage.op
    assert isinstance(op, ComputeOp)
    extent = const_int(op.axis[-1].extent)
    lanes_of_register = min(target.lanes(t.dtype) for t in op.outputs)
    factor = lanes_of_register if extent is None else max(1, min(extent, lanes_of_register))
    outer, lanes = stage.split(op.axis[-1], factor=factor)
    stage.vectorize(lanes)
    return outer, lanes
