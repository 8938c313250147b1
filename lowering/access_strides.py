"""How reads move through memory as an axis runs: what decides which axis makes good vector lanes."""

from __future__ import annotations

from ..ir.expr import Expr, TensorRead, Var, const_int
from ..ir.visit import free_vars, tensor_reads
from .passes.linear import affine_in


def stride_along(read: TensorRead, var: Var) -> int | None:
    """By how many elements a read moves when ``var`` grows by one; 0 if it stays; None where that is no number."""
    total, step = 0, 1
    sized = True
    for index, extent in zip(reversed(read.indices), reversed(read.tensor.shape), strict=True):
        if var in set(free_vars(index)):
            form = affine_in(index, var)
            if form is None or not sized:
                return None
            total += form[0] * step
        number = const_int(extent)
        sized = sized and number is not None
        step *= number if number is not None else 0
    return total


def strides_along(bodies: tuple[Expr, ...], var: Var) -> list[int | None]:
    """The strides of all reads in some expressions."""
    return [stride_along(read, var) for body in bodies for read in tensor_reads(body)]
