"""Rules of ``and``, ``or``, ``not``, and of equality of bools.

That one part of a condition is a fact for the others is the business of ``expressions.py``.
"""

# ruff: noqa: E701
# fmt: off

from __future__ import annotations

from ..constants import FALSE, TRUE
from ..expr import Compare, Const, Expr, Logical, Unary
from ..facts import NEGATED, Facts, negate


def and_bool(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """Rules of ``and``: known operands, equal ones, and a condition beside its negation."""
    match a, b:
        case Const(False), _: return FALSE
        case _, Const(False): return FALSE
        case Const(True), y: return y
        case x, Const(True): return x
        case x, y if x is y: return x
        case x, y if x is negate(y): return FALSE
    return None


def or_bool(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """Rules of ``or``: known operands, equal ones, and a condition beside its negation."""
    match a, b:
        case Const(True), _: return TRUE
        case _, Const(True): return TRUE
        case Const(False), y: return y
        case x, Const(False): return x
        case x, y if x is y: return x
        case x, y if x is negate(y): return TRUE
    return None


def equal_bool(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """``==`` of truth values, which is the one operand or its negation where the other is known."""
    match a, b:
        case x, y if x is y: return TRUE
        case Const(True), y: return y
        case x, Const(True): return x
        case Const(False), y: return ~y
        case x, Const(False): return ~x
    return None


def not_equal_bool(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """``!=`` of truth values, which is the one operand or its negation where the other is known."""
    match a, b:
        case x, y if x is y: return FALSE
        case Const(False), y: return y
        case x, Const(False): return x
        case Const(True), y: return ~y
        case x, Const(True): return ~x
    return None


def not_bool(a: Expr, facts: Facts) -> Expr | None:
    """Rules of ``not`` before a comparison or a logical operator. It stays in front of ordered comparisons of floats:
    NaN makes both ``x < y`` and ``x >= y`` false."""
    match a:
        case Const(False): return TRUE
        case Const(True): return FALSE
        case Unary("not", x): return x
        case Compare(op, x, y) if not x.dtype.is_float or op in ("==", "!="): return Compare(NEGATED[op], x, y)
        case Logical("and", x, y): return ~x | ~y
        case Logical("or", x, y): return ~x & ~y
    return None
