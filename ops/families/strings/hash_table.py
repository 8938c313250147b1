"""Hash tables of strings as constants: keys, and slots that say where each of them is found.

The hash is FNV-1a of 32 bits (Fowler, Noll, Vo), and slots are probed one after the other. At least half of them are
free, so that a search ends soon.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ....base.dataclass import dataclass
from ....base.spans import LENGTH_BITS, LENGTHS, pack_strings

OFFSET_BASIS, PRIME = 0x811C9DC5, 0x01000193
FREE = -1


@dataclass(frozen=True, slots=True, eq=False)
class StringTable:
    """``slots`` are numbers of keys by hash, int32, ``FREE`` where there is none; ``spans`` and ``utf8`` the keys."""

    slots: npt.NDArray[np.int32]
    spans: npt.NDArray[np.int64]
    utf8: npt.NDArray[np.uint8]


def string_table(keys: Sequence[str]) -> StringTable:
    """The table of some strings; of equal ones the first is found."""
    (spans,), utf8 = pack_strings([np.array([*keys], object)], lambda _: "keys")
    count = 2
    while count < 2 * len(keys):
        count *= 2
    slots = [FREE] * count
    seen: set[str] = set()
    for number, (key, found) in enumerate(zip(keys, _hashes(spans, utf8).tolist(), strict=True)):
        if key in seen:
            continue
        seen.add(key)
        slot = found % count
        while slots[slot] != FREE:
            slot = (slot + 1) % count
        slots[slot] = number
    return StringTable(np.array(slots, np.int32), spans, utf8)


def _hashes(spans: npt.NDArray[np.int64], utf8: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint32]:
    """The hashes of strings: of all their first bytes, then of their second ones."""
    begins, lengths = spans >> LENGTH_BITS, spans & LENGTHS
    hashes = np.full(len(spans), OFFSET_BASIS, np.uint32)
    for k in range(int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > k)
        hashes[longer] = (hashes[longer] ^ utf8[begins[longer] + k]) * np.uint32(PRIME)
    return hashes
