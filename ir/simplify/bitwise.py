"""Rules of the bitwise operators and shifts, which data integers alone have."""

# ruff: noqa: E701
# fmt: off

from __future__ import annotations

from ..expr import Const, Expr
from ..facts import Facts
from .helpers import all_ones, like


def and_data(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """Rules of ``&``: equal operands, 0, and the constant with all bits set."""
    match a, b:
        case x, y if x is y: return x
        case _, Const(0): return b
        case Const(0), _: return a
        case x, Const(int(c)) if c == all_ones(x): return x
        case Const(int(c)), y if c == all_ones(y): return y
    return None


def or_data(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """Rules of ``|``: equal operands, 0, and the constant with all bits set."""
    match a, b:
        case x, y if x is y: return x
        case x, Const(0): return x
        case Const(0), y: return y
        case x, Const(int(c)) if c == all_ones(x): return b
        case Const(int(c)), y if c == all_ones(y): return a
    return None


def xor_data(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """Rules of ``^``: equal operands, and 0."""
    match a, b:
        case x, y if x is y: return like(x, 0)
        case x, Const(0): return x
        case Const(0), y: return y
    return None


def shift_data(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """Rules of shifts, ``<<`` and ``>>``, which hold of both alike."""
    match a, b:
        case x, Const(0): return x
        case Const(0), _: return a
    return None
