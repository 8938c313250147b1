"""Writes sums whose channels are in vectors to a result in N, C, …: squares of positions and channels are transposed in
registers.

Some rows of the sums wait in the second cache, and are written channel by channel: long pieces of few channels at a
time are what memory is quick with. Here are the stages that follow the sums, and how they are scheduled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .... import te
from ....graph.types import TensorType
from ....ir.expr import Axis, Expr
from ....ir.makers import as_index
from ....ir.row_major import ravel_index, unravel_index
from ....lowering.schedule import LoopView, Schedule, StageView
from ....schedules.register_transpose import schedule_transposed, transposed

TRANSPOSED_CYCLES = 0.4
"""To transpose an element: of 16 lanes, four shuffles, a load and a store for sixteen."""


def unblocked(sums: te.Tensor, kind: TensorType, plane: Sequence[int], lanes: int) -> tuple[te.Tensor, list[te.Tensor]]:
    """The result, of type ``kind``, of sums[n, channels / lanes, …, lane], and the stages between, the last first. Its
    last axes are the ``plane``: positions that follow each other in memory. The sums may have them as one axis."""
    before_plane = kind.ndim - len(plane)
    widths = plane if sums.ndim == kind.ndim + 1 else [math.prod(plane)]

    def load(*index: Axis) -> Expr:
        *before, square, at = map(as_index, index)
        position = square * lanes + at // lanes
        value = sums[(*before, *unravel_index(position, widths), at % lanes)]
        known = math.prod(plane) % lanes == 0
        return value if known else te.if_then_else(position < math.prod(plane), value, te.const(0, sums.dtype))

    squares = math.ceil(math.prod(plane) / lanes)
    rows = te.compute((*sums.shape[:before_plane], squares, lanes * lanes), load, name="conv.rows")
    stages = transposed(rows, lanes, "conv")

    def unfold(n: Axis, k: Axis, *index: Axis) -> Expr:
        before, positions = index[: -len(plane)], index[-len(plane) :]
        position = ravel_index([as_index(i) for i in positions], plane)
        return stages[0][(n, k // lanes, *before, position // lanes, k % lanes * lanes + position % lanes)]

    return te.compute(kind.shape, unfold, name="conv"), stages


def split_places(stage: StageView, plane: Sequence[LoopView], chunk: int, lanes: int) -> tuple[LoopView, ...]:
    """The loops over chunks of positions, squares in one, and positions in one of these."""
    position = stage.fuse(*plane) if len(plane) > 1 else plane[0]
    outer, position = stage.split(position, factor=chunk)
    return (outer, *stage.split(position, factor=lanes))


def schedule_squares(
    schedule: Schedule, squares: Sequence[te.Tensor], stage: StageView, loops: Sequence[LoopView], lanes: int
) -> None:
    """The innermost ``loops`` of a result: over squares, channels, and positions."""
    square, channel, lane = loops
    stage.unroll(channel)
    stage.vectorize(lane)
    schedule_transposed(schedule, squares, stage, square, lanes)
