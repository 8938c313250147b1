"""Rules of ``//``."""

# ruff: noqa: E501, E701
# fmt: off

from __future__ import annotations

from ..expr import Binary, Const, Expr
from ..facts import Facts
from ..makers import maximum, minimum
from .helpers import fits, grouped, like, only_quotient, split


def floordiv_index(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """Rules of ``//`` for indices, whose divisor is never 0."""
    match a, b:
        case Const(0), _: return a
        case x, Const(1): return x
        case x, y if x is y: return like(x, 1)
        case x, Const(int(c)) if c < 0: return -x // -c
        case Binary("//", x, Const(int(c))), Const(int(d)) if c > 0 and d > 0 and fits(x, c * d): return x // (c * d)
        case Binary("+", Binary("//", x, Const(int(c))), Const(int(k))), Const(int(d)) if c > 0 and d > 0 and fits(x, k * c) and fits(x, c * d): return (x + k * c) // (c * d)
        case Binary("%", x, Const(int(c))), Const(int(d)) if c > 0 and d > 0 and c % d == 0: return x // d % (c // d)
        case x, y if (s := split(x, y)) is not None: return s.quotient + s.rest // y
        case Binary("min", x, y), Const(int(c)) if c > 0 and (split(x, b) is not None or split(y, b) is not None): return minimum(x // c, y // c)
        case Binary("max", x, y), Const(int(c)) if c > 0 and (split(x, b) is not None or split(y, b) is not None): return maximum(x // c, y // c)
        case x, Const(int(c)) if c > 0 and (q := only_quotient(x, c, facts)) is not None: return like(x, q)
        case x, Const(int(c)) if c > 0 and (g := grouped(x, c, facts)) is not None: return g.quotient // (c // g.factor)
        case x, y if facts.not_less(x, like(x, 0)) and facts.less(x, y): return like(x, 0)
        case Const(int(c)), y if c < 0 and facts.not_less(y, like(a, -c)): return like(a, -1)
    return None


def floordiv_data(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """Rules of ``//`` for data integers, for which ``x // 0`` is 0, so that ``x // x`` is not always 1."""
    match a, b:
        case Const(0), _: return a
        case _, Const(0): return like(a, 0)
        case x, Const(1): return x
        case x, y if x is y and facts.within(x, 1, None): return like(x, 1)
        case Binary("//", x, Const(int(c))), Const(int(d)) if c > 0 and d > 0 and fits(x, c * d): return x // (c * d)
        case x, Const(int(c)) if c > 0 and (q := only_quotient(x, c, facts)) is not None: return like(x, q)
        case x, y if facts.within(x, 0, None) and facts.less(x, y): return like(x, 0)
    return None
