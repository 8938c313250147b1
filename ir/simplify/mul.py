"""Rules of ``*`` and of the division of floats. Integer products of atoms are sorted into normal form by the driver;
what comes here are products that are not multiplied out.
"""

# ruff: noqa: E701
# fmt: off

from __future__ import annotations

from ..constants import is_const
from ..expr import Binary, Const, Expr
from ..facts import Facts
from .helpers import wrapped


def mul_integer(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """Constants of a product go to the right, and become one; data integers wrap around as they are multiplied."""
    match a, b:
        case Const(), Const(): return None
        case Const(), y: return y * a
        case Binary("*", x, Const(int(c))), Const(int(d)): return x * wrapped(x, c * d)
        case Binary("*", x, Const(int(c))), y: return x * y * c
        case x, Binary("*", y, Const(int(c))): return x * y * c
    return None


def mul_float(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """Multiplying by 0.0 is no rule: it is NaN for NaN and infinities, and -0.0 for negative numbers."""
    match a, b:
        case x, y if is_const(y, 1.0): return x
        case x, y if is_const(x, 1.0): return y
    return None


def div_float(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """Division by 1.0 changes nothing, and is the only one that may go: others round."""
    match a, b:
        case x, y if is_const(y, 1.0): return x
    return None
