"""sin, cos, tan: polynomials on [-π/4, π/4], chosen and signed by the quadrant.

Angles of float32 up to 2^16 are reduced and computed in float32, where the target has fma; others in float64.
"""

from __future__ import annotations

from collections.abc import Callable

from ...base.dataclass import dataclass
from ..lanes import Float, Int, polynomial
from . import avx512
from .rare import beyond
from .reduction import Double, fast_two_sum, quotient, small_quotient
from .trig_reduction import NEAR_32, reduce_angle, reduce_near_32

# For float32 and float64: S, C where sin r = r + r³ S(r²), cos r = 1 - r²/2 + r⁴ C(r²), |r| ≤ π/4;
# errors 2^-37.6 and 2^-57.3, 2^-42.7 and 2^-59.5.
_SIN = {
    32: (-0.16666666641528666, 0.008333329374282689, -0.0001983933103784126, 2.7182747862051684e-06),
    64: (
        -0.16666666666666666, 0.008333333333333323, -0.0001984126984125506, 2.7557319214187593e-06,
        -2.505210491084229e-08, 1.605836653157012e-10, -7.578693065450266e-13,
    ),
}  # fmt: skip
_COS = {
    32: (0.041666666622655835, -0.001388888373825884, 2.4799515941092744e-05, -2.7209896632570457e-07),
    64: (
        0.041666666666666664, -0.0013888888888888874, 2.480158730157146e-05, -2.7557319215360044e-07,
        2.0876754362499055e-09, -1.1470292839769507e-11, 4.7380893168092526e-14,
    ),
}  # fmt: skip
# For float32: P(r²) where tan r = r + r³ P(r²), |r| ≤ π/4; error 2^-25.7.
_TAN = (0.3333315551, 0.1333883554, 0.05340819806, 0.02444141544, 0.003101430833, 0.009396562353)


@dataclass(frozen=True, slots=True)
class _Turned:
    """sine and cosine of the rest r, |r| ≤ π/4, of an angle in this quadrant (modulo 4)."""

    quadrant: Int
    sine: Double
    cosine: Double


def sin(x: Float) -> Float:
    """The sine of an angle in radians; NaN at the infinities."""
    return _of_angle(x, _sin, lambda angle: _sin_or_cos_near_32(angle, 0))


def cos(x: Float) -> Float:
    """The cosine of an angle in radians; NaN at the infinities."""
    return _of_angle(x, _cos, lambda angle: _sin_or_cos_near_32(angle, 1))


def _sin_or_cos_near_32(x: Float, turned: int) -> Float:
    """sin(x + turned π/2), in as few steps as leave an error below 2 ulp. The sine's sign is set for the sake of -0."""
    r, quadrant = reduce_near_32(x)
    z = r.hi * r.hi
    sine = (r.hi + (r.hi * z).fma(polynomial(z, _SIN[32]), r.lo)).copysign(r.hi)
    cosine = (z * z).fma(polynomial(z, _COS[32]), z.fma(-0.5, 1.0))
    even = ((quadrant + turned) & 1).equals(0)
    return _signed(quadrant + turned, even.select(sine, cosine))


# Up to here tan x is x to the last bit.
_TAN_IS_ANGLE = {32: 2.0**-12, 64: 2.0**-27}


def tan(x: Float) -> Float:
    """The tangent of an angle in radians; NaN at the infinities. A tiny angle is its own tangent."""
    if x.bits == 32 and avx512.available(x):
        return _near_or_wide(x, _tan_near_32(x), _tan)
    return (x.abs() < _TAN_IS_ANGLE[x.bits]).select(x, _of_angle(x, _tan, _tan_turned_32))


def _tan_turned_32(x: Float) -> Float:
    return _tan(_turn(x, x.bits, *reduce_near_32(x)))


def _tan_near_32(x: Float) -> Float:
    """tan r, or -1 / tan r in odd quadrants. Its sign is set for the sake of -0."""
    r, quadrant = reduce_near_32(x)
    z = r.hi * r.hi
    near = fast_two_sum(r.hi, (r.hi * z).fma(polynomial(z, _TAN), r.lo.fma(z, r.lo)))
    tangent = near.hi.copysign(r.hi)
    return (quadrant & 1).equals(0).select(tangent, -_reciprocal(near))


def _reciprocal(x: Double) -> Float:
    """1 / (hi + lo), by one step of Newton's."""
    rough = avx512.reciprocal(x.hi)
    return rough.fma((-x.lo).fma(rough, (-x.hi).fma(rough, 1.0)), rough)


def _of_angle(x: Float, function: Callable[[_Turned], Float], near_32: Callable[[Float], Float]) -> Float:
    """``near_32`` is the function of float32 angles that ``reduce_near_32`` takes."""
    if x.bits == 64 or not x.lanes.target.has_fma:
        return _in_float64(x, function)
    return _near_or_wide(x, near_32(x), function)


def _near_or_wide(x: Float, near: Float, function: Callable[[_Turned], Float]) -> Float:
    """``near`` is the result for the angles that ``reduce_near_32`` takes."""
    (result,) = beyond(x, NEAR_32, [near], f"wide{function.__name__}", lambda far: [_in_float64(far, function)])
    return result


def _in_float64(x: Float, function: Callable[[_Turned], Float]) -> Float:
    wide = x.convert(64)
    return function(_turn(wide, x.bits, *reduce_angle(wide, x.bits))).convert(x.bits)


def _sin(t: _Turned) -> Float:
    return _signed(t.quadrant, (t.quadrant & 1).equals(0).select(t.sine.hi, t.cosine.hi))


def _cos(t: _Turned) -> Float:
    return _signed(t.quadrant + 1, (t.quadrant & 1).equals(0).select(t.cosine.hi, t.sine.hi))


def _tan(t: _Turned) -> Float:
    even = (t.quadrant & 1).equals(0)
    above = Double(even.select(t.sine.hi, -t.cosine.hi), even.select(t.sine.lo, -t.cosine.lo))
    below = Double(even.select(t.cosine.hi, t.sine.hi), even.select(t.cosine.lo, t.sine.lo))
    near = quotient(above.hi, below.hi)
    return near + small_quotient(above.lo - near * below.lo, below.hi)


def _signed(quadrant: Int, value: Float) -> Float:
    return (quadrant & 2).equals(0).select(value, -value)


def _turn(x: Float, accuracy: int, r: Double, quadrant: Int) -> _Turned:
    z = r.hi * r.hi
    sine = fast_two_sum(r.hi, (r.hi * z).mul_add(polynomial(z, _SIN[accuracy]), r.lo * (1.0 - z * 0.5)))
    half_square = z * 0.5
    first = 1.0 - half_square
    rest = (z * z).mul_add(polynomial(z, _COS[accuracy]), -(r.hi * r.lo))
    cosine = fast_two_sum(first, ((1.0 - first) - half_square) + rest)
    return _Turned(quadrant, Double((x.abs() < 2.0**-30).select(x, sine.hi), sine.lo), cosine)
