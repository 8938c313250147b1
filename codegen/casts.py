"""Conversions between dtypes: integers wrap, floats saturate into integers with NaN as 0, bool is ``!= 0``."""

from __future__ import annotations

import numpy as np
from llvmlite import ir as llvm_ir

from ..base.dtype import INT64, DType
from ..base.target import Target
from .small_floats import narrow, narrow_double, widen
from .types import F64, I32, call_intrinsic, element_type, is_small_float, same_lanes, with_element


def convert(
    builder: llvm_ir.IRBuilder, target: Target, value: llvm_ir.Value, source: DType, to: DType
) -> llvm_ir.Value:
    """``value`` of dtype ``source`` as a value of dtype ``to``, lane by lane."""
    if source.element is to.element:
        return value
    if is_small_float(source):
        value = widen(builder, source, value, target)
        source = _float32(source)
    if to.is_bool:
        if source.is_float:
            return builder.fcmp_unordered("!=", value, same_lanes(value, 0.0))
        return builder.icmp_unsigned("!=", value, same_lanes(value, 0))
    if to.is_float:
        return _to_float(builder, target, value, source, to)
    if source.is_float:
        return _float_to_int(builder, value, source, to)
    return _resize(builder, value, source, to)


def _float32(kind: DType) -> DType:
    return DType("float", 32, kind.lanes)


def _resize(builder: llvm_ir.IRBuilder, value: llvm_ir.Value, source: DType, to: DType) -> llvm_ir.Value:
    wanted = with_element(value, element_type(to))
    if to.bits < source.bits:
        return builder.trunc(value, wanted)
    if to.bits == source.bits:
        return value
    signed = source.is_signed and not source.is_bool
    return builder.sext(value, wanted) if signed else builder.zext(value, wanted)


def _to_float(
    builder: llvm_ir.IRBuilder, target: Target, value: llvm_ir.Value, source: DType, to: DType
) -> llvm_ir.Value:
    if is_small_float(to):
        if source.is_float and source.bits == 64:
            return narrow_double(builder, to, value, target)
        if not source.is_float and source.bits >= 32 and to.kind == "bfloat":
            return narrow_double(builder, to, _to_odd_double(builder, value, source), target)
        return narrow(builder, to, _to_float(builder, target, value, source, _float32(to)), target)
    wanted = with_element(value, element_type(to))
    if source.is_float:
        if source.bits == to.bits:
            return value
        return builder.fpext(value, wanted) if to.bits > source.bits else builder.fptrunc(value, wanted)
    signed = source.is_signed and not source.is_bool
    return builder.sitofp(value, wanted) if signed else builder.uitofp(value, wanted)


def _to_odd_double(builder: llvm_ir.IRBuilder, value: llvm_ir.Value, source: DType) -> llvm_ir.Value:
    """An integer as float64; where that is inexact, its last bit is 1, so that rounding it again rounds only once.

    float16 needs none of this: integers that float32 does not hold are beyond its range.
    """
    if source.bits == 64:
        low = same_lanes(value, 0x7FF)  # what the 53 bits of a float64 leave out of 64
        sticky = builder.add(builder.and_(value, low), low)
        odd = builder.and_(builder.or_(value, sticky), builder.not_(low))
        top = (builder.ashr if source.is_signed else builder.lshr)(value, same_lanes(value, 53))
        # -1, 0 and, of unsigned ones, 0: the value fits as it is
        large = builder.icmp_unsigned(">", builder.add(top, same_lanes(top, 1)), same_lanes(top, 1))
        value = builder.select(large, odd, value)
    wanted = with_element(value, F64)
    return builder.sitofp(value, wanted) if source.is_signed else builder.uitofp(value, wanted)


def _float_to_int(builder: llvm_ir.IRBuilder, value: llvm_ir.Value, source: DType, to: DType) -> llvm_ir.Value:
    wanted = with_element(value, element_type(to))
    if to.bits < 32:
        return builder.trunc(_clamped_to_int(builder, value, source, to), wanted)
    if isinstance(wanted, llvm_ir.VectorType):
        return _clamped_to_int(builder, value, source, to)
    name = "fptosi.sat" if to.is_signed else "fptoui.sat"
    return call_intrinsic(builder, name, [wanted, value.type], wanted, [value])


def _clamped_to_int(builder: llvm_ir.IRBuilder, value: llvm_ir.Value, source: DType, to: DType) -> llvm_ir.Value:
    """The integer that a float is in a dtype, of which those of fewer bits are still int32: some instructions on x86,
    where LLVM converts vectors one lane after the other if it is to saturate."""
    least, most = (INT64 if to.is_index else to).int_range() or (0, 0)
    below = _float_up_to(most, source)
    low, high = same_lanes(value, float(least)), same_lanes(value, below)
    if to.is_signed:
        value = builder.select(builder.fcmp_ordered("ord", value, value), value, same_lanes(value, 0.0))
    beyond = builder.fcmp_ordered(">", value, high)
    value = builder.select(builder.fcmp_ordered(">", value, low), value, low)  # NaN becomes the smallest, 0
    value = builder.select(builder.fcmp_ordered("<", value, high), value, high)
    as_int = builder.fptosi if to.is_signed or to.bits < 32 else builder.fptoui
    number = as_int(value, with_element(value, I32 if to.bits < 32 else element_type(to)))
    return number if below == most else builder.select(beyond, same_lanes(number, most), number)


def _float_up_to(limit: int, kind: DType) -> float:
    """The largest float of a dtype, float32 or float64, that is no larger than an integer."""
    as_float = np.float64(limit) if kind.bits == 64 else np.float32(limit)
    return float(as_float) if int(as_float) <= limit else float(np.nextafter(as_float, as_float.dtype.type(0)))


def widen_small(builder: llvm_ir.IRBuilder, target: Target, value: llvm_ir.Value, kind: DType) -> llvm_ir.Value:
    """The float32 in which values of a small float dtype are computed; other dtypes stay as they are."""
    return widen(builder, kind, value, target) if is_small_float(kind) else value


def narrow_small(builder: llvm_ir.IRBuilder, target: Target, value: llvm_ir.Value, kind: DType) -> llvm_ir.Value:
    """The value that ``widen_small`` widened, rounded back to its own dtype."""
    return narrow(builder, kind, value, target) if is_small_float(kind) else value
