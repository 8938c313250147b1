"""Rules of ``+`` and ``-``. Integer sums are sorted into normal form (``linear.py``) by the driver, so what stands here
are floats, and the equations by which terms of an index sum become one: what division took apart.
"""

# ruff: noqa: E501, E701
# fmt: off

from __future__ import annotations

from ...base.dataclass import dataclass
from ..constants import is_const
from ..expr import Binary, Const, Expr
from ..facts import Facts
from .helpers import known_rest, without_remainders


def add_float(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """Rules of ``a + b`` for floats. Adding 0.0 is no rule: it turns -0.0 into 0.0."""
    match a, b:
        case x, y if is_const(y, -0.0): return x
        case x, y if is_const(x, -0.0): return y
    return None


def sub_float(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """Rules of ``a - b`` for floats. ``x - x`` is no rule: it is NaN for infinities."""
    match a, b:
        case x, y if is_const(y, 0.0): return x
    return None


@dataclass(frozen=True, slots=True, eq=False)
class Equation:
    """Where the terms of ``left`` stand in a sum, ``right`` takes their place."""

    left: Expr
    right: Expr


def remainder_and_quotient(a: Expr, q: Expr, facts: Facts) -> Equation | None:
    """``q == x // y`` for a remainder ``a = x % y``."""
    match a:
        case Binary("%", x, y): return Equation(a + q * y, x)
    return None


def two_remainders(a: Expr, b: Expr, q: Expr, facts: Facts) -> Equation | None:
    """``q == x // y`` for a remainder ``a = x % y``; b is another remainder of the sum."""
    match a, b:
        case Binary("%", x, Const(int(c))), Binary("%", z, Const(int(d))) if z is q and c > 0 and d > 0: return Equation(a + b * c, x % (c * d))
    return None


def remainder_and_other_quotient(a: Expr, b: Expr, facts: Facts) -> Equation | None:
    """A remainder ``a = x % c`` and a quotient ``b = z // c`` where z differs from x by multiples of c."""
    match a, b:
        case Binary("%", x, Const(int(c))), Binary("//", z, Const(int(d))) if c == d and c > 0 and (w := without_remainders(z, c)) is not None and w is x: return Equation(a + b * c, z)
    return None


def value_and_quotient(a: Expr, facts: Facts) -> Equation | None:
    """``a * y`` is taken from x where ``a = x // y``: what is left is ``x % y``."""
    match a:
        case Binary("//", x, y): return Equation(x - a * y, x % y)
    return None


def exact_quotient(a: Expr, facts: Facts) -> Equation | None:
    """A quotient ``a = x // c`` times c is x without its remainder, where that is a known number."""
    match a:
        case Binary("//", x, Const(int(c))) if c > 0 and (r := known_rest(x, c, facts)) is not None: return Equation(a * c, x - r)
    return None
