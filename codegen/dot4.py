"""The intrinsic ``dot4``: sums of four products of bytes, by the dot-product instruction where the target has it.

Elsewhere the bytes are widened to 16 bits, two of each word at a time, and multiplied in a form that LLVM knows for
``pmaddwd`` and its like. All is exact: no step saturates.
"""

from __future__ import annotations

from llvmlite import ir as llvm_ir

from ..base.target import Target
from .lanes import external
from .types import I16, I32, lanes_of, same_lanes, shuffle, vector_of


def dot4(
    builder: llvm_ir.IRBuilder, target: Target, total: llvm_ir.Value, a: llvm_ir.Value, b: llvm_ir.Value
) -> llvm_ir.Value:
    """``total`` plus the products of the bytes of ``a``, unsigned, with those of ``b``, signed, lane by lane."""
    lanes = lanes_of(a)
    if target.multiplies_bytes_in(lanes):
        name = f"llvm.x86.avx512.vpdpbusd.{32 * lanes}"
        return builder.call(external(builder.module, name, a.type, [a.type] * 3), [total, a, b])
    halves = vector_of(I16, 2 * lanes)
    a, b = builder.bitcast(a, halves), builder.bitcast(b, halves)
    eight = same_lanes(a, 8)
    low = _pairs(builder, builder.and_(a, same_lanes(a, 255)), builder.ashr(builder.shl(b, eight), eight), lanes)
    high = _pairs(builder, builder.lshr(a, eight), builder.ashr(b, eight), lanes)
    return builder.add(builder.add(low, high), total)


def _pairs(builder: llvm_ir.IRBuilder, a: llvm_ir.Value, b: llvm_ir.Value, lanes: int) -> llvm_ir.Value:
    """The products of 16-bit neighbours, added: as many as there are lanes."""
    wide = vector_of(I32, 2 * lanes)
    products = builder.mul(builder.sext(a, wide), builder.sext(b, wide))
    if lanes == 1:
        return builder.add(*(builder.extract_element(products, llvm_ir.Constant(I32, k)) for k in (0, 1)))
    return builder.add(*(shuffle(builder, products, products, range(k, 2 * lanes, 2)) for k in (0, 1)))
