"""The intrinsic ``fma``: a · b + c rounded once, whether or not the target has the instruction.

Without it, float32 and the half formats go through float64, whose sum is rounded to odd before the last rounding
(S. Boldo, G. Melquiond, "Emulation of a FMA and correctly rounded sums", IEEE Trans. Computers 57, 2008); float64 calls
``fma`` of the C library, lane by lane: the one library function that our expansions ever call.
"""

from __future__ import annotations

from llvmlite import ir as llvm_ir

from ..lanes import Float, Mask, external, float_type
from .reduction import two_sum


def fma(a: Float, b: Float, c: Float) -> Float:
    """a · b + c rounded once: by the instruction where the target has it; for float32 without it in float64, whose sum
    is rounded to odd; for float64 without it by the C library."""
    if a.lanes.target.has_fma:
        return a.fma(b, c)
    return _sum_to_odd(a, b, c).convert(32) if a.bits == 32 else _library_fma(a, b, c)


def fma_for_half(a: Float, b: Float, c: Float) -> Float:
    """a · b + c in float32, rounded to odd: rounding the result to a half format is then the one rounding."""
    return _narrow_to_odd(_sum_to_odd(a, b, c))


def _sum_to_odd(a: Float, b: Float, c: Float) -> Float:
    """a · b + c of float32 values as a float64 rounded to odd: the product is exact, the error of the sum is known."""
    total = two_sum(a.convert(64) * b.convert(64), c.convert(64))
    # The error of an infinite sum is NaN, which differs from 0 in no ordered way: infinities stay.
    inward = (total.lo.as_int() ^ total.hi.as_int()) < 0
    return _to_odd(total.hi, total.lo.differs(0.0), inward)


def _narrow_to_odd(x: Float) -> Float:
    near = x.convert(32)
    back = near.convert(64)
    return _to_odd(near, back.differs(x), back.abs() > x.abs())


def _to_odd(near: Float, inexact: Mask, inward: Mask) -> Float:
    """Round to odd what is rounded to nearest: if inexact and even, it becomes its neighbour inward or outward."""
    bits = near.as_int()
    step = inward.select_int(bits - 1, bits + 1)
    return (inexact & (bits & 1).equals(0)).select_int(step, bits).as_float()


def _library_fma(a: Float, b: Float, c: Float) -> Float:
    lanes, double = a.lanes, float_type(64)
    builder = lanes.builder
    function = external(builder.module, "fma", double, [double] * 3)
    if lanes.count == 1:
        return Float(lanes, builder.call(function, [a.value, b.value, c.value]), 64)
    result: llvm_ir.Value = llvm_ir.Constant(lanes.type_of(double), llvm_ir.Undefined)
    for i in range(lanes.count):
        at = llvm_ir.Constant(llvm_ir.IntType(32), i)
        each = [builder.extract_element(v.value, at) for v in (a, b, c)]
        result = builder.insert_element(result, builder.call(function, each), at)
    return Float(lanes, result, 64)
