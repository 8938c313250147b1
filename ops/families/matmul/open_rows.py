"""Lower tiles for products of which only a run knows how many rows they have.

A tile leaves out rows that are not there, each by a test. One of as many rows as registers hold sums for takes few
panels at once, and of few rows the sums wait for each other: so these are served by a kernel of a lower tile, which
takes more panels.
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
from ....schedules.machine import CORE
from ....schedules.register_tile import RegisterTile
from ...definition.strategy import OpStrategy
from .panels import MatrixProduct

Offer: TypeAlias = Callable[[str, int, RegisterTile], None]
"""Offers an implementation by its name, its priority and its tile."""
BY_TILE = 15
"""The priority of a tile for any number of rows; those of lower tiles follow, the lowest one's last."""
LOWER = ("one_row", "few_rows", "some_rows")


def offer_by_rows(
    strategy: OpStrategy, product: MatrixProduct, name: str, tile: RegisterTile, target: Target, offer: Offer
) -> None:
    """Offer an implementation by a tile as wide as a panel, and where the number of rows is open, others by lower
    tiles for few of them, which sum in the same order."""
    offer(name, BY_TILE, tile)
    rows = product.left.shape[-2]
    lower = list(lower_tiles(product, tile, target))
    for number, few in enumerate(lower):
        served = [rows <= few.rows]
        if few is lower[-1]:  # two or three of them may cost less than two of the others
            times = 3 if 3 * few.rows < 2 * tile.rows else 2
            served = [te.any(rows <= few.rows, rows > tile.rows), rows <= times * few.rows]
        with strategy.specialized(*served):
            offer(f"{name}_{LOWER[number]}", BY_TILE + len(LOWER) - number, few)


def lower_tiles(product: MatrixProduct, tile: RegisterTile, target: Target) -> Iterator[RegisterTile]:
    """The tiles for few rows beside ``tile``, some of its panels wide, the lowest first: for one row, and for the two
    greatest powers of two that are less than a tile has, as batches are. None where the number of rows is known."""
    if const_int(product.left.shape[-2]) is not None:
        return
    panels = math.ceil(product.columns / tile.columns)
    powers = [1 << power for power in range((tile.rows - 1).bit_length())]
    for height in dict.fromkeys((*powers[:1], *powers[-2:])):
        most = (target.vector_registers - 1) // (height + CORE.steps_unrolled) // tile.vectors
        yield replace(tile, rows=height, vectors=near_divisor(panels, most) * tile.vectors)
