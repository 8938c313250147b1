"""Sums of products of bytes in tiles, the registers that hold small matrices (``ir/tiles.py``).

    for a block of what follows the sums:
        the block of sums in tiles := 0
        for some words of the sum:
            add their products                     one tensor intrinsic
        store the block                            another one
        what follows the sums, from the first cache

The stage that sums is written twice: from tiles to a block of memory, and from there to whoever reads the sums.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from ..base.dtype import DType
from ..ir.tiles import TILE_EXTENT, TileBlock
from ..lowering.schedule import LoopView, Schedule
from ..lowering.tile_intrinsics import dot4_tiles, store_tiles
from ..te.tensor import Tensor
from .blocks import largest_divisor
from .machine import CORE

SQUARE = 2 * TILE_EXTENT
"""The rows and columns of a block of two by two tiles, which each tile of a factor serves twice."""


def tile_block(rows: int | None, columns: int, words: int) -> TileBlock:
    """The block of sums for so many rows, None for an open number, of which ``columns`` are multiples of a block's.

    Blocks are even: 197 rows are 7 blocks of 30, of two tiles of 15 rows each, and not 6 of 32 and one of 5.
    """
    across = SQUARE if columns % SQUARE == 0 else math.gcd(columns, TILE_EXTENT)
    high = SQUARE
    if rows is not None:
        high = math.ceil(rows / math.ceil(rows / SQUARE))
        high += high % 2 if high > TILE_EXTENT else 0
    return TileBlock(high, across, largest_divisor(words, TILE_EXTENT))


def tile_cycles(block: TileBlock, blocks: int, words: int) -> float:
    """What it takes to sum so many words in so many blocks, and to store them."""
    tiles = block.down * block.across
    steps = math.ceil(words / block.words)
    step = max(CORE.tiles.row * tiles * block.tile_rows, CORE.tiles.loaded * (block.down + block.across))
    return blocks * (steps * step + CORE.tiles.stored * tiles)


def sum_in_tiles(
    schedule: Schedule,
    core: Tensor,
    block: TileBlock,
    factor: DType,
    signed: bool,
    reader: Tensor,
    at: LoopView,
    ragged: Collection[int] = (),
    inside: bool = False,
) -> None:
    """Sum ``core[…, row, column]`` in tiles, where ``reader`` needs a block of sums at a loop, or, with ``inside``, a
    block of rows, of which each block of columns is summed by itself.

    The first reduction of the core is over words, of which a step takes some. ``factor`` is the dtype of the left
    factor's memory, whose bytes may be ``signed``. ``ragged`` are those of the axes -2 and -1, rows and columns, of
    which elements that are not there are summed, too.
    """
    held = schedule.cache_write(core, "tile")
    stored, stage = schedule[core], schedule[held]
    stored.compute_at(schedule[reader], at)
    stage.compute_at(schedule[reader], at)
    for each in (stored, stage):
        for axis, extent in ((-2, block.rows), (-1, block.columns)):
            if axis in ragged:
                each.round_up(each.loops[core.ndim + axis], factor=extent)
    *outer, row, column = stored.loops
    if inside:
        tile, column = stored.split(column, factor=block.columns)
        stored.reorder(*outer, tile, row, column)
        stage.compute_at(stored, tile)
    stored.tensorize(row, store_tiles(block))
    *outer, row, column = stage.loops[: core.ndim]
    words, *others = stage.loops[core.ndim :]
    step, word = stage.split(words, factor=block.words)
    stage.reorder(*outer, *others, step, row, column, word)
    stage.tensorize(row, dot4_tiles(block, str(factor), signed))
