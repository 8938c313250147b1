"""Angles modulo π/2: ``x = r + n π/2`` with |r| ≤ π/4, for the trigonometric functions.

Up to 2^19, n π/2 is subtracted in parts whose products with n are exact (W. J. Cody and W. Waite, 1980). Beyond, in a
branch rarely taken, x · 2/π modulo 4 is the sum, modulo 4, of the products of x with 26-bit chunks of 2/π; each product
is exact in float64, and chunks that contribute only multiples of 4 are left out (M. H. Payne, R. N. Hanek, "Radian
reduction for trigonometric functions", SIGNUM Newsletter 18, 1983). All this happens in float64; ``accuracy`` is the
width of the result's format.
"""

from __future__ import annotations

from collections.abc import Iterable

from llvmlite import ir as llvm_ir

from ..lanes import Float, Int
from .rare import beyond
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

_NEAR = 2.0**19
NEAR_32 = 2.0**16
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
# π/2 as the sum of three float32. The second is positive, so that reducing -0 leaves -0.
_HALF_PI_FLOATS = (
    float.fromhex("0x1.921fb4p+0"),
    float.fromhex("0x1.4442d2p-24"),
    float.fromhex("-0x1.ee59dap-50"),
)
# π/2 in parts of 33 bits, the last of 53.
_HALF_PI_PARTS = {
    32: (float.fromhex("0x1.921fb544p+0"), float.fromhex("0x1.0b4611a626331p-34")),
    64: (
        float.fromhex("0x1.921fb544p+0"),
        float.fromhex("0x1.0b4611a6p-34"),
        float.fromhex("0x1.3198a2ep-69"),
        float.fromhex("0x1.b839a252049c1p-104"),
    ),
}


def reduce_angle(x: Float, accuracy: int) -> tuple[Double, Int]:
    """``r, n``, the latter modulo 4. Each lane's result is the same whatever the others hold."""
    r, quadrant = _reduce_near(x, accuracy)

    def far(x: Float) -> list[Float]:
        reduced, turns = _reduce_far(x, accuracy)
        return [reduced.hi, reduced.lo, turns.as_float()]

    hi, lo, bits = beyond(x, _NEAR, [r.hi, r.lo, quadrant.as_float()], f"far_angle_{accuracy}", far)
    return Double(hi, lo), bits.as_int()


def reduce_near_32(x: Float) -> tuple[Double, Int]:
    """``r, n`` for float32 below 2^16, by fma: the first difference is exact, the second in two parts.

    Its lower part is what r lacks of the rounded product, which the first difference less r gives back, less the
    whole product. Where the first difference is the smaller, that may be off by the last bit of r.
    """
    n = nearest(x, 1.0 / _HALF_PI[0])
    high, middle, low = _HALF_PI_FLOATS
    first = n.value.fma(-high, x)
    r = first - n.value * middle
    return Double(r, n.value.fma(-low, n.value.fma(-middle, first - r))), n.integer


def _reduce_near(x: Float, accuracy: int) -> tuple[Double, Int]:
    n = nearest(x * (1.0 / _HALF_PI[0]))
    parts = _HALF_PI_PARTS[accuracy]
    if accuracy == 32:
        first = x - n.value * parts[0]
        second = n.value * parts[1]
        r = first - second
        return Double(r, (first - r) - second), n.integer
    high, middle, low = _sum_of([x, *(n.value * -part for part in parts)])
    near = two_sum(high, middle)
    return fast_two_sum(near.hi, near.lo + low), n.integer


def _sum_of(terms: Iterable[Float]) -> tuple[Float, Float, Float]:
    """The sum in three parts, each about the rounding error of the one before."""
    high, *others = terms
    middle = low = high.same(0.0)
    for term in others:
        total = two_sum(high, term)
        rest = two_sum(middle, total.lo)
        high, middle, low = total.hi, rest.hi, low + rest.lo
    return high, middle, low


def _reduce_far(x: Float, accuracy: int) -> tuple[Double, Int]:
    """The sum of the chunks' products is in quarter turns."""
    scaled, chunks = _window_32(x) if accuracy == 32 else _window_64(x)
    pieces = [scaled] if accuracy == 32 else _halves(scaled)
    products = [piece * 2.0 ** (-_CHUNK * j) * chunk for j, chunk in enumerate(chunks) for piece in pieces]
    high, middle, low = _sum_of(p - round_even(p * 0.25) * 4.0 for p in products)
    whole = nearest(high)
    near = two_sum(high - whole.value, middle)
    fraction = fast_two_sum(near.hi, near.lo + low)
    return multiply(fraction, Double(x.same(_HALF_PI[0]), x.same(_HALF_PI[1]))), whole.integer


def _halves(x: Float) -> list[Float]:
    """Two numbers of at most 26 and 27 bits whose sum is ``x``."""
    hi = (x.as_int() & (-1 << 27)).as_float()
    return [hi, x - hi]


def _window_32(x: Float) -> tuple[Float, list[Float]]:
    """The window for numbers of 24 bits below 2^128: ``x`` times 2^(-26 k), and chunks k to k + 4; those before k drop
    out."""
    scaled = x
    chunks = [x.same(c) for c in _CHUNKS[:5]]
    for k in (1, 2, 3):
        beyond = x.abs() >= 2.0 ** (51 + _CHUNK * (k - 1))
        scaled = beyond.select(x * 2.0 ** (-_CHUNK * k), scaled)
        chunks = [beyond.select(x.same(_CHUNKS[k + j]), chunk) for j, chunk in enumerate(chunks)]
    return scaled, chunks


def _window_64(x: Float) -> tuple[Float, list[Float]]:
    """``x`` times 2^(-26 k) and the chunks k to k + 7, for 53-bit numbers below 2^1024."""
    exponent = ((x.as_int() >> MANTISSA[64]) & 0x7FF) - 1023
    k = nearest((small_to_float(exponent) - 66.5) * (1.0 / _CHUNK)).integer  # from 80 on, one more every 26
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
