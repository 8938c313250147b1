"""Products of 8-bit integers, four terms at a time: operands as words of four bytes, for ``te.dot4``.

``dot4`` multiplies unsigned bytes with signed ones. Where both operands are of one sign, the right one is shifted to
the other: with y = z - 128 for signed y (z + 128 for unsigned y), Σ x·y = Σ x·z - 128·Σ x (or + 128·Σ x), and z is y
with the highest bit of each byte turned over. So all is exact, modulo 2³² as int32 is.
"""

from __future__ import annotations

from collections.abc import Callable

from ... import te
from ...base.dataclass import dataclass
from ...base.dtype import DType
from ...ir.constants import const_int
from ...ir.expr import Expr
from ...ir.makers import as_index
from ...te.tensor import Tensor

BYTES = 4
_HIGHEST_BITS = -0x7F7F7F80  # 0x80808080, as an int32


def count_words(terms: int) -> int:
    """How many words hold so many bytes; the last one is filled up with zeros."""
    return -(-terms // BYTES)


def word(value: Callable[[Expr], Expr], at: Expr, terms: int) -> Expr:
    """Word number ``at`` of a sequence of ``terms`` bytes, of which ``value`` gives each."""
    result: Expr = te.const(0, "int32")
    for byte in range(BYTES):
        term = as_index(at) * BYTES + byte
        bits = te.cast(te.cast(value(term), "uint8"), "int32")
        if terms % BYTES > 0:
            bits = te.if_then_else(term < terms, bits, te.const(0, "int32"))
        result = result | bits << 8 * byte
    return result


def words_of_rows(x: Tensor, name: str) -> Tensor:
    """The words along the last axis."""
    *outer, terms = x.shape
    count = const_int(terms) or 0
    return te.compute(
        (*outer, count_words(count)), lambda *i: word(lambda k: x[(*i[:-1], k)], as_index(i[-1]), count), name=name
    )


@dataclass(frozen=True, slots=True)
class ByteProduct:
    """How words of the left operand, of dtype ``left``, are multiplied with those of the right one."""

    left: DType
    right: DType

    @property
    def shifted(self) -> bool:
        """Whether the right operand is shifted, so that ``correction`` must be added."""
        return self.left.is_signed == self.right.is_signed

    def right_word(self, bits: Expr) -> Expr:
        """A word of the right operand, as ``multiply`` takes it."""
        return bits ^ _HIGHEST_BITS if self.shifted else bits

    def multiply(self, left: Expr, right: Expr) -> Expr:
        """The sum of the four products of a word's bytes, in int32. ``te.dot4`` takes the unsigned factor first, so
        that a signed left one changes places with the right one."""
        return te.dot4(right, left) if self.left.is_signed else te.dot4(left, right)

    def correction(self, left_sum: Expr) -> Expr:
        """What the shift takes away, from the sum of the left operand's terms."""
        return left_sum * (-128 if self.left.is_signed else 128)
