"""Masked loads of lanes that are near each other, but no neighbours: of the few vectors that span them, as shuffles.

A gather takes a load for each lane. Here an element is read where a lane that is on wants it, and no other is, so that
nothing is touched that the gather would leave alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..base.dataclass import dataclass
from .lane_compare import Lanes


@dataclass(frozen=True, slots=True)
class MaskedPiece:
    """``size`` adjacent elements from ``start`` on, and for each of them the lanes that want it."""

    start: int
    size: int
    wanted_by: tuple[tuple[int, ...], ...]

    @property
    def turns(self) -> Iterator[Lanes]:
        """The lanes that want each of the elements, one an element at a time."""
        for turn in range(max(map(len, self.wanted_by))):
            yield [by[turn] if turn < len(by) else None for by in self.wanted_by]


def pieces_of(offsets: Sequence[int]) -> Iterator[MaskedPiece]:
    """The vectors, of as many elements as there are lanes or fewer, which have the elements at these offsets."""
    begin, count = min(offsets), max(offsets) - min(offsets) + 1
    size = min(len(offsets), 1 << (count - 1).bit_length())
    for start in range(begin, begin + count, size):
        wanted_by = tuple(
            tuple(lane for lane, offset in enumerate(offsets) if offset == at) for at in range(start, start + size)
        )
        if any(wanted_by):
            yield MaskedPiece(start, size, wanted_by)
