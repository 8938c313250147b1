"""float16 and bfloat16, carried as i16 bits: conversions to and from float32, by an instruction or by integers.

LLVM's own truncations to half and bfloat call compiler-rt functions that a process may not have.
"""

from __future__ import annotations

from llvmlite import ir as llvm_ir

from ..base.dtype import DType
from ..base.target import Target
from .types import F32, F64, I16, I32, call_intrinsic, same_lanes, with_element

_HALF = llvm_ir.HalfType()


def has_half_conversions(target: Target) -> bool:
    """Whether the target converts between float16 and float32 by instructions."""
    match target.arch:
        case "x86_64" | "i686":
            return target.has("f16c")
        case "aarch64" | "arm64":
            return True
        case "riscv64":
            return target.has("zfh", "zvfh")
        case _:
            return False


def widen(builder: llvm_ir.IRBuilder, kind: DType, bits: llvm_ir.Value, target: Target) -> llvm_ir.Value:
    """The float32 value of float16 or bfloat16 bits; exact."""
    if kind.kind == "bfloat":
        wide = builder.zext(bits, with_element(bits, I32))
        return builder.bitcast(builder.shl(wide, same_lanes(wide, 16)), with_element(bits, F32))
    if has_half_conversions(target):
        return builder.fpext(builder.bitcast(bits, with_element(bits, _HALF)), with_element(bits, F32))
    return _half_to_float(builder, bits)


def narrow(builder: llvm_ir.IRBuilder, kind: DType, value: llvm_ir.Value, target: Target) -> llvm_ir.Value:
    """float32 rounded to nearest even, as float16 or bfloat16 bits; NaN stays NaN."""
    if kind.kind == "bfloat":
        return _float_to_bfloat(builder, value)
    if has_half_conversions(target):
        if target.arch == "x86_64" and not target.has("avx512fp16"):
            # Else instruction selection may sink the rounding into a copysign of float64, whose sign it then rounds to
            # half by a call of __truncdfhf2.
            value = call_intrinsic(builder, "arithmetic.fence", [value.type], value.type, [value])
        return builder.bitcast(builder.fptrunc(value, with_element(value, _HALF)), with_element(value, I16))
    return _float_to_half(builder, value)


def narrow_double(builder: llvm_ir.IRBuilder, kind: DType, value: llvm_ir.Value, target: Target) -> llvm_ir.Value:
    """float64 to float16 or bfloat16 bits, rounded once: the detour over float32 rounds to odd, so that the second
    rounding decides."""
    single = builder.fptrunc(value, with_element(value, F32))
    back = builder.fpext(single, with_element(value, F64))
    inexact = builder.fcmp_ordered("!=", back, value)
    sizes = [call_intrinsic(builder, "fabs", [v.type], v.type, [v]) for v in (back, value)]
    above = builder.fcmp_ordered(">", *sizes)
    i32 = with_element(value, I32)
    bits = builder.bitcast(single, i32)
    truncated = builder.sub(bits, builder.zext(above, i32))
    odd = builder.or_(truncated, builder.zext(inexact, i32))
    return narrow(builder, kind, builder.bitcast(odd, with_element(value, F32)), target)


def _float_to_bfloat(builder: llvm_ir.IRBuilder, value: llvm_ir.Value) -> llvm_ir.Value:
    """Add half a unit (less one where the last kept bit is even), then cut; a NaN is made quiet instead."""
    bits = builder.bitcast(value, with_element(value, I32))
    last = builder.and_(builder.lshr(bits, same_lanes(bits, 16)), same_lanes(bits, 1))
    rounded = builder.add(bits, builder.add(last, same_lanes(bits, 0x7FFF)))
    quiet = builder.or_(bits, same_lanes(bits, 0x00400000))
    chosen = builder.select(builder.fcmp_unordered("uno", value, value), quiet, rounded)
    return builder.trunc(builder.lshr(chosen, same_lanes(bits, 16)), with_element(value, I16))


def _half_to_float(builder: llvm_ir.IRBuilder, half: llvm_ir.Value) -> llvm_ir.Value:
    """Move exponent and fraction up and rescale by 2**112, which also normalises subnormals; infinities and NaN, whose
    exponent is full, are then lifted to float32's full exponent."""
    i32, f32 = with_element(half, I32), with_element(half, F32)
    wide = builder.zext(half, i32)
    magnitude = builder.shl(builder.and_(wide, same_lanes(wide, 0x7FFF)), same_lanes(wide, 13))
    floating = builder.bitcast(magnitude, f32)
    scaled = builder.bitcast(builder.fmul(floating, same_lanes(floating, 2.0**112)), i32)
    special = builder.icmp_unsigned(">=", magnitude, same_lanes(wide, 0x7C00 << 13))
    lifted = builder.or_(magnitude, same_lanes(wide, 0x7F800000))
    sign = builder.shl(builder.and_(wide, same_lanes(wide, 0x8000)), same_lanes(wide, 16))
    return builder.bitcast(builder.or_(builder.select(special, lifted, scaled), sign), f32)


def _float_to_half(builder: llvm_ir.IRBuilder, value: llvm_ir.Value) -> llvm_ir.Value:
    """Three cases, each exact up to one rounding: normal results round in the integer domain; subnormal ones by adding
    0.5, whose last place is the smallest float16; results beyond the largest become infinity, NaN stays NaN."""
    i32 = with_element(value, I32)
    bits = builder.bitcast(value, i32)
    sign = builder.and_(builder.lshr(bits, same_lanes(bits, 16)), same_lanes(bits, 0x8000))
    magnitude = builder.and_(bits, same_lanes(bits, 0x7FFFFFFF))
    last = builder.and_(builder.lshr(magnitude, same_lanes(bits, 13)), same_lanes(bits, 1))
    rebased = builder.add(magnitude, same_lanes(bits, 0xFFF - (112 << 23)))
    normal = builder.lshr(builder.add(rebased, last), same_lanes(bits, 13))
    as_float = builder.bitcast(magnitude, with_element(value, F32))
    shifted = builder.bitcast(builder.fadd(as_float, same_lanes(as_float, 0.5)), i32)
    subnormal = builder.sub(shifted, same_lanes(bits, 0x3F000000))
    is_nan = builder.icmp_unsigned(">", magnitude, same_lanes(bits, 0x7F800000))
    special = builder.select(is_nan, same_lanes(bits, 0x7E00), same_lanes(bits, 0x7C00))
    small = builder.icmp_unsigned("<", magnitude, same_lanes(bits, 113 << 23))
    large = builder.icmp_unsigned(">=", magnitude, same_lanes(bits, (127 + 16) << 23))
    finite = builder.select(small, subnormal, normal)
    return builder.trunc(builder.or_(builder.select(large, special, finite), sign), with_element(value, I16))
