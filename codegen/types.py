"""LLVM types of our dtypes, and small helpers over the builder that every emitter file uses.

A value in a register and its form in memory differ for bool only: ``i1`` and ``i8``. float16 and bfloat16 are
carried as ``i16`` bits and computed through float32, so that no target needs to know them. The narrow types are bytes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import numpy as np
from llvmlite import ir as llvm_ir

from ..base.dtype import DType
from .lanes import Splat, external

I1 = llvm_ir.IntType(1)
I8 = llvm_ir.IntType(8)
I16 = llvm_ir.IntType(16)
I32 = llvm_ir.IntType(32)
I64 = llvm_ir.IntType(64)
F32 = llvm_ir.FloatType()
F64 = llvm_ir.DoubleType()
PTR = llvm_ir.PointerType()


def size_type(module: llvm_ir.Module) -> llvm_ir.Type:
    """C's ``size_t`` on the module's target."""
    return I32 if module.triple.startswith("wasm32") else I64


def is_small_float(kind: DType) -> bool:
    """Whether the dtype is float16 or bfloat16, which are carried as i16 bits."""
    return kind.is_float and kind.bits == 16


def element_type(kind: DType) -> llvm_ir.Type:
    """The type of one lane in a register."""
    if kind.kind == "handle":
        return PTR
    if kind.is_float and kind.bits != 16:
        return F32 if kind.bits == 32 else F64
    return I8 if kind.is_narrow else llvm_ir.IntType(kind.bits)


def value_type(kind: DType) -> llvm_ir.Type:
    """The type of a value in a register."""
    return vector_of(element_type(kind), kind.lanes)


def memory_element(kind: DType) -> llvm_ir.Type:
    """The type of one lane in memory."""
    return I8 if kind.is_bool else element_type(kind)


def memory_type(kind: DType) -> llvm_ir.Type:
    """The type of a value in memory, all its lanes."""
    return vector_of(memory_element(kind), kind.lanes)


def vector_of(element: llvm_ir.Type, lanes: int) -> llvm_ir.Type:
    """LLVM's vector of so many lanes, or for one lane the element type itself."""
    return element if lanes == 1 else llvm_ir.VectorType(element, lanes)


def lanes_of(value: llvm_ir.Value) -> int:
    """How many lanes a value of LLVM has; 1 for a scalar."""
    return value.type.count if isinstance(value.type, llvm_ir.VectorType) else 1


def constant(kind: DType, number: bool | int | float) -> llvm_ir.Constant:
    """A constant of the dtype, the same in every lane."""
    if is_small_float(kind) or kind.is_narrow:
        number = int(np.asarray(number).astype(kind.to_numpy()).view(f"u{kind.storage_bytes // kind.lanes}"))
    return int_or_float(element_type(kind), number, kind.lanes)


def int_or_float(element: llvm_ir.Type, number: bool | int | float, lanes: int) -> llvm_ir.Constant:
    """A constant of an LLVM element type, splat over the lanes."""
    if isinstance(element, llvm_ir.IntType):
        scalar = llvm_ir.Constant(element, int(number))
    elif not math.isnan(number):
        scalar = llvm_ir.Constant(element, float(number))
    else:
        scalar = _NanConstant(element, float(number))
    return scalar if lanes == 1 else Splat(scalar, lanes)


class _NanConstant(llvm_ir.Constant):  # type: ignore[misc]
    """A NaN with its sign and payload kept."""

    def _get_reference(self) -> str:
        return f"0x{struct.unpack('<Q', struct.pack('<d', self.constant))[0]:016x}"


class Poison(llvm_ir.Constant):  # type: ignore[misc]
    """A value that nobody looks at: the start of a vector that is filled lane by lane."""

    def __init__(self, kind: llvm_ir.Type) -> None:
        super().__init__(kind, llvm_ir.Undefined)

    def _get_reference(self) -> str:
        return "poison"


class _Zeros(llvm_ir.Constant):  # type: ignore[misc]
    """The zero of a type, in its short spelling."""

    def __init__(self, kind: llvm_ir.Type) -> None:
        super().__init__(kind, None)

    def _get_reference(self) -> str:
        return "zeroinitializer"


def same_lanes(value: llvm_ir.Value, number: int | float) -> llvm_ir.Constant:
    """A constant of the type of ``value``."""
    kind = value.type
    if isinstance(kind, llvm_ir.VectorType):
        return int_or_float(kind.element, number, kind.count)
    return int_or_float(kind, number, 1)


def with_element(value: llvm_ir.Value, element: llvm_ir.Type) -> llvm_ir.Type:
    """The type with the lanes of ``value`` and another element."""
    return vector_of(element, lanes_of(value))


def splat(builder: llvm_ir.IRBuilder, value: llvm_ir.Value, lanes: int) -> llvm_ir.Value:
    """A vector with the scalar in every lane."""
    if lanes == 1:
        return value
    if isinstance(value, llvm_ir.Constant):
        return Splat(value, lanes)
    empty = Poison(llvm_ir.VectorType(value.type, lanes))
    single = builder.insert_element(empty, value, llvm_ir.Constant(I64, 0))
    return builder.shuffle_vector(single, empty, _Zeros(llvm_ir.VectorType(I32, lanes)))


def shuffle(builder: llvm_ir.IRBuilder, a: llvm_ir.Value, b: llvm_ir.Value, order: Sequence[int]) -> llvm_ir.Value:
    """Lanes ``order`` of the concatenation of two vectors."""
    return builder.shuffle_vector(a, b, llvm_ir.Constant(llvm_ir.VectorType(I32, len(order)), list(order)))


def concatenated(builder: llvm_ir.IRBuilder, parts: Sequence[llvm_ir.Value]) -> llvm_ir.Value:
    """The lanes of all vectors, which are a power of two, of one type."""
    while len(parts) > 1:
        whole = range(2 * parts[0].type.count)
        parts = [shuffle(builder, a, b, whole) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _overload(kind: llvm_ir.Type) -> str:
    if isinstance(kind, llvm_ir.VectorType):
        return f"v{kind.count}{_overload(kind.element)}"
    return {"ptr": "p0", "half": "f16", "float": "f32", "double": "f64"}.get(str(kind), str(kind))


def call_intrinsic(
    builder: llvm_ir.IRBuilder,
    name: str,
    overloads: Sequence[llvm_ir.Type],
    result: llvm_ir.Type,
    args: Sequence[llvm_ir.Value],
) -> llvm_ir.Value:
    """Call ``llvm.<name>`` overloaded on the types given."""
    full = ".".join(["llvm", name, *map(_overload, overloads)])
    return builder.call(external(builder.module, full, result, [a.type for a in args]), args)
