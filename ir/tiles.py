"""Tiles: registers that hold a small matrix each, and the instructions that multiply such matrices.

x86-64 has them as AMX: 8 registers of at most 16 rows of 64 bytes, which is 16 words of four bytes. ``tdpbusd`` adds to
a tile of 32-bit sums the products of a tile of words of bytes, by rows, with one of words, by columns: 16 × 16 × 64
products in as many cycles as the left tile has rows (Intel, "Intel 64 and IA-32 Architectures Optimization Reference
Manual", chapter 20).

A ``TileBlock`` is a block of sums of one or several tiles, with the tiles of both factors that are added to it in one
step. ``lowering/tile_intrinsics.py`` makes tensor intrinsics of it, ``codegen/tiles.py`` instructions.
"""

from __future__ import annotations

from typing import Literal

from ..base.dataclass import dataclass

TILE_EXTENT = 16
"""Most rows, and most words in a row, of a tile."""
WORD_BYTES = 4
TILES = 8
"""How many tiles there are."""

TileAction = Literal["zero", "dot4", "store"]
"""Set a block to zeros; add to it the products of a step; store it."""


@dataclass(frozen=True, slots=True)
class TileBlock:
    """Sums of ``rows`` by ``columns``, to which a step adds products of ``words`` words of four bytes."""

    rows: int
    columns: int
    words: int

    @property
    def down(self) -> int:
        """How many tiles stand below each other."""
        return -(-self.rows // TILE_EXTENT)

    @property
    def across(self) -> int:
        """How many tiles stand side by side."""
        return -(-self.columns // TILE_EXTENT)

    @property
    def tile_rows(self) -> int:
        """The rows of a tile of sums."""
        return self.rows // self.down

    @property
    def tile_columns(self) -> int:
        """The columns of a tile of sums."""
        return self.columns // self.across

    @property
    def exists(self) -> bool:
        """Whether there are registers for it: equal tiles of the sums and of the factors of a step."""
        extents = (self.rows, self.columns, self.words)
        equal = min(extents) > 0 and self.rows % self.down == 0 and self.columns % self.across == 0
        return equal and self.words <= TILE_EXTENT and self.down * self.across + self.down + self.across <= TILES

    def __str__(self) -> str:
        return f"{self.rows}x{self.columns}x{self.words}"


@dataclass(frozen=True, slots=True)
class TileCode:
    """What is done to a block. The bytes of the left factor are unsigned and those of the right one signed, or, if
    ``signed_left``, the other way round."""

    action: TileAction
    block: TileBlock
    signed_left: bool = False
