"""Convolutions of plain layouts whose positions are open: the definition, and a schedule for any number of channels.

A vector has positions of a row, and a tile of sums, some filters of a group times some vectors, stays in registers.
What windows read is a copy of x with its padding, which goes on behind the end of a row, where the last tile reads what
nobody needs, and in which what neighbouring windows read are neighbours, also at a stride. It serves where filters do
not fill vectors, for which ``open_blocked`` has them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ....base.dataclass import dataclass
from ....base.target import Target
from ....lowering.schedule import Schedule, StageView
from ....schedules.around import schedule_around_sums
from ....schedules.machine import CORE
from ....schedules.vector_rows import copied_in_phases, vectorize_padded
from ....te.tensor import Tensor, Tensors
from ...definition.condition import clause
from ...definition.cost import moved, multiplied
from ...definition.strategy import OpStrategy
from .attrs import ConvAttrs
from .definition import DefinedStages, definition
from .problem import ConvProblem

MOST_FILTERS, MOST_VECTORS = 8, 2
FEW_FILTERS = 4
"""Fewer in a tile leave processors waiting for their sums, and read x too often."""
FEWEST_LANES = 8
"""Of a vector for short rows: fewer take as long."""
MORE_FILTERS = 3
"""So many times as many filters are in a tile of short rows, whose sums are one vector each."""


def add_open_rows(strategy: OpStrategy, problem: ConvProblem) -> None:
    """Offer it where layouts are plain and positions are not all known; depthwise ones have a schedule of their own."""
    made = OpenRows.of(problem)
    if made is None or problem.is_depthwise:
        return
    cost = multiplied(problem.products, problem.dtype, problem.target, CORE.shares.open_rows)
    cost += moved([*problem.types, problem.x, problem.x])  # x is copied
    half = problem.lanes // 2
    if half >= FEWEST_LANES and problem.target.fma_per_cycle < CORE.full_rate:
        short = replace(made, short=True)
        with strategy.specialized(clause("short rows", problem.width <= half)):
            strategy.add_implementation(definition, short.schedule, "conv.open_short_rows", cost=cost)
    strategy.add_implementation(definition, made.schedule, "conv.open_rows", cost=cost)


@dataclass(frozen=True, slots=True)
class OpenRows:
    """The schedule of a convolution with so many filters in a group. ``short`` rows are no longer than half of a
    vector, and are halves, which take half the time of processors that multiply whole ones in two parts."""

    filters: int
    short: bool = False

    @classmethod
    def of(cls, problem: ConvProblem) -> OpenRows | None:
        """The schedule of a convolution, if its layouts are plain, and not all of its positions are known."""
        plain = problem.is_plain and problem.has_plain_kernel
        return None if problem.outputs is not None or not plain or problem.lanes == 1 else cls(problem.group_filters)

    def schedule(self, attrs: ConvAttrs, anchor: DefinedStages, outputs: Tensors, target: Target) -> Schedule:
        """Run strips of filters, and the rows of each, in parallel; a row computes tiles of sums, and their
        epilogue."""
        return self.schedule_sums(anchor, outputs, target, stride=attrs.strides[-1])

    def schedule_sums(
        self, anchor: DefinedStages, outputs: Tensors, target: Target, keep: Sequence[Tensor] = (), stride: int = 1
    ) -> Schedule:
        """The schedule of ``schedule``, but for the stages in ``keep``, where windows move by ``stride`` in a row."""
        kept = [anchor.source, *keep]
        schedule, core, main = schedule_around_sums(anchor.result, anchor.sums, outputs, kept, target)
        lanes = target.lanes(anchor.sums.dtype) // (2 if self.short else 1)
        side, columns = self.decide_tile(schedule, lanes, target)
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
        schedule_vectors_of_sums(schedule[core], lanes, columns)
        if stride > 1:
            phases = schedule[copied_in_phases(schedule, source, core, stride, lanes, "global")]
            phases.parallel(phases.fuse(*phases.loops[:2]))
        else:
            vectorize_padded(schedule[source], False, target)
        return schedule

    def decide_tile(
        self,
        schedule: Schedule,
        lanes: int,
        target: Target,
        most: int = MOST_FILTERS,
        strips: int = 1,
        vectors_alone: int = MOST_VECTORS,
    ) -> tuple[int, int]:
        """The filters, ``most`` of them at most, and the positions of a tile whose sums, vectors of x and a weight fit
        the registers: by default as many sums as can be, of as few factors, with filters left for so many ``strips``,
        if there are. Tiles that share the filters evenly are taken unless these are few: then the last tile has fewer.
        A single filter may have up to ``vectors_alone`` vectors."""

        def widest(side: int) -> int:
            most_vectors = 1 if self.short else vectors_alone if side == 1 else MOST_VECTORS
            return max(1, min(most_vectors, (target.vector_registers - 2) // (side + 1)))

        most *= MORE_FILTERS if self.short else 1
        sides = range(1, min(most, self.filters) + 1)
        usual = [side for side in sides if self.filters % side == 0]
        if usual[-1] < FEW_FILTERS and usual[-1] < sides[-1]:
            usual = [math.ceil(self.filters / math.ceil(self.filters / most))]
        usual = [side for side in usual if self.filters // side >= strips] or usual[:1]
        side = schedule.decide("rows", sides, max(usual, key=lambda side: (side * widest(side), -side)))
        return side, lanes * schedule.decide("vectors", range(1, widest(side) + 1), widest(side))


def schedule_vectors_of_sums(stage: StageView, lanes: int, columns: int = 1) -> None:
    """Vectors outside, filters inside: a vector of x serves all of them, and needs a register no longer. Rows of sums
    go on to a multiple of ``columns``."""
    (core,) = stage.op.outputs
    n, filters, *outer, column = stage.loops[: core.ndim]
    reductions = stage.loops[core.ndim :]
    if columns > 1:
        column = stage.round_up(column, factor=columns)
    vector, lane = stage.split(column, factor=lanes)
    stage.reorder(n, *outer, *reductions, vector, filters, lane)
    stage.vectorize(lane)
    stage.unroll(vector)
    stage.unroll(filters)
