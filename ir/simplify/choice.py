"""Rules of ``select`` and ``if_then_else``.

That the condition is a fact for what it chooses between is the business of ``expressions.py``.
"""

# ruff: noqa: E701
# fmt: off

from __future__ import annotations

from ..expr import Broadcast, Const, Expr
from ..facts import Facts
from ..makers import maximum, minimum
from .helpers import chooses_larger


def choose(condition: Expr, a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """Rules of a choice: known conditions, equal alternatives, alternatives that are truth values, and those that make
    it a minimum or maximum of indices."""
    match condition, a, b:
        case Const(True), x, _: return x
        case Const(False), _, y: return y
        case Broadcast(Const(True)), x, _: return x
        case Broadcast(Const(False)), _, y: return y
        case _, x, y if x is y: return x
        case c, Const(True), Const(False) if c.dtype is a.dtype: return c
        case c, Const(False), Const(True) if c.dtype is a.dtype: return ~c
        case c, x, y if x.dtype.is_index and chooses_larger(c, x, y): return maximum(x, y)
        case c, x, y if x.dtype.is_index and chooses_larger(c, y, x): return minimum(x, y)
    return None
