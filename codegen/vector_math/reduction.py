"""What the function families share: rounding by a magic addend, powers of two, error-free sums and products.

The addend works on every target, costs no more than a rounding instruction, and yields the integer as well.
"""

from __future__ import annotations

from ...base.dataclass import dataclass
from ..lanes import Float, Int
from . import avx512

MANTISSA = {32: 23, 64: 52}
BIAS = {32: 127, 64: 1023}
ONE = {32: 0x3F800000, 64: 0x3FF0000000000000}

# ln 2 in two parts. The first has so few bits that its product with any exponent is exact, without fma too
# (W. J. Cody and W. Waite, "Software Manual for the Elementary Functions", 1980, ch. 6).
LN2_HI = {32: 0.693359375, 64: float.fromhex("0x1.62e42fefa3p-1")}
LN2_LO = {32: -2.1219444005469057e-4, 64: float.fromhex("0x1.3de6af278ece6p-42")}
LOG2_E = 1.4426950408889634


def magic(bits: int) -> float:
    """Floats from here to 2^(p-2) on either side are 1 apart, and their low bits count up as integers do."""
    return 1.5 * 2.0 ** MANTISSA[bits]


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number, as a float and as an integer."""

    value: Float
    integer: Int

    def __sub__(self, other: int) -> Whole:
        return Whole(self.value - float(other), self.integer - other)


def nearest(x: Float, factor: float = 1.0) -> Whole:
    """The integer nearest to ``x * factor``, or to a rounded one; it must be below 2^22 (2^51 for float64)."""
    addend = magic(x.bits)
    shifted = x + addend if factor == 1.0 else x.mul_add(factor, addend)
    return Whole(shifted - addend, shifted.as_int() - x.same(addend).as_int())


def small_to_float(n: Int) -> Float:
    """A signed integer below 2^22 as a float; there is no such conversion of 64-bit vectors before AVX-512."""
    base = n.lanes.float(n.bits, magic(n.bits))
    return (n + base.as_int()).as_float() - base


def power_of_two(n: Int) -> Float:
    """2^n, which must be a normal number."""
    return ((n + BIAS[n.bits]) << MANTISSA[n.bits]).as_float()


def scale(y: Float, n: Whole) -> Float:
    """``y * 2^n``, overflow and gradual underflow included, for ``|n|`` up to twice the exponent range."""
    if avx512.available(y):
        return avx512.scale(y, n.value)
    half = ((n.integer + 4096) >> 1) - 2048  # a logical shift: 64-bit vectors have no arithmetic one before AVX-512
    return y * power_of_two(half) * power_of_two(n.integer - half)


def quotient(a: Float, b: Float) -> Float:
    """``a / b`` to about half an ulp, for b between 2^-100 and 2^100 and smaller quotients than 2^100.

    AVX-512 divides 16 floats in as many cycles: an approximate reciprocal, one step of Newton's to make it better, and
    one that adds the quotient of what is left take fewer (P. W. Markstein, "IA-64 and Elementary Functions", 2000,
    ch. 8).
    """
    if b.bits != 32 or not avx512.available(b):
        return a / b
    inverse = reciprocal(b)
    near = a * inverse
    return (-b).fma(near, a).fma(inverse, near)


def reciprocal(b: Float) -> Float:
    """``1 / b`` to about an ulp, for such b as of ``quotient``."""
    if b.bits != 32 or not avx512.available(b):
        return 1.0 / b
    rough = avx512.reciprocal(b)
    return rough.fma((-b).fma(rough, 1.0), rough)


def small_quotient(a: Float, b: Float) -> Float:
    """``a / b`` to at least 14 bits, where it is a correction to something larger."""
    return a * avx512.reciprocal(b) if avx512.available(b) else a / b


@dataclass(frozen=True, slots=True)
class Double:
    """An unevaluated sum ``hi + lo`` with ``|lo|`` at most half an ulp of ``hi``, or near that."""

    hi: Float
    lo: Float


def two_sum(a: Float, b: Float) -> Double:
    """The sum ``a + b`` without any error, as two numbers (D. E. Knuth, TAOCP vol. 2, 4.2.2, theorem B)."""
    total = a + b
    b_part = total - a
    return Double(total, (a - (total - b_part)) + (b - b_part))


def fast_two_sum(a: Float, b: Float) -> Double:
    """The sum ``a + b`` without any error, as two numbers, where ``|a| >= |b|`` or ``a`` is 0 (T. J. Dekker, Numer.
    Math. 18, 1971)."""
    total = a + b
    return Double(total, b - (total - a))


def two_product(a: Float, b: Float) -> Double:
    """The product ``a * b`` without any error, as two numbers, barring overflow and underflow (Dekker, as above, where
    there is no fma)."""
    product = a * b
    if a.lanes.target.has_fma:
        return Double(product, a.fma(b, -product))
    a_hi, a_lo = _split(a)
    b_hi, b_lo = _split(b)
    return Double(product, ((a_hi * b_hi - product) + a_hi * b_lo + a_lo * b_hi) + a_lo * b_lo)


def _split(a: Float) -> tuple[Float, Float]:
    """``a`` as a sum of two numbers of at most half its bits (G. W. Veltkamp; see Dekker)."""
    spread = a * (2.0 ** ((MANTISSA[a.bits] + 2) // 2) + 1.0)
    hi = spread - (spread - a)
    return hi, a - hi


def add(x: Double, y: Double) -> Double:
    """``x + y`` where ``|x| >= |y|``, relative error near 2^-2p."""
    total = two_sum(x.hi, y.hi)
    return fast_two_sum(total.hi, total.lo + (x.lo + y.lo))


def multiply(x: Double, y: Double) -> Double:
    """``x * y``, relative error near 2^-2p."""
    product = two_product(x.hi, y.hi)
    return fast_two_sum(product.hi, product.lo + (x.hi * y.lo + x.lo * y.hi))
