"""The arena: where each intermediate value of a model lies; values that never live together share memory.

Values are placed in order of decreasing size at the lowest offset that is free while they live (the "greedy by size"
rule of Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from ..base.aligned import ARENA_ALIGNMENT
from ..base.dataclass import dataclass

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The steps during which a value is needed: from the one that writes it to the last one that reads it, both
    counted; ``size`` is in bytes."""

    size: int
    first: int
    last: int

    def overlaps(self, other: Lifetime) -> bool:
        """Whether both values are needed during some step, so that they cannot share memory."""
        return self.first <= other.last and other.first <= self.last


def plan_memory(values: Mapping[V, Lifetime]) -> tuple[dict[V, int], int]:
    """The offset of each value in bytes, a multiple of 64, and the size of the arena."""
    placed: list[tuple[int, int, Lifetime]] = []
    offsets: dict[V, int] = {}
    order: Sequence[V] = sorted(
        values, key=lambda v: -values[v].size
    )  # a stable sort keeps ties in order of appearance
    for value in order:
        life = values[value]
        size = -(-max(life.size, 1) // ARENA_ALIGNMENT) * ARENA_ALIGNMENT
        offset = 0
        for start, end in sorted((start, end) for start, end, other in placed if other.overlaps(life)):
            if start - offset >= size:
                break
            offset = max(offset, end)
        offsets[value] = offset
        placed.append((offset, offset + size, life))
    return offsets, max((end for _, end, _ in placed), default=0)
