"""Lower tiles for products of which only a run knows how many rows they have.

A tile of as many rows as registers hold sums for takes as long for one row as for all of them: it reads the last row
again where there are no more. A run of few rows is served by a kernel of a lower tile, which takes more panels at once,
since a sum waits for the last one that was added to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

from .... import te
from ....base.target import Target
from ....ir.constants import const_int
from ....schedules.blocks import near_divisor
from ....schedules.register_tile import RegisterTile
from ...definition.strategy import OpStrategy
from .blocking import STEPS_UNROLLED
from .panels import MatrixProduct

Offer: TypeAlias = Callable[[str, int, RegisterTile], None]
"""Offers an implementation by its name, its priority and its tile."""
BY_TILE = 15
"""The priority of a tile for any number of rows; those of lower tiles follow, the lowest one's last."""
LOWER = ("one_row", "few_rows", "some_rows")
HALVED = 2
"""A tile half as high as that of many rows, and one half as high as that, serve fewer."""
LEAST = 3
"""Rows of a quarter that is worth a kernel beside those of one row and of a half."""


def offer_by_rows(
    strategy: OpStrategy, product: MatrixProduct, name: str, tile: RegisterTile, target: Target, offer: Offer
) -> None:
    """Offer an implementation by a tile as wide as a panel, and where the number of rows is open, others by lower
    tiles for few of them, which sum in the same order."""
    offer(name, BY_TILE, tile)
    rows = product.left.shape[-2]
    for number, lower in enumerate(lower_tiles(product, tile, target)):
        if HALVED * lower.rows >= tile.rows:  # three of them cost less than two of the others
            few = [te.any(rows <= lower.rows, rows > tile.rows), rows <= (HALVED + 1) * lower.rows]
        else:
            few = [rows <= lower.rows]
        with strategy.specialized(*few):
            offer(f"{name}_{LOWER[number]}", BY_TILE + len(LOWER) - number, lower)


def lower_tiles(product: MatrixProduct, tile: RegisterTile, target: Target) -> Iterator[RegisterTile]:
    """The tiles for few rows beside ``tile``, some of its panels wide, the lowest first; none where the number of rows
    is known."""
    if const_int(product.left.shape[-2]) is not None:
        return
    panels = math.ceil(product.columns / tile.columns)
    half, quarter = (math.ceil(tile.rows / HALVED**times) for times in (1, 2))
    for height in sorted({1, half, quarter if quarter >= LEAST else 1} - {tile.rows}):
        most = (target.vector_registers - 1) // (height + STEPS_UNROLLED) // tile.vectors
        yield replace(tile, rows=height, vectors=near_divisor(panels, most) * tile.vectors)
