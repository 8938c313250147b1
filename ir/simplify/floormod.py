"""Rules of ``%``."""

# ruff: noqa: E501, E701
# fmt: off

from __future__ import annotations

from ..expr import Binary, Const, Expr
from ..facts import Facts
from .helpers import grouped, known_rest, like, only_quotient, split, without_remainders


def floormod_index(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """Rules of ``%`` for indices, whose divisor is never 0."""
    match a, b:
        case Const(0), _: return a
        case x, Const(1): return like(x, 0)
        case x, y if x is y: return like(x, 0)
        case x, Const(int(c)) if c < 0: return -(-x % -c)
        case Binary("%", x, Const(int(c))), Const(int(d)) if c > 0 and d > 0 and c % d == 0: return x % d
        case x, y if (s := split(x, y)) is not None: return s.rest % y
        case x, Const(int(c)) if c > 0 and (k := only_quotient(x, c, facts)) is not None: return x - k * c
        case x, Const(int(c)) if c > 0 and (r := known_rest(x, c, facts)) is not None: return like(x, r)
        case x, Const(int(c)) if c > 0 and (z := without_remainders(x, c)) is not None: return z % c
        case x, Const(int(c)) if c > 0 and (g := grouped(x, c, facts)) is not None: return g.quotient % (c // g.factor) * g.factor + g.rest
        case x, y if facts.not_less(x, like(x, 0)) and facts.less(x, y): return x
    return None


def floormod_data(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """Rules of ``%`` for data integers, for which ``x % 0`` is 0."""
    match a, b:
        case Const(0), _: return a
        case _, Const(0 | 1): return like(a, 0)
        case x, y if x is y: return like(x, 0)
        case Binary("%", x, Const(int(c))), Const(int(d)) if c > 0 and d > 0 and c % d == 0: return x % d
        case x, Const(int(c)) if c > 0 and facts.within(x, 0, c - 1): return x
        case x, y if facts.within(x, 0, None) and facts.less(x, y): return x
    return None
