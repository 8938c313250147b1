"""Masked loads and stores by LLVM's intrinsics: lanes that a mask switches off touch no memory."""

from __future__ import annotations

from llvmlite import ir as llvm_ir

from ..base.target import Target
from .lanes import Splat
from .narrow_stores import kept_narrow
from .types import I32, I64, PTR, Poison, call_intrinsic, int_or_float, lanes_of, splat


def masked_load(
    builder: llvm_ir.IRBuilder, pointer: llvm_ir.Value, kind: llvm_ir.Type, align: int, mask: llvm_ir.Value
) -> llvm_ir.Value:
    """A value of a scalar or vector type; lanes that the mask switches off are zero."""
    if not isinstance(kind, llvm_ir.VectorType):
        single = masked_load(builder, pointer, llvm_ir.VectorType(kind, 1), align, _one_lane(builder, mask))
        return builder.extract_element(single, llvm_ir.Constant(I64, 0))
    mask = splat(builder, mask, kind.count) if lanes_of(mask) != kind.count else mask
    args = [pointer, llvm_ir.Constant(I32, align), mask, zeros(kind)]
    return call_intrinsic(builder, "masked.load", [kind, PTR], kind, args)


def masked_store(
    builder: llvm_ir.IRBuilder,
    target: Target,
    pointer: llvm_ir.Value,
    value: llvm_ir.Value,
    align: int,
    mask: llvm_ir.Value,
) -> None:
    """Store the lanes of a value, a scalar or a vector, that the mask leaves on."""
    if not isinstance(value.type, llvm_ir.VectorType):
        value, mask = _one_lane(builder, value), _one_lane(builder, mask)
    mask = splat(builder, mask, value.type.count) if lanes_of(mask) != value.type.count else mask
    if target.has("avx512f"):
        value, mask = kept_narrow(builder, value, mask)
    args = [value, pointer, llvm_ir.Constant(I32, align), mask]
    call_intrinsic(builder, "masked.store", [value.type, PTR], llvm_ir.VoidType(), args)


def zeros(kind: llvm_ir.VectorType) -> llvm_ir.Constant:
    """A vector of zeros."""
    return Splat(int_or_float(kind.element, 0, 1), kind.count)


def _one_lane(builder: llvm_ir.IRBuilder, value: llvm_ir.Value) -> llvm_ir.Value:
    return builder.insert_element(Poison(llvm_ir.VectorType(value.type, 1)), value, llvm_ir.Constant(I64, 0))
