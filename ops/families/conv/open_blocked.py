"""Convolutions of blocked channels whose positions are open: the definition, and a schedule that needs no extents.

A vector has filters, of which there are known to be enough, and positions are only counted. A tile of sums, some
positions of a row times some blocks of filters, stays in registers. The last tile of a row goes beyond its end, to
positions that nobody reads; so what windows read is a copy of x that goes on there.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....base.target import Target
from ....lowering.schedule import Schedule, StageView
from ....schedules.around import schedule_around_sums
from ....schedules.vector_rows import vectorize_padded
from ....te.tensor import Tensor, Tensors
from ...definition.cost import moved, multiplied
from ...definition.strategy import OpStrategy
from .attrs import ConvAttrs
from .definition import DefinedStages, definition
from .layouts import data_layout, kernel_layout
from .problem import ConvProblem

EFFICIENCY = 0.7
"""Of the multiplications that a core can do, which it does here, about: rows need not be whole tiles."""
MOST_COLUMNS, MOST_BLOCKS = 8, 4
"""A tile has at most so many positions, since rows may be short, and so many blocks of filters."""


def add_open_blocked(strategy: OpStrategy, problem: ConvProblem) -> None:
    """Offer it where the result has its channels in blocks, none in two groups, and its positions are not all known."""
    made = OpenBlocked.of(problem)
    if made is None:
        return
    copied = [problem.x, problem.x]
    cost = multiplied(problem.products, problem.dtype, problem.target, EFFICIENCY) + moved([*problem.types, *copied])
    strategy.add_implementation(definition, made.schedule, "conv.open_blocked", cost=cost)


@dataclass(frozen=True, slots=True)
class OpenBlocked:
    """The schedule of a convolution to blocks of so many filters, of which ``blocks``, those of a group, may be summed
    side by side."""

    block: int
    blocks: int

    @classmethod
    def of(cls, problem: ConvProblem) -> OpenBlocked | None:
        """The schedule of a convolution, if it has such blocks, and not all of its positions are known."""
        attrs, rank = problem.attrs, problem.rank
        block, data, width = attrs.out.factor("C"), attrs.data.factor("C"), attrs.kernel.factor("O")
        group = problem.group_filters
        if problem.outputs is not None or block == 1 or group % block or width % block:
            return None
        if attrs.out is not data_layout(rank, block) or attrs.data is not data_layout(rank, data):
            return None
        if attrs.kernel is not kernel_layout(rank, data, width) or (attrs.groups > 1 and group % width):
            return None
        return cls(block, group // block)

    def schedule(self, attrs: ConvAttrs, anchor: DefinedStages, outputs: Tensors, target: Target) -> Schedule:
        """Run stripes of blocks, and the rows of each, in parallel; a row computes tiles of sums, and their
        epilogue."""
        schedule, core, main = schedule_around_sums(anchor.result, anchor.sums, outputs, [anchor.source], target)
        columns, side = self.decide_tile(schedule, anchor.sums, target)
        stage = schedule[main]
        n, block, *outer, column, lane = stage.loops[: main.ndim]
        stripe, part = stage.split(block, factor=side)
        across, column = stage.split(column, factor=columns)
        stage.reorder(n, stripe, *outer, across, column, part, lane)
        stage.vectorize(lane)
        stage.parallel(stage.fuse(n, stripe, *outer))
        source = schedule.cache_read(anchor.source, "global", [core], pad=0)
        if anchor.copies:
            schedule[anchor.source].compute_inline()
        schedule[core].compute_at(stage, across)
        schedule_tile_of_sums(schedule[core], columns)
        vectorize_padded(schedule[source], attrs.data.is_blocked, target)
        return schedule

    def decide_tile(self, schedule: Schedule, sums: Tensor, target: Target, stripes: int = 1) -> tuple[int, int]:
        """The positions and the blocks of a tile whose sums, weights and a factor fit the registers: by default as many
        sums as can be, with blocks left for so many ``stripes``, if there are."""
        registers = target.vector_registers // -(-self.block // target.lanes(sums.dtype))

        def most(side: int) -> int:
            return min(MOST_COLUMNS, max(1, (registers - side - 1) // side))

        sides = [side for side in range(1, MOST_BLOCKS + 1) if self.blocks % side == 0]
        usual = [side for side in sides if self.blocks // side >= stripes] or sides[:1]
        side = schedule.decide("blocks", sides, max(usual, key=lambda side: (most(side) * side, side)))
        return schedule.decide("columns", range(1, most(side) + 1), most(side)), side


def schedule_tile_of_sums(stage: StageView, columns: int = 1) -> None:
    """Positions outside, blocks inside: a broadcast factor serves all blocks, and needs a register no longer. Rows of
    sums go on to a multiple of ``columns``."""
    (core,) = stage.op.outputs
    n, blocks, *outer, column, lane = stage.loops[: core.ndim]
    reductions = stage.loops[core.ndim :]
    if columns > 1:
        column = stage.round_up(column, factor=columns)
    stage.reorder(n, *outer, *reductions, column, blocks, lane)
    stage.vectorize(lane)
    stage.unroll(column)
    stage.unroll(blocks)
