"""Rules of casts, the unary operators and ``abs``."""

# ruff: noqa: E701
# fmt: off

from __future__ import annotations

from ...base.dtype import DType
from ..expr import Cast, Expr, Unary
from ..facts import Facts
from ..makers import cast
from .helpers import passes


def cast_any(to: DType, a: Expr, facts: Facts) -> Expr | None:
    """``to(a)``; a cast in between is left out where it changes no value."""
    match a:
        case x if x.dtype is to: return x
        case Cast(middle, x) if passes(middle, to, x, facts): return cast(to, x)
    return None


def negate_float(a: Expr, facts: Facts) -> Expr | None:
    """Two negations of a float cancel, also of NaN and of zeros."""
    match a:
        case Unary("-", x): return x
    return None


def invert_data(a: Expr, facts: Facts) -> Expr | None:
    """Two inversions of all bits cancel."""
    match a:
        case Unary("~", x): return x
    return None


def absolute(a: Expr, facts: Facts) -> Expr | None:
    """``abs`` goes where the sign of its operand is known."""
    match a:
        case x if facts.within(x, 0, None): return x
        case x if x.dtype.is_index and facts.within(x, None, 0): return -x
    return None
