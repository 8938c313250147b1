"""Lower tiles for products of which only a run knows how many rows they have.

A tile of as many rows as registers hold sums for computes all of them, in the last tile also those that are not there.
A lower one leaves them out, each by a test, and takes more panels at once where sums of few rows would wait for each
other: a kernel of it serves few rows, and numbers of rows of which the high tile would compute too many.
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
from ....schedules.register_tile import RegisterTile, step_cycles
from ...definition.strategy import OpStrategy
from .blocking import STREAMING
from .panels import MatrixProduct

Offer: TypeAlias = Callable[[str, int, RegisterTile], None]
"""Offers an implementation by its name, its priority and its tile."""
BY_TILE = 15
"""The priority of a tile for any number of rows; those of lower tiles follow, the lowest one's last."""
MOST_TILES = 8
"""Of more rows than so many high tiles have, the last one is too small a part to matter."""
PARTS = 64
"""What a row costs in a lower tile, by that in the high one, is said in so many parts."""
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
        if few is lower[-1]:
            parts = math.ceil(PARTS * _cycles_of_row(few, target) / _cycles_of_row(tile, target))
            lower_cost = (rows + 1) * max(parts, PARTS + 1)  # the last tile is seldom full: its sums wait
            high_cost = (rows + (tile.rows - 1)) // tile.rows * (tile.rows * PARTS)
            served = [te.any(rows <= few.rows, lower_cost <= high_cost), rows <= MOST_TILES * tile.rows]
        with strategy.specialized(*served):
            offer(f"{name}_{LOWER[number]}", BY_TILE + len(LOWER) - number, few)


def _cycles_of_row(tile: RegisterTile, target: Target) -> float:
    """Cycles of a step of one row of a full tile, for each vector."""
    step = step_cycles(tile.rows, tile.vectors, target.fma_per_cycle) + STREAMING * tile.vectors
    return step / (tile.rows * tile.vectors)


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
