"""sin, cos, tan: polynomials on [-π/4, π/4], chosen and signed by the quadrant. float32 is computed in float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..lanes import Float, Int, polynomial
from .trig_reduction import reduce_angle

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


@dataclass(frozen=True, slots=True)
class _Turned:
    """sine and cosine of the rest r, |r| ≤ π/4, of an angle in this quadrant (modulo 4)."""

    quadrant: Int
    sine: Float
    cosine: Float


def sin(x: Float) -> Float:
    return _through_float64(x, _sin)


def cos(x: Float) -> Float:
    return _through_float64(x, _cos)


def tan(x: Float) -> Float:
    return _through_float64(x, _tan)


def _through_float64(x: Float, function: Callable[[_Turned], Float]) -> Float:
    return function(_turn(x.convert(64), accuracy=x.bits)).convert(x.bits)


def _sin(t: _Turned) -> Float:
    return _signed(t.quadrant, (t.quadrant & 1).equals(0).select(t.sine, t.cosine))


def _cos(t: _Turned) -> Float:
    return _signed(t.quadrant + 1, (t.quadrant & 1).equals(0).select(t.cosine, t.sine))


def _tan(t: _Turned) -> Float:
    even = (t.quadrant & 1).equals(0)
    return even.select(t.sine, -t.cosine) / even.select(t.cosine, t.sine)


def _signed(quadrant: Int, value: Float) -> Float:
    return (quadrant & 2).equals(0).select(value, -value)


def _turn(x: Float, accuracy: int) -> _Turned:
    r, quadrant = reduce_angle(x, accuracy)
    z = r.hi * r.hi
    sine = r.hi + (r.hi * z).mul_add(polynomial(z, _SIN[accuracy]), r.lo * (1.0 - z * 0.5))
    half_square = z * 0.5
    first = 1.0 - half_square
    rest = (z * z).mul_add(polynomial(z, _COS[accuracy]), -(r.hi * r.lo))
    cosine = first + (((1.0 - first) - half_square) + rest)
    return _Turned(quadrant, (x.abs() < 2.0**-30).select(x, sine), cosine)
