"""Products of bytes by a constant in panels of words, summed in tiles: the registers that hold small matrices."""

from __future__ import annotations

import math
from typing import Any

from ....base.dataclass import dataclass
from ....base.dtype import INT32, dtype
from ....base.target import Target
from ....graph.types import Type
from ....ir.constants import const_int
from ....ir.tiles import TILE_EXTENT, TileBlock
from ....lowering.schedule import Schedule
from ....schedules.around import schedule_around_sums
from ....schedules.blocks import MANY_TASKS, near_divisor
from ....schedules.machine import CORE
from ....schedules.register_tile import RegisterTile
from ....schedules.tiles import sum_in_tiles, tile_block, tile_cycles
from ....te.tensor import Tensors
from ...definition.cost import multiplied
from ...definition.strategy import OpStrategy
from ..byte_words import BYTES, ByteProduct, count_words
from .blocking import Blocking, tile_result
from .int8 import EXACT, WordStages, sum_words
from .joined_rows import computing
from .open_rows import BY_TILE, LOWER
from .panels import MatrixProduct

MANY = BY_TILE + len(LOWER) + 1
"""The priority for an open number of rows, of which there are enough for tiles: before those of few rows."""
FEWEST_WORDS = 4
"""Steps of fewer words leave most of a tile empty."""


@dataclass(frozen=True, slots=True)
class TiledBytes:
    """A product whose sums are in tiles, ``block`` by block; panels are some blocks wide.

    Rows that fill blocks are read where they lie, others are copied to rows that do.
    """

    product: MatrixProduct
    block: TileBlock
    bytes: ByteProduct

    @property
    def is_ragged(self) -> bool:
        """Whether the last block may have rows that are not there."""
        rows = const_int(self.product.left.shape[-2])
        return rows is None or rows % self.block.rows > 0

    def compute(self, attrs: Any, inputs: Tensors, result: Type) -> WordStages:
        """The result, which is sums of words in int32."""
        a, panels = inputs
        return sum_words(a, panels, "panels", self.bytes, result)

    def schedule(self, attrs: Any, anchor: WordStages, outputs: Tensors, target: Target) -> Schedule:
        """Blocks of rows by panels, these in chunks that stay in the second cache if the left factor does not."""
        left, lanes = anchor.left, target.lanes(INT32)
        schedule, core, main = schedule_around_sums(anchor.result, anchor.sums, outputs, [left, anchor.right], target)
        if self.is_ragged:
            copy = schedule[schedule.cache_read(left, "local", [core], pad=0)]
            *outer, row, word = copy.loops
            _, lane = copy.split(word, factor=lanes)
            copy.vectorize(lane)
            copy.parallel(copy.fuse(*outer, row))
        schedule[left].compute_inline()
        stage, tile = schedule[main], RegisterTile(self.block.rows, self.block.columns // lanes, lanes)
        _, at = tile_result(stage, main.ndim - core.ndim, Blocking(tile, self._chunk(target), copies_rows=False), False)
        kind = INT32 if self.is_ragged else self.product.left.dtype
        ragged = [*([-2] if self.is_ragged else []), *([-1] if self.product.columns % self.block.columns else [])]
        sum_in_tiles(schedule, core, self.block, kind, self.bytes.left.is_signed, main, at, ragged)
        return schedule

    def _chunk(self, target: Target) -> int:
        """How many blocks of columns are a chunk."""
        panels = math.ceil(self.product.columns / self.block.columns)
        if self.product.rows * self.product.reduction_extent <= target.l2_bytes // 2:
            return 1
        most = target.l2_bytes // 2 // (self.product.reduction_extent * self.block.columns)
        return near_divisor(panels, max(1, min(most, panels // MANY_TASKS)))


def add_tiles(strategy: OpStrategy, product: MatrixProduct, weights: str, width: int, target: Target) -> None:
    """Offer it for bytes of which words are whole, and of which one factor is signed, by a constant in panels of a
    ``width``."""
    bytes_, words = ByteProduct(product.left.dtype, dtype(weights)), count_words(product.reduction_extent)
    if not target.has_tiles or bytes_.shifted or product.reduction_extent % BYTES:
        return
    block = tile_block(const_int(product.left.shape[-2]), width, words)
    if not block.exists or block.words < min(words, FEWEST_WORDS):
        return
    tiled = TiledBytes(product, block, bytes_)
    across = math.ceil(product.columns / block.columns)
    row_in_tiles = tile_cycles(block, across, words) / block.rows
    gained = multiplied(product.columns * words, INT32, target, 1.0) - row_in_tiles
    if gained <= 0:
        return
    cost = CORE.tiles.begun + product.batch * product.rows * row_in_tiles + product.moved()
    rows = product.left.shape[-2]
    is_open = const_int(rows) is None
    fewest = max(TILE_EXTENT, math.ceil(CORE.tiles.begun / gained))
    with strategy.specialized(rows >= fewest if is_open else True):
        strategy.add_implementation(
            computing(product, tiled.compute),
            tiled.schedule,
            "packed_byte_matmul.tiles",
            MANY if is_open else BY_TILE,
            cost=cost,
            sums=EXACT,
        )
