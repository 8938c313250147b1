"""tanh, sigmoid, sinh, cosh: from e^x where nothing cancels, from an odd polynomial near 0."""

from __future__ import annotations

import math
from functools import cache

from ..lanes import Float, polynomial
from . import avx512
from .exp import exp_half, exp_in_range, exp_of_negative, exp_of_negative_by_table
from .reduction import quotient, reciprocal
from .segments import Segments, by_segments, fit

# P(z) where tanh x = x + x³ P(x²), |x| ≤ 0.625; error 2^-32.5 and 2^-57.9.
_TANH = {
    32: (-0.3333333135, 0.1333322227, -0.05394846201, 0.02170875296, -0.008195110597, 0.002157673473),
    64: (
        -0.3333333333333333, 0.13333333333333164, -0.05396825396813279, 0.02186948853178391, -0.00886323543675484,
        0.0035921267583964153, -0.0014558225025636535, 0.0005899503134873178, -0.0002387746736944949,
        9.576025376666983e-05, -3.663961104786419e-05, 1.180717019705712e-05, -2.2767388427914534e-06,
    ),
}  # fmt: skip

# P(z) where sinh x = x + x³ P(x²), |x| ≤ 1; error 2^-34.2 and 2^-56.8.
_SINH = {
    32: (0.16666666497565824, 0.008333350057773341, 0.00019836159854996283, 2.8169508111705715e-06),
    64: (
        0.16666666666666666, 0.008333333333333333, 0.000198412698412696, 2.7557319224116293e-06,
        2.5052108346507838e-08, 1.605905060139767e-10, 7.646482887388828e-13, 2.8482332189780243e-15,
    ),
}  # fmt: skip


# From here on tanh is 1 to the last bit.
_SATURATES = {32: 9.1, 64: 19.1}


@cache
def _tanh_segments() -> Segments:
    return fit(math.tanh, (1.0, 0.0, -1 / 3, 0.0, 2 / 15), range(-4, 4), high=9.99)


def tanh(x: Float) -> Float:
    """tanh(x), by a table of segments; or 1 - 2 / (e^2|x| + 1) where that exceeds 0.55, so that the error of e^x hardly
    counts."""
    if avx512.has_tables(x):
        return by_segments(x.abs(), _tanh_segments()).copysign(x)
    z = x * x
    near = (x * z).mul_add(polynomial(z, _TANH[x.bits]), x)
    size = x.abs()
    bounded = size.at_most(_SATURATES[x.bits])
    far = 1.0 - 2.0 * reciprocal(exp_in_range(bounded + bounded) + 1.0)
    return (size < 0.625).select(near, far).copysign(x)


# Down from the one a sigmoid is 0, up from the other it is 1, to the last bit.
_SIGMOID_RANGE = (-103.98, 17.5)


def sigmoid(x: Float) -> Float:
    """1 / (1 + e^-x), or e^x / (1 + e^x) for negative x, where the first form would overflow.

    From tables: 2^n / (2^n + p), where e^-x = p / 2^n, which serves both signs.
    """
    if avx512.has_tables(x):
        p, n = exp_of_negative_by_table(x.clamp(*_SIGMOID_RANGE))
        one = (x < _SIGMOID_RANGE[0]).select(x.same(0.0), 1.0)  # powers that underflow can take long
        power = avx512.scale(one, n)  # of the whole part of n
        return power * reciprocal(power + p)
    e = exp_of_negative(-x.abs())
    return quotient((x < 0.0).select(e, 1.0), e + 1.0)


def sinh(x: Float) -> Float:
    """sinh(x): an odd polynomial below 1, else (e^|x| - e^-|x|) / 2 with the sign of x, where nothing cancels."""
    z = x * x
    near = (x * z).mul_add(polynomial(z, _SINH[x.bits]), x)
    half = exp_half(x.abs())
    far = half - 0.25 / half
    return (x.abs() < 1.0).select(near, far).copysign(x)


def cosh(x: Float) -> Float:
    """cosh(x) = h + 1 / (4h) with h = e^|x| / 2, which overflows no sooner than the result."""
    half = exp_half(x.abs())
    return half + 0.25 / half
