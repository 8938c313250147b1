"""Writes sums whose channels are in vectors to a result in N, C, …: squares of positions and channels are transposed in
registers.

Some rows of the sums wait in the second cache, and are written channel by channel: long pieces of few channels at a
time are what memory is quick with. Here is how the result is scheduled; ``turn_squares`` copies the sums.
"""

from __future__ import annotations

from collections.abc import Sequence

from .... import te
from ....lowering.schedule import LoopView, Schedule, StageView
from ....schedules.register_transpose import schedule_transposed

TRANSPOSED_CYCLES = 0.4
"""To transpose an element: of 16 lanes, four shuffles, a load and a store for sixteen."""


def split_places(stage: StageView, plane: Sequence[LoopView], chunk: int, lanes: int) -> tuple[LoopView, ...]:
    """The loops over chunks of positions, squares in one, and positions in one of these."""
    position = stage.fuse(*plane) if len(plane) > 1 else plane[0]
    outer, position = stage.split(position, factor=chunk)
    return (outer, *stage.split(position, factor=lanes))


def schedule_squares(
    schedule: Schedule, squares: Sequence[te.Tensor], stage: StageView, loops: Sequence[LoopView], lanes: int
) -> None:
    """Transpose squares in the innermost ``loops`` of a result: over squares, channels, and positions."""
    square, channel, lane = loops
    stage.unroll(channel)
    stage.vectorize(lane)
    schedule_transposed(schedule, squares, stage, square, lanes)
