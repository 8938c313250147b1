"""Vectors along the rows of a copy."""

from __future__ import annotations

import math

from ..ir.constants import const_int
from ..lowering.schedule import StageView

VECTORS_OF_ROW = 16
"""A row of at most so many vectors is written one by one."""


def vectorize_row(stage: StageView, lanes: int) -> None:
    """Vectors along the rows of a padded copy: a few one by one, whose lanes that are padding are then known
    beforehand. To compare indices takes longer than to copy."""
    vector, lane = stage.split(stage.loops[-1], factor=lanes)
    stage.vectorize(lane)
    if (const_int(stage.op.outputs[0].shape[-1]) or math.inf) <= VECTORS_OF_ROW * lanes:
        stage.unroll(vector)
