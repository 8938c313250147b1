"""The size of a register tile as two decisions of a schedule, ``rows`` and ``vectors``."""

from __future__ import annotations

import math
from dataclasses import replace

from ..base.target import Target
from ..lowering.schedule import Schedule
from .register_tile import RegisterTile


def decide_tile(
    schedule: Schedule,
    tile: RegisterTile,
    rows: int,
    columns: int,
    target: Target,
    keeps_width: bool = False,
    rows_divide: int = 0,
    columns_divide: int = 0,
) -> RegisterTile:
    """A tile for rows × columns of sums: ``tile`` by default, else one whose sums fit the registers, beside the vectors
    of a step and a factor.

    ``keeps_width``: what is read in vectors is packed as wide as the tile already. The height of a tile has to divide
    ``rows_divide``, and its width in elements ``columns_divide``, as numbers of a group do; 0 leaves all.
    """
    registers = target.vector_registers
    narrowest = tile.vectors if keeps_width else 1
    highest = min(rows, max(1, (registers - 1) // narrowest - 1))
    heights = {height for height in range(1, highest + 1) if rows_divide % height == 0}
    height = schedule.decide("rows", sorted({*heights, tile.rows}), tile.rows)
    if keeps_width:
        return replace(tile, rows=height, vectors=schedule.decide("vectors", [tile.vectors], tile.vectors))
    widest = min(math.ceil(columns / tile.lanes), (registers - 1) // (height + 1))
    widest = max(widest, tile.vectors) if height <= tile.rows else widest
    widths = [width for width in range(1, widest + 1) if columns_divide % (width * tile.lanes) == 0]
    vectors = schedule.decide("vectors", widths, max(width for width in widths if width <= tile.vectors))
    return replace(tile, rows=height, vectors=vectors)
