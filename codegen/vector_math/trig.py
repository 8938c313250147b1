"""sin, cos, tan, for arguments of any size.

x · 2/π modulo 4 is the sum, modulo 4, of the products of x with 26-bit chunks of 2/π. Each product is exact in float64,
and chunks that contribute only multiples of 4 are left out (M. H. Payne, R. N. Hanek, "Radian reduction for
trigonometric functions", SIGNUM Newsletter 18, 1983). The nearest integer is the quadrant; polynomials take the rest.
float32 is computed in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir as llvm_ir

from ..lanes import Float, Int, polynomial
from .reduction import MANTISSA, Double, fast_two_sum, multiply, nearest, power_of_two, small_to_float, two_sum
from .rounding import round_even

_CHUNK = 26
# The first 1216 bits of 2/π.
_TWO_OVER_PI_BITS = 1216
_TWO_OVER_PI = int(
    "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561B7246E3A424D"
    "D2E006492EEA09D1921CFE1DEB1CB129A73EE88235F52EBB4484E99C7026B45F7E413991D639"
    "835339F49C845F8BBDF9283B1FF897FFDE05980FEF2F118B5A0A6D1F6D367ECF27CB09B74F46"
    "3F669E5FEA2D7527BAC7EBE5F17B3D0739F78A5292EA6BFB5FB11F8D5D0856033046FC7B6BAB",
    16,
)
_CHUNKS = [((_TWO_OVER_PI >> (_TWO_OVER_PI_BITS - _CHUNK * (i + 1))) % (1 << _CHUNK)) * 2.0**-_CHUNK for i in range(46)]

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
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)


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
    fraction, quadrant = _quarter_turns(x, accuracy)
    half_pi = Double(x.same(_HALF_PI[0]), x.same(_HALF_PI[1]))
    r = multiply(fraction, half_pi)
    # Below this, r is x and the chunks' products may underflow.
    tiny = x.abs() < 2.0**-30
    r = Double(tiny.select(x, r.hi), tiny.select(x.same(0.0), r.lo))
    z = r.hi * r.hi
    sine = r.hi + (r.hi * z).mul_add(polynomial(z, _SIN[accuracy]), r.lo * (1.0 - z * 0.5))
    half_square = z * 0.5
    first = 1.0 - half_square
    rest = (z * z).mul_add(polynomial(z, _COS[accuracy]), -(r.hi * r.lo))
    cosine = first + (((1.0 - first) - half_square) + rest)
    return _Turned(quadrant, tiny.select(x, sine), cosine)


def _quarter_turns(x: Float, accuracy: int) -> tuple[Double, Int]:
    """x · 2/π modulo 4 as a fraction of size at most ½ (and a little) and an integer."""
    scaled, chunks = _window_32(x) if accuracy == 32 else _window_64(x)
    pieces = [scaled] if accuracy == 32 else _halves(scaled)
    high, middle, low = x.same(0.0), x.same(0.0), x.same(0.0)
    for j, chunk in enumerate(chunks):
        for piece in pieces:
            product = piece * 2.0 ** (-_CHUNK * j) * chunk
            term = product - round_even(product * 0.25) * 4.0
            total = two_sum(high, term)
            rest = two_sum(middle, total.lo)
            high, middle, low = total.hi, rest.hi, low + rest.lo
    whole, quadrant = nearest(high)
    near = two_sum(high - whole, middle)
    return fast_two_sum(near.hi, near.lo + low), quadrant


def _halves(x: Float) -> list[Float]:
    """Two numbers of at most 26 and 27 bits whose sum is ``x``."""
    hi = (x.as_int() & (-1 << 27)).as_float()
    return [hi, x - hi]


def _window_32(x: Float) -> tuple[Float, list[Float]]:
    """For 24-bit numbers below 2^128: ``x`` times 2^(-26 k), and chunks k to k + 4; those before k drop out."""
    scaled = x
    chunks = [x.same(c) for c in _CHUNKS[:5]]
    for k in (1, 2, 3):
        beyond = x.abs() >= 2.0 ** (51 + _CHUNK * (k - 1))
        scaled = beyond.select(x * 2.0 ** (-_CHUNK * k), scaled)
        chunks = [beyond.select(x.same(_CHUNKS[k + j]), chunk) for j, chunk in enumerate(chunks)]
    return scaled, chunks


def _window_64(x: Float) -> tuple[Float, list[Float]]:
    """The same for 53-bit numbers below 2^1024, with chunks k to k + 7."""
    exponent = ((x.as_int() >> MANTISSA[64]) & 0x7FF) - 1023
    _, k = nearest((small_to_float(exponent) - 66.5) * (1.0 / _CHUNK))  # from 80 on, one more every 26
    k = (k > 0).select_int(k, 0)
    scaled = x * power_of_two(x.same(0.0).as_int() - k * _CHUNK)
    table = _table(x.lanes.builder.module)
    return scaled, [_look_up(x, table, k + j) for j in range(8)]


def _table(module: llvm_ir.Module) -> llvm_ir.GlobalVariable:
    name = "lw_two_over_pi"
    known = module.globals.get(name)
    if known is not None:
        return known
    kind = llvm_ir.ArrayType(llvm_ir.DoubleType(), len(_CHUNKS))
    table = llvm_ir.GlobalVariable(module, kind, name)
    table.linkage, table.global_constant, table.unnamed_addr = "private", True, True
    table.initializer = llvm_ir.Constant(kind, _CHUNKS)
    return table


def _look_up(x: Float, table: llvm_ir.GlobalVariable, index: Int) -> Float:
    """One element a lane."""
    lanes, double = x.lanes, llvm_ir.DoubleType()
    builder = lanes.builder

    def element(at: llvm_ir.Value) -> llvm_ir.Value:
        address = builder.gep(table, [at], source_etype=double)
        return builder.load(address, typ=double)

    if lanes.count == 1:
        return Float(lanes, element(index.value), 64)
    gathered: llvm_ir.Value = llvm_ir.Constant(lanes.type_of(double), llvm_ir.Undefined)
    for i in range(lanes.count):
        at = llvm_ir.Constant(llvm_ir.IntType(32), i)
        gathered = builder.insert_element(gathered, element(builder.extract_element(index.value, at)), at)
    return Float(lanes, gathered, 64)
