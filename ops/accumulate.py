"""In which dtype sums are kept: shared by the operators that sum many terms."""

from __future__ import annotations

from .. import te
from ..ir.dtype import DType, dtype
from ..ir.expr import Expr


def accumulator(kind: DType) -> DType:
    """float32 for the half-precision formats, else the dtype itself."""
    return dtype("float32") if kind.is_float and kind.storage_bits < 32 else kind


def widened(value: Expr) -> Expr:
    """A value in the dtype that sums of it are kept in."""
    kind = accumulator(value.dtype)
    return value if kind is value.dtype else te.cast(value, kind)


def narrowed(sums: te.Tensor, kind: DType, name: str) -> te.Tensor:
    """The sums in the dtype that the operator gives; they themselves if they are of it."""
    return sums if sums.dtype is kind else te.compute(sums.shape, lambda *i: te.cast(sums[i], kind), name=name)
