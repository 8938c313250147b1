"""The size of a register tile as two decisions of a schedule, ``rows`` and ``vectors``."""

from __future__ import annotations

import math
from dataclasses import replace

from ..base.target import Target
from ..lowering.schedule import Schedule
from .register_tile import RegisterTile


def decide_tile(
    schedule: Schedule, tile: RegisterTile, rows: int, columns: int, target: Target, keeps_width: bool = False
) -> RegisterTile:
    """A tile for rows × columns of sums: ``tile`` by default, else one whose sums fit the registers, beside the vectors
    of a step and a factor. ``keeps_width``: what is read in vectors is packed as wide as the tile already."""
    registers = target.vector_registers
    narrowest = tile.vectors if keeps_width else 1
    highest = min(rows, max(1, (registers - 1) // narrowest - 1))
    height = schedule.decide("rows", sorted({*range(1, highest + 1), tile.rows}), tile.rows)
    if keeps_width:
        return replace(tile, rows=height, vectors=schedule.decide("vectors", [tile.vectors], tile.vectors))
    widest = min(math.ceil(columns / tile.lanes), (registers - 1) // (height + 1))
    widest = max(widest, tile.vectors) if height <= tile.rows else widest
    vectors = schedule.decide("vectors", range(1, widest + 1), min(tile.vectors, widest))
    return replace(tile, rows=height, vectors=vectors)
