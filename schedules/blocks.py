"""Sizes of blocks: of what is computed together, or by one task."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ..base.aligned import PAGE_BYTES
from ..base.dtype import DType
from ..ir.constants import const_int
from ..ir.expr import Expr
from ..ir.open_extents import IN_MEMORY

MANY_TASKS = 8
"""So many parallel tasks keep the threads of a small machine busy to the end. An open extent counts as so many."""
WAYS = 8
"""How many lines at the same place of a page the first cache holds."""


def largest_divisor(extent: int | None, most: int) -> int:
    """The largest divisor, up to a limit of at least 1, of an extent; 1 if that is open, or 0."""
    return next(size for size in range(most, 0, -1) if (extent or 1) % size == 0)


def near_divisor(extent: int, most: int) -> int:
    """A divisor up to a limit, or the limit if that is far larger: a last part of another size is code of its own."""
    most = max(1, min(extent, most))
    dividing = largest_divisor(extent, most)
    return dividing if 2 * dividing >= most else most


def divisors(extent: int) -> list[int]:
    """All divisors of an extent of at least 1, in order."""
    small = [size for size in range(1, math.isqrt(extent) + 1) if extent % size == 0]
    return sorted({*small, *(extent // size for size in small)})


def even_sizes(extent: int, parts: int) -> Iterator[int]:
    """The sizes of the largest part, from large to small, where an extent falls into so many equal parts, the last of
    which may be smaller, or into more."""
    while parts <= extent:
        size = math.ceil(extent / parts)
        yield size
        parts = math.ceil(extent / (size - 1)) if size > 1 else extent + 1


def part_sizes(extent: int, default: int) -> list[int]:
    """Sizes of parts of an extent that are worth a try: its divisors, the powers of two, and the default."""
    powers = (1 << power for power in range(extent.bit_length()))
    return sorted({default, *powers, *(divisors(extent) if extent > 0 else ())})


def bytes_of(shape: Sequence[Expr], kind: DType) -> int:
    """The memory of a shape, to be compared with that of a cache; extents that are open are taken to be few."""
    return math.prod(const_int(extent) or IN_MEMORY for extent in shape) * kind.storage_bytes


def evict_each_other(rows: int, length: int, kind: DType) -> bool:
    """Whether the first cache cannot hold a line of each of so many rows of such a length: it has a few ways in
    each set, which is that of all lines at one offset in their pages."""
    sets = PAGE_BYTES // math.gcd(length * kind.storage_bytes, PAGE_BYTES)
    return rows > WAYS * sets
