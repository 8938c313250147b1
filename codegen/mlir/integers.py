"""Integer operations with the meaning that ``ir/expr.py`` gives them, where those of MLIR leave cases undefined.

What takes several operations is a helper function, so that the code that uses it stays readable.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...base.dtype import BOOL, DType
from ..facts import Division
from .text import Value, Writer, type_of

_SHIFTS = {"<<": "arith.shli", ">>": "arith.shrui"}


def floor_divide(w: Writer, kind: DType, a: Value, b: Value, known: Division, *, modulo: bool) -> Value:
    """``a // b`` or ``a % b``, rounded towards minus infinity; for data integers a zero divisor gives 0."""
    if known.divisor == 0:
        return w.constant(kind, 0)
    if known.divisor is None and not kind.is_index:
        name = f"{'floormod' if modulo else 'floordiv'}{'' if kind.is_signed else '_unsigned'}"
        return w.call(name, [a, b], a.type, lambda h, args: _guarded(h, kind, args, modulo=modulo))
    if known.divisor == -1:
        zero = w.constant(kind, 0)
        return zero if modulo else w.binary("arith.subi", zero, a)
    if not kind.is_signed or (known.a_non_negative and known.b_non_negative):
        return w.binary("arith.remui" if modulo else "arith.divui", a, b)
    return _floor(w, a, b, modulo=modulo)


def _floor(w: Writer, a: Value, b: Value, *, modulo: bool) -> Value:
    quotient = w.binary("arith.floordivsi", a, b)
    return w.binary("arith.subi", a, w.binary("arith.muli", quotient, b)) if modulo else quotient


def _guarded(w: Writer, kind: DType, args: Sequence[Value], *, modulo: bool) -> Value:
    """Put 1 in place of a divisor that is undefined: ``x % 1`` is 0, and the smallest integer over 1 is itself."""
    a, b = args
    mask = BOOL.with_lanes(kind.lanes)
    zero, one = w.constant(kind, 0), w.constant(kind, 1)
    is_zero = w.compare("arith.cmpi eq", b, zero, mask)
    trap = is_zero
    if kind.is_signed:
        lowest = w.compare("arith.cmpi eq", a, w.constant(kind, -(1 << (kind.bits - 1))), mask)
        minus_one = w.compare("arith.cmpi eq", b, w.constant(kind, -1), mask)
        trap = w.binary("arith.ori", is_zero, w.binary("arith.andi", lowest, minus_one))
    safe = w.select(trap, one, b)
    if kind.is_signed:
        result = _floor(w, a, safe, modulo=modulo)
    else:
        result = w.binary("arith.remui" if modulo else "arith.divui", a, safe)
    return result if modulo else w.select(is_zero, zero, result)


def shift(w: Writer, kind: DType, op: str, a: Value, b: Value, count: int | None) -> Value:
    """``a << b`` or ``a >> b``; a count outside the width shifts everything out, copies of the sign come in."""
    arithmetic = op == ">>" and kind.is_signed
    mnemonic = "arith.shrsi" if arithmetic else _SHIFTS[op]
    if count is None:
        name = mnemonic.removeprefix("arith.")
        return w.call(name, [a, b], a.type, lambda h, args: _any_shift(h, kind, mnemonic, args))
    if 0 <= count < kind.bits:
        return w.binary(mnemonic, a, b)
    return w.binary(mnemonic, a, w.constant(kind, kind.bits - 1)) if arithmetic else w.constant(kind, 0)


def _any_shift(w: Writer, kind: DType, mnemonic: str, args: Sequence[Value]) -> Value:
    a, b = args
    mask = BOOL.with_lanes(kind.lanes)
    last = w.constant(kind, kind.bits - 1)
    inside = w.compare("arith.cmpi ule", b, last, mask)
    shifted = w.binary(mnemonic, a, w.select(inside, b, last))
    return shifted if mnemonic == "arith.shrsi" else w.select(inside, shifted, w.constant(kind, 0))


def min_max(w: Writer, kind: DType, op: str, a: Value, b: Value) -> Value:
    """``min`` or ``max`` of data integers, by arith's operation for their signedness."""
    return w.binary(f"arith.{op}{'si' if kind.is_signed else 'ui'}", a, b)


def dot4(w: Writer, kind: DType, args: Sequence[Value]) -> Value:
    """The sum of the products of a's four bytes, unsigned, with those of b, signed."""
    a, b = args
    total: Value | None = None
    for byte in range(4):
        unsigned = w.binary("arith.andi", w.binary("arith.shrui", a, w.constant(kind, 8 * byte)), w.constant(kind, 255))
        top = w.binary("arith.shli", b, w.constant(kind, 24 - 8 * byte))
        product = w.binary("arith.muli", unsigned, w.binary("arith.shrsi", top, w.constant(kind, 24)))
        total = product if total is None else w.binary("arith.addi", total, product)
    assert total is not None
    return total


def pair(w: Writer, kind: DType, args: Sequence[Value]) -> Value:
    """The words, of dtype ``kind``, whose low and high halves are the bits of two bfloat16 numbers."""
    half = type_of(DType("int", 16, kind.lanes))
    low, high = (w.convert("arith.extui", w.convert("arith.bitcast", value, half), type_of(kind)) for value in args)
    return w.binary("arith.ori", low, w.binary("arith.shli", high, w.constant(kind, 16)))


def dot2(w: Writer, kind: DType, args: Sequence[Value]) -> Value:
    """The sum of the products of the two bfloat16 numbers in each word: first of the high halves, then of the low."""
    single = type_of(DType("float", 32, kind.lanes))
    mask, sixteen = w.constant(kind, -(1 << 16)), w.constant(kind, 16)
    highs = [w.convert("arith.bitcast", w.binary("arith.andi", word, mask), single) for word in args]
    lows = [w.convert("arith.bitcast", w.binary("arith.shli", word, sixteen), single) for word in args]
    high, low = (w.binary("arith.mulf", *halves) for halves in (highs, lows))
    return w.binary("arith.addf", high, low)
