"""Integer instructions with the meaning that ``ir/expr.py`` gives them: floor division, shifts of any count, min, max.

The cheap forms (shift, mask, unsigned division) are taken where the divisor is a power of two or signs are known.
"""

from __future__ import annotations

from llvmlite import ir as llvm_ir

from ..base.dtype import DType
from .facts import Division
from .types import call_intrinsic, same_lanes


def floor_divide(
    builder: llvm_ir.IRBuilder, kind: DType, a: llvm_ir.Value, b: llvm_ir.Value, known: Division, *, modulo: bool
) -> llvm_ir.Value:
    """``a // b`` or ``a % b``, rounded towards minus infinity; for data integers a zero divisor gives 0."""
    divisor = known.divisor
    if divisor == 0:
        return same_lanes(a, 0)
    if divisor is not None and divisor > 0 and divisor & (divisor - 1) == 0:
        return _by_power_of_two(builder, kind, a, divisor, known, modulo=modulo)
    guarded = divisor is None and not kind.is_index
    zero = builder.icmp_unsigned("==", b, same_lanes(b, 0)) if guarded else None
    if guarded:
        b = _safe_divisor(builder, kind, a, b, zero)
    if not kind.is_signed or (known.a_non_negative and known.b_non_negative):
        result = builder.urem(a, b) if modulo else builder.udiv(a, b)
    elif divisor == -1:
        result = same_lanes(a, 0) if modulo else builder.sub(same_lanes(a, 0), a)
    else:
        result = _signed_floor(builder, a, b, known, modulo=modulo)
    if zero is None or modulo:
        return result
    return builder.select(zero, same_lanes(a, 0), result)


def _by_power_of_two(
    builder: llvm_ir.IRBuilder, kind: DType, a: llvm_ir.Value, divisor: int, known: Division, *, modulo: bool
) -> llvm_ir.Value:
    if modulo:
        return builder.and_(a, same_lanes(a, divisor - 1))
    shift = same_lanes(a, divisor.bit_length() - 1)
    logical = not kind.is_signed or known.a_non_negative
    return builder.lshr(a, shift) if logical else builder.ashr(a, shift)


def _safe_divisor(
    builder: llvm_ir.IRBuilder, kind: DType, a: llvm_ir.Value, b: llvm_ir.Value, zero: llvm_ir.Value
) -> llvm_ir.Value:
    """Put 1 in place of a divisor that the machine traps on: ``x % 1`` is 0, the smallest integer over 1 is itself."""
    trap = zero
    if kind.is_signed:
        lowest = builder.icmp_unsigned("==", a, same_lanes(a, -(1 << (kind.bits - 1))))
        minus_one = builder.icmp_unsigned("==", b, same_lanes(b, -1))
        trap = builder.or_(zero, builder.and_(lowest, minus_one))
    return builder.select(trap, same_lanes(b, 1), b)


def _signed_floor(
    builder: llvm_ir.IRBuilder, a: llvm_ir.Value, b: llvm_ir.Value, known: Division, *, modulo: bool
) -> llvm_ir.Value:
    """The floor, from a division that truncates: it steps down where the remainder's sign is not the divisor's."""
    remainder = builder.srem(a, b)
    if (known.divisor is not None and known.divisor > 0) or known.b_non_negative:
        wrong = builder.icmp_signed("<", remainder, same_lanes(a, 0))
    else:
        nonzero = builder.icmp_signed("!=", remainder, same_lanes(a, 0))
        wrong = builder.and_(nonzero, builder.icmp_signed("<", builder.xor(remainder, b), same_lanes(a, 0)))
    if modulo:
        return builder.select(wrong, builder.add(remainder, b), remainder)
    quotient = builder.sdiv(a, b)
    return builder.select(wrong, builder.sub(quotient, same_lanes(a, 1)), quotient)


def shift(
    builder: llvm_ir.IRBuilder, kind: DType, op: str, a: llvm_ir.Value, b: llvm_ir.Value, count: int | None
) -> llvm_ir.Value:
    """``a << b`` or ``a >> b``; a count outside the width shifts everything out, copies of the sign come in."""
    arithmetic = op == ">>" and kind.is_signed
    if arithmetic:
        limit = same_lanes(b, kind.bits - 1)
        if count is None:
            inside = builder.icmp_unsigned("<", b, limit)
            return builder.ashr(a, builder.select(inside, b, limit))
        return builder.ashr(a, b if 0 <= count < kind.bits else limit)
    shifted = builder.shl if op == "<<" else builder.lshr
    if count is not None:
        return shifted(a, b) if 0 <= count < kind.bits else same_lanes(a, 0)
    inside = builder.icmp_unsigned("<", b, same_lanes(b, kind.bits))
    return builder.select(inside, shifted(a, b), same_lanes(a, 0))


def min_max(builder: llvm_ir.IRBuilder, kind: DType, op: str, a: llvm_ir.Value, b: llvm_ir.Value) -> llvm_ir.Value:
    """``min`` or ``max`` of data integers, by LLVM's intrinsic for their signedness."""
    return call_intrinsic(builder, f"{'s' if kind.is_signed else 'u'}{op}", [a.type], a.type, [a, b])
