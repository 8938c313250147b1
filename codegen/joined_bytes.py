"""Words that are joined of four bytes that lie side by side: vectors of them are loaded as they lie.

A word of four bytes of a tensor is b[4w] | b[4w + 1] << 8 | b[4w + 2] << 16 | b[4w + 3] << 24. LLVM sees that one such
word is in memory, but of a vector of them it would load all first bytes, all second ones, and so on, and join these.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..base.target import Target
from ..ir.buffer import Buffer
from ..ir.constants import const_int
from ..ir.expr import Binary, Broadcast, Cast, Expr, Load
from ..ir.simplify import simplify
from .facts import flat_index, lane_offsets

BYTES = 4
_LITTLE_ENDIAN = frozenset({"x86_64", "i686", "aarch64", "arm64", "riscv64", "wasm32"})


@dataclass(frozen=True, slots=True, eq=False)
class JoinedBytes:
    """A vector of so many words, ``lanes``, of the bytes of a buffer from element ``base`` + ``start`` on. ``mask``
    switches lanes off, if it is there."""

    buffer: Buffer
    base: Expr
    start: int
    lanes: int
    mask: Expr | None


def joined_bytes(node: Binary, target: Target) -> JoinedBytes | None:
    """The words that an expression joins, if it does nothing else, and they lie side by side."""
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
    return _side_by_side(loads, lanes) if len(loads) == BYTES else None


def _shifted_byte(term: Expr) -> tuple[int, Load] | None:
    """The place of a byte in a word, and what loads it."""
    place = 0
    if isinstance(term, Binary) and term.op == "<<":
        bits = const_int(term.b.value if isinstance(term.b, Broadcast) else term.b)
        if bits not in (8, 16, 24):
            return None
        place, term = bits // 8, term.a
    byte = term.value if isinstance(term, Cast) else term
    if isinstance(byte, Cast) and byte.dtype.is_data_int and byte.dtype.storage_bits == 8:
        byte = byte.value  # of a signed byte, its bits
    elif byte.dtype.is_signed:
        return None
    if not isinstance(byte, Load) or byte.buffer.dtype.lanes > 1:
        return None
    return (place, byte) if byte.dtype.is_data_int and byte.dtype.storage_bits == 8 else None


def _side_by_side(loads: dict[int, Load], lanes: int) -> JoinedBytes | None:
    """The words, if each byte is read one element behind the one before, and four behind that of the word before."""
    buffer, mask, first = loads[0].buffer, loads[0].mask, _lanes_of(loads[0])
    for place, load in loads.items():
        here = _lanes_of(load) if load.buffer is buffer and load.mask is mask else None
        if here is None or first is None:
            return None
        apart = const_int(simplify(here[0] - first[0]))
        if apart is None or [apart + at for at in here[1]] != [first[1][0] + place + BYTES * k for k in range(lanes)]:
            return None
    return None if first is None else JoinedBytes(buffer, first[0], first[1][0], lanes, mask)


def _lanes_of(load: Load) -> tuple[Expr, tuple[int, ...]] | None:
    return lane_offsets(flat_index(load.buffer, load.indices))
