"""Rules of comparisons of integers. Floats compare as they stand: NaN breaks every rule but folding."""

# ruff: noqa: E501, E701
# fmt: off

from __future__ import annotations

from ..constants import FALSE, TRUE
from ..expr import Const, Expr
from ..facts import Facts
from .helpers import balanced, flipped


def less_integer(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """``a < b`` is decided by the facts; a constant goes to the right."""
    match a, b:
        case x, y if facts.less(x, y): return TRUE
        case x, y if facts.not_less(x, y): return FALSE
        case Const(), y: return y > a
    return None


def less_equal_integer(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """``a <= b`` is decided by the facts; a constant goes to the right."""
    match a, b:
        case x, y if facts.not_less(y, x): return TRUE
        case x, y if facts.less(y, x): return FALSE
        case Const(), y: return y >= a
    return None


def greater_integer(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """``a > b`` is decided by the facts; a constant goes to the right."""
    match a, b:
        case x, y if facts.less(y, x): return TRUE
        case x, y if facts.not_less(y, x): return FALSE
        case Const(), y: return y < a
    return None


def greater_equal_integer(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """``a >= b`` is decided by the facts; a constant goes to the right."""
    match a, b:
        case x, y if facts.not_less(x, y): return TRUE
        case x, y if facts.less(x, y): return FALSE
        case Const(), y: return y <= a
    return None


def equal_integer(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """``a == b`` is decided by the facts; a constant goes to the right."""
    match a, b:
        case x, y if facts.less(x, y): return FALSE
        case x, y if facts.less(y, x): return FALSE
        case x, y if facts.not_less(x, y) and facts.not_less(y, x): return TRUE
        case Const(), y: return y == a
    return None


def not_equal_integer(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """``a != b`` is decided by the facts; a constant goes to the right."""
    match a, b:
        case x, y if facts.less(x, y): return TRUE
        case x, y if facts.less(y, x): return TRUE
        case x, y if facts.not_less(x, y) and facts.not_less(y, x): return FALSE
        case Const(), y: return y != a
    return None


# Index comparisons: common terms cancel, common factors go, constants stand on the right.


def less_index(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """``a < b`` with common terms cancelled, and divided by the common factor, which rounds the constant."""
    match a, b:
        case x, y if (d := balanced(x, y)) is not None: return d.a < d.b + (-(d.constant // d.factor))
        case x, y if (d := flipped(x, y)) is not None: return d.a > d.b + (-d.constant // d.factor)
    return None


def less_equal_index(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """``a <= b`` with common terms cancelled, and divided by the common factor, which rounds the constant."""
    match a, b:
        case x, y if (d := balanced(x, y)) is not None: return d.a <= d.b + (-d.constant // d.factor)
        case x, y if (d := flipped(x, y)) is not None: return d.a >= d.b + (-(d.constant // d.factor))
    return None


def greater_index(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """``a > b`` with common terms cancelled, and divided by the common factor, which rounds the constant."""
    match a, b:
        case x, y if (d := balanced(x, y)) is not None: return d.a > d.b + (-d.constant // d.factor)
        case x, y if (d := flipped(x, y)) is not None: return d.a < d.b + (-(d.constant // d.factor))
    return None


def greater_equal_index(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """``a >= b`` with common terms cancelled, and divided by the common factor, which rounds the constant."""
    match a, b:
        case x, y if (d := balanced(x, y)) is not None: return d.a >= d.b + (-(d.constant // d.factor))
        case x, y if (d := flipped(x, y)) is not None: return d.a <= d.b + (-d.constant // d.factor)
    return None


def equal_index(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """``a == b`` with common terms cancelled, and divided by the common factor; it is false where that does not divide
    the constant."""
    match a, b:
        case x, y if (d := balanced(x, y)) is not None and d.constant % d.factor != 0: return FALSE
        case x, y if (d := flipped(x, y)) is not None and d.constant % d.factor != 0: return FALSE
        case x, y if (d := balanced(x, y)) is not None and d.constant % d.factor == 0: return d.a == d.b + (-d.constant // d.factor)
        case x, y if (d := flipped(x, y)) is not None and d.constant % d.factor == 0: return d.a == d.b + (-d.constant // d.factor)
    return None


def not_equal_index(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """``a != b`` with common terms cancelled, and divided by the common factor; it is true where that does not divide
    the constant."""
    match a, b:
        case x, y if (d := balanced(x, y)) is not None and d.constant % d.factor != 0: return TRUE
        case x, y if (d := flipped(x, y)) is not None and d.constant % d.factor != 0: return TRUE
        case x, y if (d := balanced(x, y)) is not None and d.constant % d.factor == 0: return d.a != d.b + (-d.constant // d.factor)
        case x, y if (d := flipped(x, y)) is not None and d.constant % d.factor == 0: return d.a != d.b + (-d.constant // d.factor)
    return None
