"""Convolutions of bytes to one position, as those that squeeze an image: sums of words of a filter in lanes.

There are no positions for vectors to run over, but the words of a filter lie side by side, and so do those of x.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....base.dataclass import dataclass
from ....base.target import Target
from ....lowering.schedule import Schedule
from ....schedules.around import schedule_around
from ....schedules.blocks import largest_divisor
from ....schedules.register_transpose import schedule_transposed, turn_squares
from ....te.tensor import Tensor, Tensors
from .definition import DefinedStages
from .problem import ConvProblem

LEAST_VECTORS = 2
"""Fewer vectors of words than this are hardly worth the sum over lanes at their end."""


@dataclass(frozen=True, slots=True)
class OnePosition:
    """Sums of some filters at a time, each in a vector."""

    problem: ConvProblem

    @staticmethod
    def serves(problem: ConvProblem, words: int) -> bool:
        """Whether there is one position, whose window is one element, and enough words of a filter."""
        return (
            problem.outputs is not None
            and problem.is_pointwise
            and set(problem.outputs) == {1}
            and (words >= LEAST_VECTORS * problem.lanes)
        )

    def schedule_sums(
        self, anchor: DefinedStages, outputs: Tensors, target: Target, keep: Sequence[Tensor] = ()
    ) -> Schedule:
        """Schedule the sums, and what follows them. ``keep`` are stages that the caller schedules."""
        sums, lanes = anchor.sums, self.problem.lanes
        schedule, main = schedule_around(anchor.result, outputs, [sums, *anchor.copies, *keep], target)
        for source in anchor.copies:
            schedule[source].compute_inline()
        stage, total = schedule[main], schedule[sums]
        _, lane = total.split(total.loops[sums.ndim], factor=lanes)
        partial = schedule.rfactor(sums, lane, factor_axis=-1)
        turned = self.problem.group_filters % lanes == 0
        filters = lanes if turned else largest_divisor(self.problem.group_filters, target.vector_registers // 2)
        squares = turn_squares(schedule, partial, sums, sums.ndim - 1, lanes) if turned else []
        n, k, *spatial = stage.loops
        block, k = stage.split(k, factor=filters)
        stage.reorder(n, block, *spatial, k)
        stage.vectorize(k)
        tasks = stage.fuse(n, block)
        stage.parallel(tasks)
        total.compute_at(stage, tasks)
        n, k, *rest = total.loops
        total.reorder(n, *rest, k)
        total.vectorize(k)
        schedule_transposed(schedule, squares, stage, tasks, lanes)
        part = schedule[partial]
        part.compute_at(stage, tasks)
        n, k, *spatial, lane, word = part.loops[: partial.ndim + 1]
        part.reorder(n, *spatial, word, *part.loops[partial.ndim + 1 :], k, lane)
        part.unroll(k)
        part.vectorize(lane)
        return schedule
