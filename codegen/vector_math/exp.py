"""exp, exp2, expm1.

All reduce to 2^n · e^r with |r| ≤ ln2/2 and a minimax polynomial in r (W. J. Cody and W. Waite, "Software Manual for
the Elementary Functions", 1980; J.-M. Muller, "Elementary Functions", 3rd ed. 2016, ch. 11). Where a register holds a
table of 32 powers, n is in 32nds, and a short polynomial is enough (P. T. P. Tang, ACM TOMS 15, 1989). Other
coefficients throughout vector_math come from tools/minimax.py: a Remez exchange in 300 bits, float32 ones rounded one
after another.
"""

from __future__ import annotations

import math

from ..lanes import Float, Mask, polynomial
from . import avx512
from .reduction import LN2_HI, LN2_LO, LOG2_E, Double, Whole, fast_two_sum, magic, nearest, power_of_two, scale

# q(r) where e^r = 1 + r + r² q(r); error relative to e^r 2^-28.2 and 2^-60.6.
_EXP = {
    32: (0.5, 0.1666651517, 0.04166658223, 0.008369238116, 0.001392426318),
    64: (
        0.5, 0.16666666666666685, 0.04166666666666673, 0.00833333333331662, 0.0013888888888858107,
        0.00019841269897360377, 2.4801587374246198e-05, 2.7557233931676598e-06, 2.755723299513827e-07,
        2.5112347560893738e-08, 2.092704409120888e-09,
    ),
}  # fmt: skip

# q(r) where 2^r = 1 + r q(r), |r| ≤ 1/2; error 2^-32.5 and 2^-56.1.
_EXP2 = {
    32: (
        0.6931471825, 0.2402265072, 0.05550406128, 0.009618085809, 0.00133366487, 0.0001545277046, 1.46784414e-05
    ),
    64: (
        0.6931471805599453, 0.24022650695910072, 0.0555041086648217, 0.009618129107628496, 0.0013333558146390173,
        0.00015403530393340775, 1.5252733856508551e-05, 1.3215486833318009e-06, 1.0178051088854561e-07,
        7.054888155297191e-09, 4.456692915400497e-10, 2.5741938970319465e-11,
    ),
}  # fmt: skip

# The same where tables of 32nds of powers leave |r| ≤ 1/64; error 2^-31.
_EXP2_NEAR = (math.log(2), math.log(2) ** 2 / 2, math.log(2) ** 3 / 6)

# Beyond these the results are 0 or infinity; between them no intermediate exponent overflows.
_RANGE = {32: (-103.98, 89.0), 64: (-745.14, 710.0)}
_RANGE2 = {32: (-150.0, 129.0), 64: (-1075.0, 1025.0)}
_RANGE_M1 = {32: (-20.0, 89.0), 64: (-40.0, 710.0)}


def reduce_exp(x: Float) -> tuple[Double, Whole]:
    """``r, n`` with ``x = r + n ln2``: ``r.lo`` is what rounding took from ``r.hi``."""
    n = nearest(x, LOG2_E)
    first = n.value.mul_add(-LN2_HI[x.bits], x)
    r = n.value.mul_add(-LN2_LO[x.bits], first)
    return Double(r, n.value.mul_add(-LN2_LO[x.bits], first - r)), n


def _exp_reduced(r: Float) -> Float:
    """e^r for |r| ≤ ln2/2."""
    return (r * r).mul_add(polynomial(r, _EXP[r.bits]), r) + 1.0


def exp(x: Float) -> Float:
    """e^x; x is held to a range at whose upper end the result is infinity, so that it comes of itself. Below the lower
    one it is 0, without a product that underflows: some cores take a hundred cycles for one, and masks of attention
    make most of the arguments so small."""
    bounded, is_zero = _bounded(x, *_RANGE[x.bits])
    return exp_in_range(bounded, is_zero)


def exp_of_negative(x: Float) -> Float:
    """e^x for x ≤ 0."""
    low, _ = _RANGE[x.bits]
    return exp_in_range(x if avx512.available(x) else x.at_least(low), x < low)


def _bounded(x: Float, low: float, high: float) -> tuple[Float, Mask]:
    """x as its reduction takes it, and where the result is 0. AVX-512 scales a 0 by any power."""
    return x.at_most(high) if avx512.available(x) else x.clamp(low, high), x < low


