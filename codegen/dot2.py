"""The intrinsics ``pair`` and ``dot2``: sums of two products of bfloat16, by the instruction where the target has it.

Elsewhere the halves of a word become float32, which is to move bits, and are multiplied as such.
"""

from __future__ import annotations

from llvmlite import ir as llvm_ir

from ..artifact.options import CodegenOptions
from ..base.target import Target
from .lanes import external
from .types import F32, I32, call_intrinsic, int_or_float, lanes_of, same_lanes, vector_of, with_element

HIGH = 0xFFFF0000


class _BFloat(llvm_ir.Type):  # type: ignore[misc]
    """LLVM's bfloat, which llvmlite has no class for."""

    def _to_string(self) -> str:
        return "bfloat"


_BFLOAT = _BFloat()


def pair(builder: llvm_ir.IRBuilder, low: llvm_ir.Value, high: llvm_ir.Value) -> llvm_ir.Value:
    """The words of which the low and high halves are given, as i16."""
    low, high = (builder.zext(half, with_element(half, I32)) for half in (low, high))
    return builder.or_(low, builder.shl(high, same_lanes(high, 16)))


def dot2(
    builder: llvm_ir.IRBuilder,
    target: Target,
    options: CodegenOptions,
    total: llvm_ir.Value | None,
    a: llvm_ir.Value,
    b: llvm_ir.Value,
) -> llvm_ir.Value:
    """``total``, if there is one, plus the products of the high halves, plus those of the low halves, lane by lane."""
    lanes = lanes_of(a)
    strict = options.precision == "strict"
    if not strict and has_instruction(target, lanes):
        sums, words = vector_of(F32, lanes), llvm_ir.VectorType(_BFLOAT, 2 * lanes)
        name = f"llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}"
        start = int_or_float(F32, 0.0, lanes) if total is None else total
        factors = [builder.bitcast(x, words) for x in (a, b)]
        return builder.call(external(builder.module, name, sums, [sums, words, words]), [start, *factors])
    for half in (_high, _low):
        x, y = half(builder, a), half(builder, b)
        if total is None:
            total = builder.fmul(x, y)
        elif strict or not target.has_fma:
            total = builder.fadd(total, builder.fmul(x, y))
        else:
            total = call_intrinsic(builder, "fma", [x.type], x.type, [x, y, total])
    return total


def has_instruction(target: Target, lanes: int) -> bool:
    """Whether the target multiplies pairs of bfloat16 in vectors of so many sums."""
    if target.arch != "x86_64" or not target.has("avx512bf16"):
        return False
    return lanes == 16 or (lanes in (4, 8) and target.has("avx512vl"))


def _high(builder: llvm_ir.IRBuilder, word: llvm_ir.Value) -> llvm_ir.Value:
    return builder.bitcast(builder.and_(word, same_lanes(word, HIGH)), with_element(word, F32))


def _low(builder: llvm_ir.IRBuilder, word: llvm_ir.Value) -> llvm_ir.Value:
    return builder.bitcast(builder.shl(word, same_lanes(word, 16)), with_element(word, F32))
