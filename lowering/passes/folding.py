"""Arithmetic on expressions that folds as it builds: constants, neutral elements, and ramps kept as ramps.

The passes use it where they make indices, so that their output is short before the simplifier sees it, and so that the
vectors of consecutive addresses stay recognisable.
"""

from __future__ import annotations

from typing import Literal

from ...ir.constants import const, is_const
from ...ir.expr import Binary, Broadcast, Const, Expr, Logical, Ramp, Unary
from ...ir.makers import broadcast_to
from ...ir.scalar import eval_binary


def add(a: Expr, b: Expr) -> Expr:
    """``a + b``; a scalar is broadcast against a vector."""
    match a, b:
        case Ramp(x, s, lanes), Ramp(y, t, _):
            return _ramp(add(x, y), add(s, t), lanes)
        case (Ramp(x, s, lanes), other) | (other, Ramp(x, s, lanes)) if (scalar := _scalar(other)) is not None:
            return Ramp(add(x, scalar) if a is not other else add(scalar, x), s, lanes)
    if is_const(a, 0) and not a.dtype.is_float:
        return broadcast_to(b, max(a.dtype.lanes, b.dtype.lanes))
    if is_const(b, 0) and not a.dtype.is_float:
        return broadcast_to(a, max(a.dtype.lanes, b.dtype.lanes))
    return _fold("+", a, b)


def subtract(a: Expr, b: Expr) -> Expr:
    """``a - b``; a scalar is broadcast against a vector."""
    match a, b:
        case Ramp(x, s, lanes), Ramp(y, t, _):
            return _ramp(subtract(x, y), subtract(s, t), lanes)
        case Ramp(x, s, lanes), other if (scalar := _scalar(other)) is not None:
            return Ramp(subtract(x, scalar), s, lanes)
        case other, Ramp(x, s, lanes) if (scalar := _scalar(other)) is not None:
            return Ramp(subtract(scalar, x), negate(s), lanes)
    if is_const(b, 0) and not a.dtype.is_float:
        return broadcast_to(a, max(a.dtype.lanes, b.dtype.lanes))
    return _fold("-", a, b)


def multiply(a: Expr, b: Expr) -> Expr:
    """``a * b``; a scalar is broadcast against a vector."""
    match a, b:
        case (Ramp(x, s, lanes), other) | (other, Ramp(x, s, lanes)) if (scalar := _scalar(other)) is not None:
            return _ramp(multiply(x, scalar), multiply(s, scalar), lanes)
    if not a.dtype.is_float:
        lanes = max(a.dtype.lanes, b.dtype.lanes)
        for one, other in ((a, b), (b, a)):
            if is_const(one, 1):
                return broadcast_to(other, lanes)
            if is_const(one, 0):
                return const(0, a.dtype.with_lanes(lanes))
    return _fold("*", a, b)


def negate(a: Expr) -> Expr:
    """``-a`` of an integer."""
    return subtract(const(0, a.dtype), a) if isinstance(a, (Const, Ramp)) else Unary("-", a)


def both(a: Expr | None, b: Expr | None) -> Expr | None:
    """The conjunction of two conditions, of which None is true; a scalar is broadcast against a vector."""
    if a is None or a is b:
        return b
    if b is None:
        return a
    lanes = max(a.dtype.lanes, b.dtype.lanes)
    return Logical("and", broadcast_to(a, lanes), broadcast_to(b, lanes))


def _scalar(value: Expr) -> Expr | None:
    """The one value in all lanes, if the expression says so."""
    if isinstance(value, Broadcast):
        return value.value
    return value if value.dtype.lanes == 1 else None


def _ramp(base: Expr, stride: Expr, lanes: int) -> Expr:
    return Broadcast(base, lanes) if is_const(stride, 0) else Ramp(base, stride, lanes)


def _fold(op: Literal["+", "-", "*"], a: Expr, b: Expr) -> Expr:
    if isinstance(a, Const) and isinstance(b, Const):
        return const(eval_binary(op, a.dtype, a.value, b.value), a.dtype)
    lanes = max(a.dtype.lanes, b.dtype.lanes)
    return Binary(op, broadcast_to(a, lanes), broadcast_to(b, lanes))
