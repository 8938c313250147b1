"""Sizes of register tiles: blocks of sums that stay in vector registers while a reduction runs."""

from __future__ import annotations

import math

from ..base.aligned import PAGE_BYTES
from ..base.dataclass import dataclass
from ..base.dtype import DType
from ..base.target import Target
from .machine import CORE


@dataclass(frozen=True, slots=True)
class RegisterTile:
    """Sums that are kept in registers: ``rows`` times ``vectors`` of ``lanes``."""

    rows: int
    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        """The width of the tile, in elements."""
        return self.vectors * self.lanes


def step_cycles(rows: int, vectors: int, rate: int = CORE.full_rate) -> float:
    """Cycles of one step of a tile's sums, by a model.

    A step loads each vector, broadcasts a factor for each row (two loads a cycle), and multiplies all pairs (``rate`` a
    cycle); vectors come from the second cache, one in a cycle and a half; a sum waits four cycles for the last one.
    """
    loads = (rows + vectors) / CORE.loads
    return max(rows * vectors / rate, loads, CORE.second_cache_cycles * vectors, CORE.sum_cycles)


def register_tile(
    rows: int,
    columns: int,
    target: Target,
    dtype: DType,
    row_stride: int = 1,
    divides: bool = False,
    vectors: int | None = None,
    streaming: float = 0.0,
    steps: int = 1,
    outputs: int = 1,
) -> RegisterTile:
    """The tile that covers rows × columns of sums in the least time, by a model of one step of the sum.

    ``divides``: the tile's rows divide ``rows``. ``row_stride``, in elements, is how far apart the rows' factors are:
    rows at the same place of a page evict each other from the first cache. ``vectors`` is the width, if that is given;
    where the registers do not hold a tile so wide, it has one row.
    ``streaming`` are cycles that each vector costs beside, which make higher tiles better. ``steps`` are unrolled, and
    LLVM loads the vectors of all of them first. ``outputs`` are summed at once, as a value and its position are.
    """
    lanes, registers = target.lanes(dtype), target.vector_registers
    pages = PAGE_BYTES // math.gcd(row_stride * dtype.storage_bytes, PAGE_BYTES)
    best: tuple[float, int, RegisterTile] | None = None
    for width in range(1, registers // 2) if vectors is None else [vectors]:
        for height in range(1, min(rows, registers) + 1):
            if width * (outputs * height + steps) + 1 > registers or (divides and rows % height) or height > 4 * pages:
                continue
            tile = RegisterTile(height, width, lanes)
            count = math.ceil(rows / height) * math.ceil(columns / tile.columns)
            step = step_cycles(height, width) + streaming * width
            if best is None or (count * step, -height) < best[:2]:
                best = count * step, -height, tile
    return RegisterTile(1, vectors or 1, lanes) if best is None else best[2]
