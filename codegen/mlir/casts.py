"""Conversions between dtypes: integers wrap, floats saturate into integers with NaN as 0, bool is ``!= 0``."""

from __future__ import annotations

from collections.abc import Sequence

from ...base.dtype import BOOL, FLOAT32, FLOAT64, INT32, INT64, DType
from .text import Value, Writer, type_of


def is_small_float(kind: DType) -> bool:
    """Whether the dtype is float16 or bfloat16, which are computed in float32."""
    return kind.is_float and kind.bits == 16


def widened(w: Writer, value: Value, kind: DType) -> Value:
    """The float32 of a small float; other values as they are."""
    return w.convert("arith.extf", value, type_of(FLOAT32.with_lanes(kind.lanes))) if is_small_float(kind) else value


def narrowed(w: Writer, value: Value, kind: DType) -> Value:
    """The value that ``widened`` widened, rounded back to its own dtype."""
    return w.convert("arith.truncf", value, type_of(kind)) if is_small_float(kind) else value


def convert(w: Writer, value: Value, source: DType, to: DType) -> Value:
    """``value`` of dtype ``source`` as a value of dtype ``to``, lane by lane."""
    if source.element is to.element:
        return value
    if to.is_bool:
        zero = w.constant(source, 0)
        return w.compare("arith.cmpf une" if source.is_float else "arith.cmpi ne", value, zero, to)
    if source.is_float:
        return _float_to_float(w, value, source, to) if to.is_float else _float_to_int(w, value, source, to)
    if source.is_index:
        wide = w.convert("arith.index_cast", value, type_of(INT64.with_lanes(source.lanes)))
        return convert(w, wide, INT64.with_lanes(source.lanes), to)
    signed = source.is_signed and not source.is_bool
    if to.is_float:
        return _int_to_float(w, value, source, to)
    if to.bits < source.bits:
        return w.convert("arith.trunci", value, type_of(to))
    wide = value if to.bits == source.bits else _extended(w, value, to, signed=signed)
    return w.convert("arith.index_cast", wide, type_of(to)) if to.is_index else wide


def _extended(w: Writer, value: Value, to: DType, *, signed: bool) -> Value:
    kind = INT64.with_lanes(to.lanes) if to.is_index else to
    return w.convert("arith.extsi" if signed else "arith.extui", value, type_of(kind))


def _int_to_float(w: Writer, value: Value, source: DType, to: DType) -> Value:
    op = "arith.sitofp" if source.is_signed and not source.is_bool else "arith.uitofp"
    if not is_small_float(to):
        return w.convert(op, value, type_of(to))
    if to.kind == "bfloat" and source.bits >= 32:
        name = "to_odd_float64" if op == "arith.sitofp" else "to_odd_float64_unsigned"
        wide = w.call(name, [value], _double(to), lambda h, args: _odd_double(h, args, source, op))
        return narrow_double(w, wide, to)
    return w.convert("arith.truncf", w.convert(op, value, type_of(FLOAT32.with_lanes(to.lanes))), type_of(to))


def _odd_double(w: Writer, args: Sequence[Value], source: DType, op: str) -> Value:
    """An integer as float64; where that is inexact, its last bit is 1, so that rounding it again rounds only once."""
    (value,) = args
    if source.bits == 64:
        low = w.constant(source, 0x7FF)  # what the 53 bits of a float64 leave out of 64
        sticky = w.binary("arith.addi", w.binary("arith.andi", value, low), low)
        odd = w.binary("arith.andi", w.binary("arith.ori", value, sticky), w.constant(source, ~0x7FF))
        top = w.binary("arith.shrsi" if source.is_signed else "arith.shrui", value, w.constant(source, 53))
        one, mask = w.constant(source, 1), BOOL.with_lanes(source.lanes)
        large = w.compare("arith.cmpi ugt", w.binary("arith.addi", top, one), one, mask)
        value = w.select(large, odd, value)
    return w.convert(op, value, _double(source))


def narrow_double(w: Writer, value: Value, to: DType) -> Value:
    """float64 to float16 or bfloat16, rounded once: no instruction and not every run-time library can do that."""
    return w.call(f"to_{to.element}", [value], type_of(to), lambda h, args: _narrowed_double(h, args, to))


def _narrowed_double(w: Writer, args: Sequence[Value], to: DType) -> Value:
    """The detour over float32 rounds to odd, so that the second rounding decides."""
    (value,) = args
    mask, bits, single = (kind.with_lanes(to.lanes) for kind in (BOOL, INT32, FLOAT32))
    near = w.convert("arith.truncf", value, type_of(single))
    back = w.convert("arith.extf", near, value.type)
    inexact = w.compare("arith.cmpf one", back, value, mask)
    above = w.compare("arith.cmpf ogt", w.unary("math.absf", back), w.unary("math.absf", value), mask)
    whole = w.convert("arith.bitcast", near, type_of(bits))
    truncated = w.binary("arith.subi", whole, w.convert("arith.extui", above, type_of(bits)))
    odd = w.binary("arith.ori", truncated, w.convert("arith.extui", inexact, type_of(bits)))
    return w.convert("arith.truncf", w.convert("arith.bitcast", odd, type_of(single)), type_of(to))


def _double(kind: DType) -> str:
    return type_of(FLOAT64.with_lanes(kind.lanes))


def _float_to_float(w: Writer, value: Value, source: DType, to: DType) -> Value:
    if is_small_float(to) and source.bits == 64:
        return narrow_double(w, value, to)
    if source.bits == to.bits:  # float16 and bfloat16
        return w.convert("arith.truncf", widened(w, value, source), type_of(to))
    return w.convert("arith.extf" if to.bits > source.bits else "arith.truncf", value, type_of(to))


def _float_to_int(w: Writer, value: Value, source: DType, to: DType) -> Value:
    value = widened(w, value, source)
    wide = FLOAT32.with_lanes(source.lanes) if is_small_float(source) else source
    data = INT64.with_lanes(to.lanes) if to.is_index else to
    name = f"to_{data.element}"
    made = w.call(name, [value], type_of(data), lambda h, args: _saturated(h, args, wide, data))
    return w.convert("arith.index_cast", made, type_of(to)) if to.is_index else made


def _saturated(w: Writer, args: Sequence[Value], source: DType, to: DType) -> Value:
    """What is out of range has no defined value, but one that a select leaves alone."""
    (value,) = args
    low, high = to.element.int_range() or (0, 0)
    mask = BOOL.with_lanes(to.lanes)
    inside = w.convert("arith.fptosi" if to.is_signed else "arith.fptoui", value, type_of(to))
    above = w.compare("arith.cmpf oge", value, w.constant(source, float(high + 1)), mask)
    below = w.compare("arith.cmpf olt", value, w.constant(source, float(low)), mask)
    unordered = w.compare("arith.cmpf uno", value, value, mask)
    bounded = w.select(below, w.constant(to, low), w.select(above, w.constant(to, high), inside))
    return w.select(unordered, w.constant(to, 0), bounded)
