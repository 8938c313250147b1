"""Float minimum and maximum that give NaN if either side is NaN; reciprocals of constants."""

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir as llvm_ir

from ..base.target import Target
from ..ir.expr import Binary, Broadcast, Cast, Const, Expr, Select
from .lanes import external
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


def reciprocal(divisor: Expr) -> float | None:
    """What to multiply by instead of dividing; None if the divisor is no constant, or either is no normal number.

    None for types of 16 bits, whose quotients are rounded twice as it is.
    """
    value = divisor.value if isinstance(divisor, Broadcast) else divisor
    if not isinstance(value, Const) or value.value == 0 or value.dtype.bits == 16:
        return None
    inverse = 1 / value.value
    limits = np.finfo(value.dtype.to_numpy())
    both_normal = all(limits.tiny <= abs(x) <= limits.max for x in (value.value, inverse))
    return inverse if both_normal else None


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
    if not_nan[0]:
        return builder.select(builder.fcmp_ordered(sign, a, b), a, b)
    chosen = _instruction(builder, target, op, a, b)
    if chosen is None:
        chosen = builder.select(builder.fcmp_ordered(sign, a, b), a, b)
    return builder.select(builder.fcmp_unordered("uno", a, a), a, chosen)


# The instructions of x86 on whole registers, by the bits of the register and of its elements.
_X86_INSTRUCTIONS = {
    (128, 32): "llvm.x86.sse.{}.ps",
    (128, 64): "llvm.x86.sse2.{}.pd",
    (256, 32): "llvm.x86.avx.{}.ps.256",
    (256, 64): "llvm.x86.avx.{}.pd.256",
    (512, 32): "llvm.x86.avx512.{}.ps.512",
    (512, 64): "llvm.x86.avx512.{}.pd.512",
}
_CURRENT_ROUNDING = llvm_ir.IntType(32)(4)


def _instruction(
    builder: llvm_ir.IRBuilder, target: Target, op: str, a: llvm_ir.Value, b: llvm_ir.Value
) -> llvm_ir.Value | None:
    """x86's instruction, where the operands are whole registers. LLVM would not find it again by itself.

    It joins the comparisons of two selects into one of masks, which takes longer, and reductions wait for it.
    """
    if target.arch != "x86_64" or not isinstance(a.type, llvm_ir.VectorType):
        return None
    bits = 32 if isinstance(a.type.element, llvm_ir.FloatType) else 64
    width = a.type.count * bits
    name = _X86_INSTRUCTIONS.get((width, bits))
    if name is None or width > target.vector_bits:
        return None
    args = [a, b, _CURRENT_ROUNDING] if width == 512 else [a, b]
    function = external(builder.module, name.format(op), a.type, [v.type for v in args])
    return builder.call(function, args)