def exp_in_range(x: Float, is_zero: Mask | None = None) -> Float:
    """e^x where it is neither 0 nor infinite to the last bit, nor far beyond; or 0 where it ``is_zero``."""
    if avx512.has_tables(x):
        return _exp_by_table(x, is_zero)
    r, n = reduce_exp(x)
    return scale(_or_zero(_exp_reduced(r.hi), is_zero), n)


def _or_zero(mantissa: Float, is_zero: Mask | None) -> Float:
    return mantissa if is_zero is None else is_zero.select(mantissa.same(0.0), mantissa)


_SHIFT = magic(32) / 32
"""Added to a number it leaves 32nds, of which the last five bits count those of the fraction."""


def _power_of_fraction(shifted: Float, base: float = 2.0) -> Float:
    """The base to the power of the fraction of a number in 32nds to which ``_SHIFT`` was added."""
    return avx512.look_up(shifted.as_int(), [base ** (k / 32) for k in range(32)])


def _times_exp_near(power: Float, r: Float) -> Float:
    """power · e^r for |r| ≤ ln2/64."""
    return power.fma((r * r).fma(r.fma(1 / 6, 0.5), r), power)


def _exp_by_table(x: Float, is_zero: Mask | None) -> Float:
    shifted = x.fma(LOG2_E, _SHIFT)
    n = shifted - _SHIFT
    r = n.fma(-LN2_LO[32], n.fma(-LN2_HI[32], x))
    return avx512.scale(_or_zero(_times_exp_near(_power_of_fraction(shifted), r), is_zero), n)


def exp_of_negative_by_table(x: Float) -> tuple[Float, Float]:
    """``p, n`` with e^-x = p / 2^floor(n), and p from ½ to 1, or a little beyond; for |x| below 2^16."""
    shifted = x.fma(LOG2_E, _SHIFT)
    n = shifted - _SHIFT
    r = n.fma(LN2_LO[32], n.fma(LN2_HI[32], -x))
    return _times_exp_near(_power_of_fraction(shifted, base=0.5), r), n


def _expm1_reduced(r: Double) -> Float:
    """e^r - 1 for |r| ≤ ln2/2."""
    return (r.hi * r.hi).mul_add(polynomial(r.hi, _EXP[r.hi.bits]), r.lo) + r.hi


def exp_half(x: Float) -> Float:
    """e^x / 2 for x ≥ 0, which overflows no sooner than sinh and cosh do."""
    low, high = _RANGE[x.bits]
    r, n = reduce_exp(x.clamp(low, high + 1.0))
    return scale(_exp_reduced(r.hi), n - 1)


def exp2(x: Float) -> Float:
    """2^x = 2^n · 2^r with n the nearest whole number, so that the reduction is exact; 0 and infinity beyond the
    range."""
    x, is_zero = _bounded(x, *_RANGE2[x.bits])
    if avx512.has_tables(x):
        shifted = x + _SHIFT
        turns, power = shifted - _SHIFT, _power_of_fraction(shifted)
        r = x - turns
        return avx512.scale(_or_zero((power * r).fma(polynomial(r, _EXP2_NEAR), power), is_zero), turns)
    n = nearest(x)
    r = x - n.value
    return scale(_or_zero(r.mul_add(polynomial(r, _EXP2[r.bits]), 1.0), is_zero), n)


def expm1(x: Float) -> Float:
    """2^n (e^r - 1) + (2^n - 1), all of it halved on the way, so that 2^1024 is never needed."""
    r, n = reduce_exp(x.clamp(*_RANGE_M1[x.bits]))
    half_power = power_of_two(n.integer - 1)
    result = half_power.mul_add(_expm1_reduced(r), half_power - 0.5) * 2.0
    return (x.abs() < 2.0 ** -(x.bits - 6)).select(x, result)


def exp_of_sum(x: Double) -> Float:
    """e^(hi + lo), where ``hi`` may be beyond the range if ``lo`` is finite."""
    bounded, is_zero = _bounded(x.hi, *_RANGE[x.hi.bits])
    r, n = reduce_exp(bounded)
    both = fast_two_sum(r.hi, r.lo + x.lo)
    return scale(_or_zero(_expm1_reduced(both) + 1.0, is_zero), n)
