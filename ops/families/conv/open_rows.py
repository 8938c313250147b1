"""Convolutions of plain layouts whose positions are open: the definition, and a schedule for any number of channels.

A vector has positions of a row, and a tile of sums, some filters of a group times some vectors, stays in registers.
What windows read is a copy of x with its padding, which goes on behind the end of a row, where the last tile reads what
nobody needs. It serves where filters do not fill vectors, for which ``open_blocked`` has them.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....base.target import Target
from ....lowering.schedule import Schedule, StageView
from ....schedules.around import schedule_around_sums
from ....schedules.vector_rows import vectorize_padded
from ....te.tensor import Tensors
from ...definition.cost import elements, moved, multiplied
from ...definition.strategy import OpStrategy
from .attrs import ConvAttrs
from .definition import DefinedStages, definition
from .problem import ConvProblem

EFFICIENCY, STRIDED_EFFICIENCY = 0.4, 0.1
"""Of the multiplications that a core can do, which it does here, about; and where a vector's positions are apart."""
MOST_FILTERS, MOST_VECTORS = 6, 2


def add_open_rows(strategy: OpStrategy, problem: ConvProblem) -> None:
    """Offer it where layouts are plain and positions are not all known."""
    if problem.outputs is not None or not problem.is_plain or not problem.has_plain_kernel or problem.lanes == 1:
        return
    products = problem.reduction_extent * elements(problem.result)
    efficiency = EFFICIENCY if problem.attrs.strides[-1] == 1 else STRIDED_EFFICIENCY
    copied = [problem.x, problem.x]
    strategy.add_implementation(
        definition,
        OpenRows(problem.group_filters).schedule,
        "conv.open_rows",
        plevel=15,
        cost=multiplied(products, problem.dtype, problem.target, efficiency) + moved([*problem.types, *copied]),
    )


@dataclass(frozen=True, slots=True)
class OpenRows:
    """The schedule of a convolution with so many filters in a group."""

    filters: int

    def schedule(self, attrs: ConvAttrs, anchor: DefinedStages, outputs: Tensors, target: Target) -> Schedule:
        """Run strips of filters, and the rows of each, in parallel; a row computes tiles of sums, and their
        epilogue."""
        schedule, core, main = schedule_around_sums(anchor.result, anchor.sums, outputs, [anchor.source], target)
        lanes = target.lanes(anchor.sums.dtype)
        sides = [side for side in range(1, MOST_FILTERS + 1) if self.filters % side == 0]
        side = schedule.decide("rows", sides, sides[-1])
        widest = max(1, min(MOST_VECTORS, (target.vector_registers - 2) // (side + 1)))
        columns = lanes * schedule.decide("vectors", range(1, widest + 1), widest)
        stage = schedule[main]
        n, filters, *outer, column = stage.loops[: main.ndim]
        strip, part = stage.split(filters, factor=side)
        across, column = stage.split(column, factor=columns)
        vector, lane = stage.split(column, factor=lanes)
        stage.reorder(n, strip, *outer, across, part, vector, lane)
        stage.vectorize(lane)
        stage.parallel(stage.fuse(n, strip, *outer))
        source = schedule.cache_read(anchor.source, "global", [core], pad=0)
        if anchor.copies:
            schedule[anchor.source].compute_inline()
        schedule[core].compute_at(stage, across)
        _schedule_sums(schedule[core], columns, lanes)
        vectorize_padded(schedule[source], False, target)
        return schedule


def _schedule_sums(stage: StageView, columns: int, lanes: int) -> None:
    """Vectors outside, filters inside: a vector of x serves all of them, and needs a register no longer."""
    (core,) = stage.op.outputs
    n, filters, *outer, column = stage.loops[: core.ndim]
    column = stage.round_up(column, factor=columns)
    vector, lane = stage.split(column, factor=lanes)
    stage.reorder(n, *outer, *stage.loops[core.ndim + 1 :], vector, filters, lane)
    stage.vectorize(lane)
    stage.unroll(vector)
    stage.unroll(filters)
