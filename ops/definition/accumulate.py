"""The dtypes of sums of products, and of what they are kept in; shared by the operators that sum many products."""

from __future__ import annotations

from collections.abc import Sequence

from ... import te
from ...base.dtype import INT32, DType, dtype
from ...base.errors import TypeInferenceError
from ...graph.types import TensorType
from ...ir.expr import Expr
from .relations import same_dtype, same_extent

OUT_DTYPE = "dtype of the result; empty: int32 if the operands are 8-bit integers, else theirs"


def is_byte(kind: DType) -> bool:
    """Whether values are 8-bit integers, signed or not."""
    return kind.is_data_int and kind.bits == 8


def product_dtype(types: Sequence[TensorType], names: Sequence[str], out_dtype: str = "") -> DType:
    """The dtype of sums of products of two operands: int32 for 8-bit integers, whose signs may differ; else theirs.

    Those of the half-precision formats are kept in float32, and may stay so. Raises ``TypeInferenceError`` for operands
    that do not go together or are no numbers, and for another ``out_dtype``.
    """
    if all(is_byte(t.dtype) for t in types):
        kind = INT32
    else:
        same_dtype(types, names)
        kind = types[0].dtype
    if not (kind.is_float or kind.is_data_int):
        raise TypeInferenceError(f"a product is of numbers, not of {kind}")
    if out_dtype == str(accumulator(kind)):
        return accumulator(kind)
    if out_dtype not in ("", str(kind)):
        factors = " and ".join(str(t.dtype) for t in types)
        raise TypeInferenceError(f"out_dtype is {out_dtype}, but sums of products of {factors} are {kind}; cast them")
    return kind


def check_contraction(a: Expr, b: Expr, left: str, right: str) -> None:
    """The axes to multiply over must agree in extent, as far as both are known."""
    same_extent(a, b, f"the axes to multiply over differ in extent: {a} of {left} and {b} of {right}")


def accumulator(kind: DType) -> DType:
    """float32 for the half-precision formats, else the dtype itself."""
    return dtype("float32") if kind.is_float and kind.storage_bits < 32 else kind


def widened(value: Expr, result: DType | None = None) -> Expr:
    """A value in the dtype that sums of dtype ``result``, its own if not given, are kept in."""
    return te.cast(value, accumulator(result or value.dtype))


def narrowed(sums: te.Tensor, kind: DType, name: str) -> te.Tensor:
    """The sums in the dtype that the operator gives; they themselves if they are of it."""
    return sums if sums.dtype is kind else te.compute(sums.shape, lambda *i: te.cast(sums[i], kind), name=name)
