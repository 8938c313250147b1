"""Words that are joined of four bytes that lie near each other: vectors of them are loaded by whole vectors of bytes.

A word of four bytes of a tensor is b[4w] | b[4w + 1] << 8 | b[4w + 2] << 16 | b[4w + 3] << 24. LLVM sees that one such
word is in memory, but of a vector of them it would load all first bytes, all second ones, and so on, and join these.
Words that overlap or lie apart, such as those of a convolution's windows, are bytes that a shuffle brings together.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base.dataclass import dataclass
from ..base.target import Target
from ..ir.buffer import Buffer
from ..ir.constants import const_int
from ..ir.expr import Binary, Broadcast, Cast, Expr, Load
from ..ir.simplify import simplify
from .facts import flat_index, known_lanes, lane_offsets

BYTES = 4
LANE_BYTES, MOST_BYTES = 16, 64
"""What one shuffle moves bytes in on any processor, and at most across a vector."""
_LITTLE_ENDIAN = frozenset({"x86_64", "i686", "aarch64", "arm64", "riscv64", "wasm32"})


@dataclass(frozen=True, slots=True, eq=False)
class JoinedBytes:
    """A vector of words of the bytes of a buffer at element ``base`` + ``offsets``, four for a word; None stands for a
    byte that is 0. ``mask`` switches lanes off, if it is there."""

    buffer: Buffer
    base: Expr
    offsets: tuple[int | None, ...]
    mask: Expr | None

    @property
    def lanes(self) -> int:
        """How many words there are."""
        return len(self.offsets) // BYTES

    @property
    def are_words_of_memory(self) -> bool:
        """Whether all bytes lie side by side."""
        start = self.offsets[0]
        return start is not None and self.offsets == tuple(range(start, start + len(self.offsets)))

    def seen(self) -> JoinedBytes | None:
        """The words without their mask, with bytes that are 0 where it hides them, if it is known which ones it
        hides, and it does not hide all."""
        shown = None if self.mask is None else known_lanes(self.mask)
        if shown is None or not any(shown):
            return self if self.mask is None else None
        offsets = tuple(at if shown[k // BYTES] else None for k, at in enumerate(self.offsets))
        return JoinedBytes(self.buffer, self.base, offsets, None)

    def pieces(self, target: Target) -> list[tuple[int | None, ...]] | None:
        """The offsets in parts of which a shuffle gives each: all of them, where one instruction moves bytes across a
        vector, else those of 128 bits. None where some part lies too far apart for that."""
        across = target.has("avx512vbmi")
        size, reach = (len(self.offsets), 2 * MOST_BYTES) if across else (LANE_BYTES, LANE_BYTES)
        if not target.has("ssse3") or len(self.offsets) % LANE_BYTES:
            return None
        parts = [self.offsets[at : at + size] for at in range(0, len(self.offsets), size)]
        return parts if all(_span(part) <= reach for part in parts) else None


def _span(offsets: Sequence[int | None]) -> int:
    """How many bytes there are from the first to the last one."""
    known = [at for at in offsets if at is not None]
    return max(known) - min(known) + 1 if known else 0


def joined_bytes(node: Binary, target: Target) -> JoinedBytes | None:
    """The words that an expression joins, if it does nothing else, and a few vectors of bytes have them."""
    lanes = node.dtype.lanes
    if node.op != "|" or lanes == 1 or node.dtype.storage_bits != 8 * BYTES or target.arch not in _LITTLE_ENDIAN:
        return None
    loads: dict[int, Load] = {}
    rest: list[Expr] = [node]
    while rest:
        term = rest.pop()
        if isinstance(term, Binary) and term.op == "|":
            rest += (term.a, term.b)
            continue
        found = _shifted_byte(term)
        if found is None or found[0] in loads:
            return None
        loads[found[0]] = found[1]
    words = _of_one_base(loads, lanes)
    if words is None or words.are_words_of_memory:
        return words
    seen = words.seen()
    return seen if seen is not None and seen.pieces(target) is not None else None


def _shifted_byte(term: Expr) -> tuple[int, Load] | None:
    """The position of a byte in a word, and what loads it."""
    position = 0
    if isinstance(term, Binary) and term.op == "<<":
        bits = const_int(term.b.value if isinstance(term.b, Broadcast) else term.b)
        if bits not in (8, 16, 24):
            return None
        position, term = bits // 8, term.a
    byte = term.value if isinstance(term, Cast) else term
    if isinstance(byte, Cast) and byte.dtype.is_data_int and byte.dtype.storage_bits == 8:
        byte = byte.value  # of a signed byte, its bits
    elif byte.dtype.is_signed:
        return None
    if not isinstance(byte, Load) or byte.buffer.dtype.lanes > 1:
        return None
    return (position, byte) if byte.dtype.is_data_int and byte.dtype.storage_bits == 8 else None


def _of_one_base(loads: dict[int, Load], lanes: int) -> JoinedBytes | None:
    """The words, if all bytes are of one buffer, behind one mask, and at known distances from each other."""
    one = next(iter(loads.values()))
    first = _lanes_of(one)
    if first is None:
        return None
    offsets: list[int | None] = [None] * (BYTES * lanes)
    for position, load in loads.items():
        here = _lanes_of(load) if load.buffer is one.buffer and load.mask is one.mask else None
        apart = None if here is None else const_int(simplify(here[0] - first[0]))
        if here is None or apart is None:
            return None
        offsets[position::BYTES] = [apart + at for at in here[1]]
    return JoinedBytes(one.buffer, first[0], tuple(offsets), one.mask)


def _lanes_of(load: Load) -> tuple[Expr, tuple[int, ...]] | None:
    return lane_offsets(flat_index(load.buffer, load.indices))
