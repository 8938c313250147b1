"""Masked stores of narrow integers, which LLVM 22 gets wrong for AVX-512.

Where it knows a mask to have one lane, and the integers to be truncated, it stores that lane as it was before, with all
its bytes: a cast of int64 to int32 that ends with one element writes eight bytes for it, over what lies behind. Machine
code that is empty, but unknown to LLVM, keeps the truncation apart from the store.
"""

from __future__ import annotations

from llvmlite import ir as llvm_ir

from .types import shuffle

LEAST_BITS, MOST_BITS = 128, 512
"""Of vector registers. LLVM takes wider vectors apart first, and stores them right."""
WIDEST = 64
"""Bits of an integer that nothing is truncated to."""


def kept_narrow(
    builder: llvm_ir.IRBuilder, value: llvm_ir.Value, mask: llvm_ir.Value
) -> tuple[llvm_ir.Value, llvm_ir.Value]:
    """A vector to store and its mask, of as many lanes: both as they are, but for integers that LLVM might store as
    wider ones. These fill a register, and lanes that are added are not stored."""
    kind = value.type
    if not isinstance(kind.element, llvm_ir.IntType) or kind.element.width >= WIDEST or kind.count == 1:
        return value, mask
    lanes = max(1 << (kind.count - 1).bit_length(), LEAST_BITS // kind.element.width)
    if lanes * kind.element.width > MOST_BITS:
        return value, mask
    value, mask = (_filled(builder, vector, lanes) for vector in (value, mask))
    same = llvm_ir.FunctionType(value.type, [value.type])
    return builder.asm(same, "", "=v,0", [value], side_effect=False), mask


def _filled(builder: llvm_ir.IRBuilder, vector: llvm_ir.Value, lanes: int) -> llvm_ir.Value:
    """The vector with zeros behind it."""
    count = vector.type.count
    if count == lanes:
        return vector
    zeros = llvm_ir.Constant(vector.type, None)
    return shuffle(builder, vector, zeros, [min(lane, count) for lane in range(lanes)])
