"""log, log2, log10, log1p; in float32 on AVX-512 those of ``log_table.py``.

x = 2^k (1 + f) with 1 + f near 1. For float32, log(1 + f) is a polynomial; for float64, with s = f / (2 + f), it is
2 atanh s = f - (f²/2 - s (f²/2 + R)), where R = s² P(s²) (K. C. Ng's arrangement; J.-M. Muller, "Elementary Functions",
ch. 11). In both f enters unrounded.
"""

from __future__ import annotations

import math

from ..lanes import Float, polynomial
from . import avx512, log_table
from .reduction import LN2_HI, LN2_LO, MANTISSA, ONE, fast_two_sum, small_quotient, small_to_float, two_sum

# For float32: P(f) where log(1 + f) = f - f²/2 + f³ P(f), 1 + f in [√½, 1½); error relative to the logarithm 2^-26.5.
_LOG1P = (
    0.3333331943, -0.2500027418, 0.2000176609, -0.1665380746, 0.1421640515, -0.1264039427, 0.1212795898,
    -0.1044546217, 0.0480891019,
)  # fmt: skip
# For float64: P(z) where 2 atanh(s) = 2s + s z P(z), z = s²; error relative to the logarithm 2^-59.1.
_ATANH = (
    0.666666666666674, 0.3999999999937791, 0.2857142875131402, 0.22222197586522588, 0.1818361901938095,
    0.1531256929954486, 0.1481154435148624,
)  # fmt: skip

# First parts of at most half the format's bits, so that their products with such numbers and with exponents are exact.
_LOG2_E = {
    32: (float.fromhex("0x1.714p0"), float.fromhex("0x1.47652b82fe177p-12")),
    64: (float.fromhex("0x1.715476p0"), float.fromhex("0x1.4ae0bf85ddf44p-26")),
}
_LOG10_E = {
    32: (float.fromhex("0x1.bc8p-2"), float.fromhex("0x1.bd8a937287195p-13")),
    64: (float.fromhex("0x1.bcb7bp-2"), float.fromhex("0x1.526e50e32a6abp-26")),
}
_LOG10_2 = {
    32: (float.fromhex("0x1.34p-2"), float.fromhex("0x1.04d427de7fbccp-12")),
    64: (float.fromhex("0x1.344134p-2"), float.fromhex("0x1.09f79fef311f1p-26")),
}

_SQRT_HALF_BITS = {32: 0x3F3504F3, 64: 0x3FE6A09E667F3BCD}
_SMALLEST_NORMAL = {32: 2.0**-126, 64: 2.0**-1022}


def split_exponent(x: Float) -> tuple[Float, Float]:
    """``k, m`` with x = 2^k m and m in [√½, √2); ``x`` a positive finite number, denormal or not."""
    bits, mantissa = x.bits, MANTISSA[x.bits]
    tiny = x < _SMALLEST_NORMAL[bits]
    pattern = tiny.select(x * 2.0 ** (mantissa + 2), x).as_int()
    shift = tiny.select_int(x.lanes.int(bits, mantissa + 2), 0)
    k = ((pattern + (ONE[bits] - _SQRT_HALF_BITS[bits])) >> mantissa) - (ONE[bits] >> mantissa)
    return small_to_float(k - shift), (pattern - (k << mantissa)).as_float()


def _log1p_parts(f: Float) -> tuple[Float, Float]:
    """``h, t`` with log(1 + f) = f - (h - t), where h = f²/2 and |t| is small beside f; for 1 + f in [√½, √2)."""
    square = f * f
    half_square = square * 0.5
    if f.bits == 32:
        return half_square, f * square * polynomial(f, _LOG1P)
    s = f / (f + 2.0)
    z = s * s
    return half_square, s * (half_square + z * polynomial(z, _ATANH))


def _at_the_ends(x: Float, result: Float) -> Float:
    """The logarithm of 0, infinity, negative numbers and NaN; ``result`` for all others."""
    if avx512.available(x):
        return avx512.logarithm_at_ends(x, result)
    negative_or_nan = x.equals(math.inf).select(x, math.nan)
    special = x.equals(0.0).select(x.same(-math.inf), negative_or_nan)
    return ((x > 0.0) & (x < math.inf)).select(result, special)


def _combine(k: Float, f: Float, low: Float | None = None) -> Float:
    """k ln2 + log(1 + f) + low."""
    half_square, t = _log1p_parts(f)
    small = k.mul_add(LN2_LO[f.bits], t if low is None else t + low)
    return k.mul_add(LN2_HI[f.bits], f - (half_square - small))


def log(x: Float) -> Float:
    """The natural logarithm: -infinity at 0, NaN below."""
    if avx512.has_tables(x):
        return log_table.log(x)
    k, m = split_exponent(x)
    return _at_the_ends(x, _combine(k, m - 1.0))


def log1p(x: Float) -> Float:
    """The logarithm of the rounded u = 1 + x, plus what the rounding lost, over u."""
    if avx512.has_tables(x):
        return log_table.log1p(x)
    u = two_sum(x.same(1.0), x)
    k, m = split_exponent(u.hi)
    exact = k.equals(0.0)
    f = exact.select(x, m - 1.0)
    lost = exact.select(x.same(0.0), small_quotient(u.lo, u.hi))
    result = _at_the_ends(u.hi, _combine(k, f, lost))
    return (x.abs() < 2.0 ** -(x.bits - 6)).select(x, result)


def log2(x: Float) -> Float:
    """The logarithm to base 2: -infinity at 0, NaN below."""
    if avx512.has_tables(x):
        return log_table.log2(x)
    return _log_base(x, _LOG2_E[x.bits], (1.0, 0.0))


def log10(x: Float) -> Float:
    """The logarithm to base 10: -infinity at 0, NaN below."""
    if avx512.has_tables(x):
        return log_table.log10(x, _LOG10_2[32])
    return _log_base(x, _LOG10_E[x.bits], _LOG10_2[x.bits])


def _log_base(x: Float, factor: tuple[float, float], unit: tuple[float, float]) -> Float:
    """k · unit + factor · log(m), where log(m) is a sum whose first term has so few bits that its product is exact."""
    k, m = split_exponent(x)
    f = m - 1.0
    half_square, t = _log1p_parts(f)
    keep = -1 << (MANTISSA[x.bits] // 2 + 1)
    hi = ((f - half_square).as_int() & keep).as_float()
    lo = ((f - hi) - half_square) + t
    small = lo.mul_add(factor[0], (lo + hi).mul_add(factor[1], k * unit[1]))
    total = fast_two_sum(k * unit[0], hi * factor[0])
    return _at_the_ends(x, total.hi + (total.lo + small))
