"""Float minimum and maximum that give NaN if either side is NaN."""

from __future__ import annotations

import math

from llvmlite import ir as llvm_ir

from ..ir.expr import Binary, Broadcast, Cast, Const, Expr, Select
from ..ir.target import Target
from .types import call_intrinsic


def never_nan(value: Expr) -> bool:
    """Whether the float expression is provably not NaN."""
    match value:
        case Const(value=number):
            return not math.isnan(number)
        case Broadcast(inner, _):
            return never_nan(inner)
        case Cast(_, inner):
            return not inner.dtype.is_float or never_nan(inner)
        case Select(_, a, b) | Binary("min" | "max", a, b):
            return never_nan(a) and never_nan(b)
        case _:
            return False


def min_max(
    builder: llvm_ir.IRBuilder,
    target: Target,
    op: str,
    operands: tuple[llvm_ir.Value, llvm_ir.Value],
    not_nan: tuple[bool, bool],
) -> llvm_ir.Value:
    """``min`` or ``max`` of float32 or float64 values.

    ARM has the instruction. x86's returns its second operand where either is NaN: with the operand that may be NaN in
    that place it is all we need, and where both may be, the first is put back if it was NaN.
    """
    a, b = operands
    if target.arch in ("aarch64", "arm64"):
        name = "minimum" if op == "min" else "maximum"
        return call_intrinsic(builder, name, [a.type], a.type, [a, b])
    sign = "<" if op == "min" else ">"
    if not_nan[1] and not not_nan[0]:
        a, b = b, a
        not_nan = (True, False)
    chosen = builder.select(builder.fcmp_ordered(sign, a, b), a, b)
    if not_nan[0]:
        return chosen
    return builder.select(builder.fcmp_unordered("uno", a, a), a, chosen)
