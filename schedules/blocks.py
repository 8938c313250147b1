"""Sizes of blocks: of what is computed together, or by one task."""

from __future__ import annotations

import math

from ..base.aligned import PAGE_BYTES
from ..base.dtype import DType

MANY_TASKS = 8
"""So many parallel tasks keep the threads of a small machine busy to the end."""
WAYS = 8
"""How many lines at the same place of a page the first cache holds."""


def near_divisor(extent: int, most: int) -> int:
    """A divisor up to a limit, or the limit if that is far larger: a last part of another size is code of its own."""
    most = max(1, min(extent, most))
    dividing = max(size for size in range(1, most + 1) if extent % size == 0)
    return dividing if 2 * dividing >= most else most


def evict_each_other(rows: int, length: int, kind: DType) -> bool:
    """Whether the first cache cannot hold a line of each of so many rows of such a length: it has a few ways for lines
    at the same place of a page."""
    places = PAGE_BYTES // math.gcd(length * kind.storage_bytes, PAGE_BYTES)
    return rows > WAYS * places
