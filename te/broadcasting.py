"""Broadcasting as numpy has it: the shape of a result, and the element of an operand that belongs to one of its own."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.errors import ExpressionError
from ..ir.constants import ZERO, const_int
from ..ir.expr import Expr, TensorRead
from ..ir.operand import Operand
from .tensor import Tensor


def broadcast_shapes(shapes: Sequence[tuple[Expr, ...]], names: Sequence[str] = ()) -> tuple[Expr, ...]:
    """The shape that numpy's rules give: aligned at the right, an extent of 1 stretches.

    A symbolic extent against another one must be the same expression; against a number other than 1, the number holds.
    ``names`` are those of the operands, for the ``ExpressionError`` where shapes do not fit.
    """
    rank = max((len(s) for s in shapes), default=0)
    result: list[Expr] = []
    for dim in range(-rank, 0):
        having = [k for k, s in enumerate(shapes) if len(s) >= -dim]
        decides = having[0]
        for k in having[1:]:
            chosen = _broadcast_extent(shapes[decides][dim], shapes[k][dim])
            if chosen is None:
                a, b = (f"{shapes[n][dim]}{f' of {names[n]}' if names else ''}" for n in (decides, k))
                raise ExpressionError(f"extents {a} and {b} do not broadcast")
            decides = k if chosen is shapes[k][dim] else decides
        result.append(shapes[decides][dim])
    return tuple(result)


def _broadcast_extent(a: Expr, b: Expr) -> Expr | None:
    if a is b or const_int(b) == 1:
        return a
    if const_int(a) == 1:
        return b
    if (const_int(a) is None) == (const_int(b) is None):
        return None
    return b if const_int(a) is None else a


def read_broadcast(tensor: Tensor, indices: Sequence[Operand]) -> TensorRead:
    """The element at the result's ``indices``, aligned at the right; a dimension of extent 1 is read at 0."""
    own = indices[len(indices) - tensor.ndim :]
    return tensor[tuple(ZERO if const_int(e) == 1 else i for i, e in zip(own, tensor.shape, strict=True))]
