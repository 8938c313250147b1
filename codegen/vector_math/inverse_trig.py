"""asin, acos, atan.

Reductions: asin x = π/2 - 2 asin √((1 - x) / 2) for x > ½; atan x = c + atan((x - tan c) / (1 + x tan c)) with c = 0,
π/4 or π/2, of which float32 needs but 0 and π/2 (W. J. Cody and W. Waite, "Software Manual for the Elementary
Functions", 1980, ch. 10 and 11).
"""

from __future__ import annotations

from ..lanes import Float, polynomial
from .reduction import fast_two_sum, quotient

# For float32 and float64: P(z) where asin x = x + x³ P(x²), |x| ≤ ½; errors 2^-31.7 and 2^-58.9.
_ASIN = {
    32: (
        0.16666659871933562, 0.07500510906502951, 0.04451572266951603, 0.031817594296835075, 0.01440265500419007,
        0.03756515607497978,
    ),
    64: (
        0.16666666666666763, 0.07499999999970262, 0.04464285717512054, 0.030381942683609466, 0.022372215660982957,
        0.017351600073290056, 0.013980961732801887, 0.011397773293538683, 0.010786546007441871, 0.003682971866651938,
        0.021763682767977213, -0.02107756848494659, 0.03267707174610473,
    ),
}  # fmt: skip

# For float32 and float64: P(z) where atan x = x + x³ P(x²), |x| ≤ 1 and |x| ≤ tan π/8; errors 2^-28.5 and 2^-58.4.
_ATAN = {
    32: (
        -0.3333329856, 0.1999852955, -0.1426401436, 0.1095086038, -0.08399202675, 0.05787872896, -0.03109334596,
        0.01086614840, -0.001782112512,
    ),
    64: (
        -0.33333333333333326, 0.1999999999999767, -0.14285714285388168, 0.11111111088187081, -0.09090908144846487,
        0.07692282765540422, -0.0666622685478201, 0.05877022711675446, -0.0521841000583276, 0.0450357115741781,
        -0.03347493617910937, 0.015195612245114376,
    ),
}  # fmt: skip

_PI_8_TAN, _PI_3_8_TAN = 0.41421356237309503, 2.414213562373095
_HALF_PI = {
    32: (float.fromhex("0x1.921fb6p+0"), float.fromhex("-0x1.777a5cp-25")),
    64: (1.5707963267948966, 6.123233995736766e-17),
}


def _reduced(x: Float) -> tuple[Float, Float]:
    """``s, t`` with asin s = s + t, where s is |x|, or √((1 - |x|) / 2) if |x| > ½."""
    size = x.abs()
    z = (size > 0.5).select((1.0 - size) * 0.5, x * x)
    s = (size > 0.5).select(z.sqrt(), size)
    return s, s * z * polynomial(z, _ASIN[x.bits])


def asin(x: Float) -> Float:
    """asin(x): a polynomial up to ½, beyond it π/2 - 2 asin √((1 - |x|) / 2) with π/2 in two parts; NaN where |x| >
    1."""
    s, t = _reduced(x)
    far = fast_two_sum(x.same(_HALF_PI[x.bits][0]), s * -2.0)
    beyond = far.hi + (far.lo - (t * 2.0 - _HALF_PI[x.bits][1]))
    return (x.abs() > 0.5).select(beyond, s + t).copysign(x)


def acos(x: Float) -> Float:
    """π/2 - asin x in the middle, 2 asin s to the right, π - 2 asin s to the left."""
    s, t = _reduced(x)
    side = x.abs() > 0.5
    left = x < 0.0
    # Written as base π + factor · (s + t).
    factor = side.select(left.select(x.same(-2.0), 2.0), left.select(x.same(1.0), -1.0))
    base = side.select(left.select(x.same(1.0), 0.0), 0.5)
    total = fast_two_sum(base * (2.0 * _HALF_PI[x.bits][0]), factor * s)
    return total.hi + (total.lo + (factor * t + base * (2.0 * _HALF_PI[x.bits][1])))


def atan(x: Float) -> Float:
    """atan(x) for all x, infinities included; float32 and float64 are reduced differently."""
    return _atan_32(x) if x.bits == 32 else _atan_64(x)


def _atan_32(x: Float) -> Float:
    """π/2 - atan(1/|x|) beyond 1."""
    size = x.abs().at_most(2.0**60)
    steep = size > 1.0
    t = quotient(steep.select(x.same(1.0), size), steep.select(size, 1.0))
    z = t * t
    quarter, rest = _HALF_PI[32]
    angle = (t * z).mul_add(polynomial(z, _ATAN[32]), steep.select(x.same(-rest), 0.0)) + t
    return steep.select(quarter - angle, angle).copysign(x)


def _atan_64(x: Float) -> Float:
    size = x.abs()
    far, middle = size > _PI_3_8_TAN, size > _PI_8_TAN
    numerator = far.select(x.same(-1.0), middle.select(size - 1.0, size))
    denominator = far.select(size, middle.select(size + 1.0, 1.0))
    base = far.select(x.same(1.0), middle.select(x.same(0.5), 0.0))  # in units of π/2, exactly
    t = numerator / denominator
    z = t * t
    total = fast_two_sum(base * _HALF_PI[x.bits][0], t)
    small = (t * z).mul_add(polynomial(z, _ATAN[x.bits]), base * _HALF_PI[x.bits][1])
    return (total.hi + (total.lo + small)).copysign(x)
