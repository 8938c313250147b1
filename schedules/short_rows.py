"""Reductions along rows too short to be folded like long ones: several rows side by side.

Each row becomes one vector of LANES partial results. Then neighbours are folded, in all rows at once, until each row
has one result: those of some rows are a vector again, which is stored as it is. The order of folding is fixed by LANES,
so that results do not depend on the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .. import te
from ..base.target import Target
from ..ir.constants import const_int
from ..ir.expr import Axis, Expr
from ..ir.makers import as_index
from ..ir.operand import Operand
from ..ir.row_major import ravel_index, unravel_index
from ..ir.simplify import simplify
from ..lowering.schedule import Schedule
from ..te.tensor import Tensors
from .around import schedule_around
from .rows import LEAST_EXTENT, Fold, FoldedRows, RowFold, extent_of, row_span

LANES = 16


def are_short_rows(axes: Sequence[int], shape: Sequence[Expr]) -> bool:
    """Whether the reduced axes are the innermost ones, of one to a few vectors together, and others stay."""
    span = row_span(axes, shape)
    extent = const_int(extent_of([shape[d] for d in span])) or 0
    return LANES <= extent < LEAST_EXTENT and len(span) == len(axes) < len(shape)


def folding_short_rows(together: int) -> RowFold:
    """How ``together`` rows are folded at a time; a power of two, the lanes of a vector or less."""

    def fold_rows(
        name: str,
        rows: Sequence[Expr],
        extent: Expr,
        fold: Fold,
        term: Callable[[tuple[Operand, ...], Expr], Expr],
        others: Sequence[Axis] = (),
    ) -> FoldedRows:
        length, count = const_int(extent) or LANES, extent_of(rows)  # known, as are_short_rows has it
        whole = const_int(simplify(count % together)) == 0

        def part(block: Axis, element: Axis) -> Expr:
            number, lane = block * together + element // LANES, element % LANES
            row = tuple(unravel_index(number if whole else te.minimum(number, count - 1), rows))
            total = term(row, lane)
            for first in range(LANES, length - LANES + 1, LANES):
                total = fold.combine(total, term(row, lane + first))
            if length % LANES:
                within = lane < length % LANES
                last = te.if_then_else(within, term(row, lane + length // LANES * LANES), te.const(0, total.dtype))
                total = te.select(within, fold.combine(total, last), total)
            return total

        width = together * LANES
        blocks = simplify((count + (together - 1)) // together)
        lanes = parts = te.compute((blocks, width), part, name=f"{name}.parts{width}")
        halves: list[te.Tensor] = []
        while width > together:
            width //= 2
            parts = _folded(parts, width, fold, f"{name}.parts{width}")
            halves.append(parts)

        def element(*row: Axis) -> Expr:
            number = ravel_index([as_index(i) for i in row], rows)
            return parts[number // together, number % together]

        return FoldedRows(te.compute(rows, element, name=name), lanes, tuple(halves))

    return fold_rows


def _folded(parts: te.Tensor, width: int, fold: Fold, name: str) -> te.Tensor:
    """Each part folded with its neighbour."""

    def pair(block: Axis, k: Axis) -> Expr:
        return fold.combine(parts[block, k * 2], parts[block, k * 2 + 1])

    return te.compute((parts.shape[0], width), pair, name=name)


def schedule_short_rows(result: te.Tensor, folds: Sequence[FoldedRows], outputs: Tensors, target: Target) -> Schedule:
    """Keep all parts of some rows in registers, until these rows' results are stored as one vector."""
    parts = [part for fold in reversed(folds) for part in reversed(fold.parts)]
    schedule, main = schedule_around(result, outputs, (*parts, result), target)
    if main is not result:  # also where it costs much and is read twice: its parts are in registers of main's loop only
        schedule[result].compute_inline()
    stage = schedule[main]
    block, row = stage.split(stage.fuse(*stage.loops), factor=const_int(parts[0].shape[1]))
    stage.vectorize(row)
    stage.parallel(block)
    for tensor in parts:
        part = schedule[tensor]
        part.compute_at(stage, block)
        vector, lane = part.split(part.loops[-1], factor=target.lanes(tensor.dtype))
        part.vectorize(lane)
        part.unroll(vector)
    return schedule
