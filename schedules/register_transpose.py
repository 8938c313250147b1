"""Square tiles transposed in vector registers: for computes that read along one axis and write along another.

A tile has as many rows and columns as a vector has lanes, and is the last axis of a tensor, row by row. Bit by bit, the
number of an element in a tile is its row and its column; to transpose is to rotate these bits by half their number.
Each of the stages rotates them by one: it takes apart the even and the odd elements, one shuffle of two vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

from .. import te
from ..ir.expr import Expr
from ..ir.makers import as_index
from ..lowering.schedule import LoopView, Schedule, StageView


def transposed(rows: te.Tensor, lanes: int, name: str) -> list[te.Tensor]:
    """The stages from tiles to transposed tiles: the last first, ``rows`` themselves at the end."""
    stages = [rows]
    for bit in range(lanes.bit_length() - 1):
        stages.insert(0, _rotated(stages[0], lanes * lanes, f"{name}.bit{bit}"))
    return stages


def _rotated(tile: te.Tensor, size: int, name: str) -> te.Tensor:
    """The even elements of each tile, then the odd ones."""
    half = size // 2

    def element(*index: te.Axis) -> Expr:
        *place, at = map(as_index, index)
        return tile[(*place, at % half * 2 + at // half)]

    return te.compute(tile.shape, element, name=name)


def schedule_transposed(
    schedule: Schedule, stages: Sequence[te.Tensor], reader: StageView, at: LoopView, lanes: int
) -> None:
    """Compute the stages of one tile, as ``transposed`` gives them, for each turn of a reader's loop, in registers."""
    for tensor in stages:
        stage = schedule[tensor]
        stage.compute_at(reader, at)
        vector, lane = stage.split(stage.loops[-1], factor=lanes)
        stage.vectorize(lane)
        stage.unroll(vector)
