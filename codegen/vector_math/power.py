"""pow, sqrt, rsqrt.

pow is e^(y log x), with the logarithm accurate beyond the result's format: its relative error is multiplied by an
exponent of up to 2^10. For float32, float64 serves; for float64, unevaluated sums of two numbers (P. W. Markstein,
"IA-64 and Elementary Functions", 2000, ch. 12). Special values are those of ISO C99, F.9.4.4.
"""

from __future__ import annotations

import math

from ..lanes import Float, Mask, polynomial
from . import avx512
from .exp import exp_of_sum
from .log import split_exponent
from .reduction import (
    LN2_HI,
    LN2_LO,
    Double,
    add,
    fast_two_sum,
    multiply,
    nearest,
    power_of_two,
    two_product,
)
from .rounding import round_even

# For float32, in float64: P(z) where log2((1 + s) / (1 - s)) = s P(s²), relative error 2^-37.6;
# and q(r) where 2^r = 1 + r q(r), error 2^-34.3.
_LOG2 = (2.8853900817920715, 0.9617966718528416, 0.577083836908883, 0.41165821542682496, 0.3409949224963961)
_EXP2 = (
    0.6931471805415984, 0.24022651078194288, 0.05550410963007186, 0.009618036534954319, 0.0013333430320495248,
    0.00015467239456229946, 1.53150709184123e-05,
)  # fmt: skip

# For float64: Q(z) where 2 atanh s = 2s + s³ (2/3 + z (2/5 + z Q(z))), error relative to the logarithm 2^-71.4.
_ATANH = (
    0.28571428571433494, 0.22222222219876075, 0.18181818627189708, 0.1538457115416773, 0.1333583813316157,
    0.11683390286826427, 0.11925605794637477,
)  # fmt: skip
_TWO_THIRDS = (2 / 3, 3.700743415417188e-17)
_TWO_FIFTHS = (0.4, -2.2204460492503132e-17)


def sqrt(x: Float) -> Float:
    """The square root, by the instruction, which rounds correctly."""
    return x.sqrt()


def rsqrt(x: Float) -> Float:
    """The reciprocal of the square root of x. For float32 with AVX-512 it is an estimate and a step of Newton's method,
    which take less time than a root and a quotient."""
    if x.bits == 64 or not avx512.available(x):
        return 1.0 / x.sqrt()
    estimate = avx512.reciprocal_root(x)
    error = (-(x * estimate)).fma(estimate, 1.0)
    better = (estimate * 0.5).fma(error, estimate)
    return error.equals(error).select(better, estimate)  # of 0 and infinity the estimate is exact, the error NaN


def power(x: Float, y: Float) -> Float:
    """x^y with the special cases of ISO C99, F.9.4.4: 1 where y is 0 or x is 1, NaN where x is negative and finite and
    y is no whole number, and the sign of x where y is odd."""
    size = _power_of_size_32(x, y) if x.bits == 32 else _power_of_size_64(x, y)
    whole = round_even(y).equals(y)
    half = y * 0.5
    odd = whole & ~round_even(half).equals(half)
    signed = (odd & (x.as_int() < 0)).select(-size, size)
    undefined = (x < 0.0) & (x > -math.inf) & ~whole
    return (y.equals(0.0) | x.equals(1.0)).select(x.same(1.0), undefined.select(x.same(math.nan), signed))


def _is_positive_finite(x: Float) -> Mask:
    return (x > 0.0) & (x < math.inf)


def _logarithm_at_ends(x: Float) -> Float:
    """The logarithm of 0, infinity or NaN."""
    return x.equals(0.0).select(x.same(-math.inf), x)


def _power_of_size_32(x: Float, y: Float) -> Float:
    """|x|^y for float32, by way of float64, where every float32 is a normal number."""
    size = x.abs().convert(64)
    k, m = split_exponent(size)
    s = (m - 1.0) / (m + 1.0)
    inner = s.mul_add(polynomial(s * s, _LOG2), k)
    log2 = _is_positive_finite(size).select(inner, _logarithm_at_ends(size))
    # Clamped, y cannot be infinite: 1 to the power of it is 1; and any result that it changes was 0 or infinite anyway.
    exponent = (y.convert(64).clamp(-(2.0**40), 2.0**40) * log2).clamp(-200.0, 200.0)
    n = nearest(exponent)
    r = exponent - n.value
    return (r.mul_add(polynomial(r, _EXP2), 1.0) * power_of_two(n.integer)).convert(32)


def _power_of_size_64(x: Float, y: Float) -> Float:
    size = x.abs()
    inner = _log_of_sum(size)
    regular = _is_positive_finite(size)
    log = Double(regular.select(inner.hi, _logarithm_at_ends(size)), regular.select(inner.lo, 0.0))
    factor = y.clamp(-(2.0**66), 2.0**66)
    product = two_product(factor, log.hi)
    low = factor.mul_add(log.lo, product.lo)
    return exp_of_sum(Double(product.hi, (product.hi.abs() < 1000.0).select(low, 0.0)))


def _log_of_sum(x: Float) -> Double:
    """log x for positive finite float64, to about 2^-66 of itself."""
    k, m = split_exponent(x)
    f = m - 1.0
    s = _quotient(f, fast_two_sum(x.same(2.0), f))
    z = multiply(s, s)
    fifths = add(_constant(x, _TWO_FIFTHS), Double(z.hi * polynomial(z.hi, _ATANH), x.same(0.0)))
    thirds = add(_constant(x, _TWO_THIRDS), multiply(z, fifths))
    log_m = add(Double(s.hi + s.hi, s.lo + s.lo), multiply(multiply(s, z), thirds))
    return add(fast_two_sum(k * LN2_HI[64], k * LN2_LO[64]), log_m)


def _constant(x: Float, parts: tuple[float, float]) -> Double:
    return Double(x.same(parts[0]), x.same(parts[1]))


def _quotient(a: Float, b: Double) -> Double:
    hi = a / b.hi
    back = two_product(hi, b.hi)
    return Double(hi, ((a - back.hi) - back.lo - hi * b.lo) / b.hi)
