"""Rules of vectors: what all lanes share is computed once.

Index vectors such as ``ramp(i, 1, 8) + broadcast(n, 8)`` are normal forms (``linear.py``): broadcasts are left here.
"""

from __future__ import annotations

from typing import cast

from ..expr import Binary, Broadcast, Call, Cast, Compare, Expr, IfThenElse, Logical, Select, Unary
from ..visit import children, with_children


def lift_broadcast(e: Expr) -> Expr | None:
    """An operation on broadcasts becomes the broadcast of one on scalars: ``op(broadcast(x), broadcast(y)) →
    broadcast(op(x, y))``."""
    lanes = e.dtype.lanes
    if lanes == 1:
        return None
    match e:
        case Select(Broadcast(condition), a, b):
            return Select(condition, a, b)
        case Binary() | Compare() | Logical() | Select() | IfThenElse():
            pass
        case Unary(op, Broadcast(a)):
            return Broadcast(Unary(op, a), lanes)
        case Cast(to, Broadcast(a)):
            return Broadcast(Cast(to.element, a), lanes)
        case Call(name, args, result) if all(isinstance(a, Broadcast) for a in args):
            return Broadcast(Call(name, tuple(cast(Broadcast, a).value for a in args), result.element), lanes)
        case _:
            return None
    vectors = [x for x in children(e) if cast(Expr, x).dtype.lanes > 1]
    if not all(isinstance(x, Broadcast) for x in vectors):
        return None
    return Broadcast(with_children(e, lambda x: x.value if isinstance(x, Broadcast) else x), lanes)
