"""How large an extent can be, where some of its variables are only known not to exceed others: a loop plans its memory
by that, before any iteration has told them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from .constants import ZERO, const_int
from .contents import free_vars
from .expr import Binary, Const, Expr, Unary, Var
from .facts import nonnegative, prove
from .makers import as_index, maximum, minimum
from .simplify import simplify

Bounds: TypeAlias = tuple[Expr | None, Expr | None]
"""The least and the most that a number can be, None where nothing is known."""


def bounds_of(extent: Expr, most: Mapping[Var, Expr]) -> Bounds:
    """The bounds of an extent over dimensions, none of which is negative, and those in ``most`` no more than that says;
    these are over the other dimensions."""
    if not any(var in most for var in free_vars(extent)):
        return extent, extent
    match extent:
        case Var():
            return ZERO, most[extent]
        case Unary("-", a):
            return negated(bounds_of(a, most))
        case Binary(op, a, b):
            return combined(op, bounds_of(a, most), bounds_of(b, most))
        case _:
            return None, None


def combined(op: str, a: Bounds, b: Bounds) -> Bounds:
    """The bounds of what an operator makes of two numbers."""
    match op:
        case "+":
            return _both(a[0], b[0], "+"), _both(a[1], b[1], "+")
        case "-":
            return combined("+", a, negated(b))
        case "*":
            return _product(a, b)
        case "//":
            divisor = _number(b)
            if divisor is None or divisor < 1:
                return None, None
            return tuple(None if x is None else simplify(x // divisor) for x in a)  # type: ignore[return-value]
        case "%":
            divisor = _number(b)
            return (None, None) if divisor is None or divisor < 1 else (ZERO, as_index(divisor - 1))
        case "min":
            return _both(a[0], b[0], "min"), _either(a[1], b[1], "min")
        case "max":
            return _either(a[0], b[0], "max"), _both(a[1], b[1], "max")
        case _:
            return None, None


def negated(a: Bounds) -> Bounds:
    """The bounds of a number with the other sign."""
    low, high = a
    return None if high is None else simplify(-high), None if low is None else simplify(-low)


def joined(a: Bounds, b: Bounds) -> Bounds:
    """The bounds of what is one of two numbers."""
    return _both(a[0], b[0], "min"), _both(a[1], b[1], "max")


def _number(a: Bounds) -> int | None:
    return const_int(a[0]) if a[0] is not None and a[0] is a[1] and isinstance(a[0], Const) else None


def _apply(op: str, a: Expr, b: Expr) -> Expr:
    match op:
        case "+":
            return simplify(a + b)
        case "min":
            return simplify(minimum(a, b))
        case _:
            return simplify(maximum(a, b))


def _both(a: Expr | None, b: Expr | None, op: str) -> Expr | None:
    return None if a is None or b is None else _apply(op, a, b)


def _either(a: Expr | None, b: Expr | None, op: str) -> Expr | None:
    """What one of them says holds by itself."""
    return b if a is None else a if b is None else _apply(op, a, b)


def _product(a: Bounds, b: Bounds) -> Bounds:
    """Bounds of the product of numbers that are not negative, or one of which is known."""
    for one, other in ((a, b), (b, a)):
        factor = _number(one)
        if factor is not None:
            low, high = (None if x is None else simplify(x * factor) for x in other)
            return (low, high) if factor >= 0 else (high, low)
    if not (_is_extent(a[0]) and _is_extent(b[0])):
        return None, None
    low, high = (None if x is None or y is None else simplify(x * y) for x, y in zip(a, b, strict=True))
    return low, high


def _is_extent(low: Expr | None) -> bool:
    return low is not None and prove(low >= 0, nonnegative(free_vars(low)))
