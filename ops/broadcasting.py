"""Broadcasting in computes: the element of an argument that belongs to an element of the result."""

from __future__ import annotations

from collections.abc import Sequence

from .. import te
from ..ir.expr import ZERO, Expr, Operand, const_int


def read_broadcast(tensor: te.Tensor, indices: Sequence[Operand]) -> Expr:
    """The element at the result's ``indices``, aligned at the right; a dimension of extent 1 is read at 0."""
    own = indices[len(indices) - tensor.ndim :]
    return tensor[tuple(ZERO if const_int(e) == 1 else i for i, e in zip(own, tensor.shape, strict=True))]
