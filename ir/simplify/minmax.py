"""Rules of ``min`` and ``max``."""

# ruff: noqa: E701
# fmt: off

from __future__ import annotations

from ..expr import Binary, Const, Expr
from ..facts import Facts
from ..makers import maximum, minimum
from .helpers import common_part


def min_any(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """Rules of the minimum that hold of floats, too."""
    match a, b:
        case x, y if x is y: return x
        case Binary("min", x, y), z if z is x or z is y: return a
        case z, Binary("min", x, y) if z is x or z is y: return b
    return None


def min_integer(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """Rules of the minimum of integers: what the facts decide, constants to the right and merged, absorption by a
    maximum."""
    match a, b:
        case x, y if facts.not_less(y, x): return x
        case x, y if facts.not_less(x, y): return y
        case Const(), Const(): return None
        case Const(), y: return minimum(y, a)
        case Binary("min", x, Const(int(c))), Const(int(d)): return minimum(x, min(c, d))
        case Binary("min", x, Const(int(c))), y: return minimum(minimum(x, y), c)
        case Binary("max", x, y), z if z is x or z is y: return z
        case z, Binary("max", x, y) if z is x or z is y: return z
    return None


def min_index(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """A common part of both operands is added after the minimum, and one that bounds the other's smaller part is taken
    out of it: indices never overflow."""
    match a, b:
        case z, Binary("+", Binary("min", x, y), Const(int(k))) if z is x and k >= 0: return minimum(z, y + k)
        case z, Binary("+", Binary("min", x, y), Const(int(k))) if z is y and k >= 0: return minimum(z, x + k)
        case Binary("+", Binary("min", x, y), Const(int(k))), z if z is x and k >= 0: return minimum(y + k, z)
        case Binary("+", Binary("min", x, y), Const(int(k))), z if z is y and k >= 0: return minimum(x + k, z)
        case x, y if (s := common_part(x, y)) is not None: return s.common + minimum(s.a, s.b)
    return None


def max_any(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """Rules of the maximum that hold of floats, too."""
    match a, b:
        case x, y if x is y: return x
        case Binary("max", x, y), z if z is x or z is y: return a
        case z, Binary("max", x, y) if z is x or z is y: return b
    return None


def max_integer(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """Rules of the maximum of integers: what the facts decide, constants to the right and merged, absorption by a
    minimum."""
    match a, b:
        case x, y if facts.not_less(x, y): return x
        case x, y if facts.not_less(y, x): return y
        case Const(), Const(): return None
        case Const(), y: return maximum(y, a)
        case Binary("max", x, Const(int(c))), Const(int(d)): return maximum(x, max(c, d))
        case Binary("max", x, Const(int(c))), y: return maximum(maximum(x, y), c)
        case Binary("min", x, y), z if z is x or z is y: return z
        case z, Binary("min", x, y) if z is x or z is y: return z
    return None


def max_index(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """A common part of both operands is added after the maximum, and one that bounds the other's larger part is taken
    out of it: indices never overflow."""
    match a, b:
        case z, Binary("+", Binary("max", x, y), Const(int(k))) if z is x and k <= 0: return maximum(z, y + k)
        case z, Binary("+", Binary("max", x, y), Const(int(k))) if z is y and k <= 0: return maximum(z, x + k)
        case Binary("+", Binary("max", x, y), Const(int(k))), z if z is x and k <= 0: return maximum(y + k, z)
        case Binary("+", Binary("max", x, y), Const(int(k))), z if z is y and k <= 0: return maximum(x + k, z)
        case x, y if (s := common_part(x, y)) is not None: return s.common + maximum(s.a, s.b)
    return None
