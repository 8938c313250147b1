"""A load at a clamped index as a choice between two loads, in vector lanes: of neighbours each, where it was a gather.

``A[max(i - 1, 0)]`` is ``if_then_else(i - 1 >= 0, A[i - 1], A[0])``. Part of ``vectorize``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...base.dtype import INDEX
from ...ir.constants import const
from ...ir.expr import Binary, Compare, Const, Expr, IfThenElse, Load, Var
from ...ir.interval import Interval, interval_of
from ...ir.visit import Node, rewrite, walk
from .folding import subtract
from .linear import affine_in

MOST_CLAMPS = 3
"""Each clamp doubles the loads: of more, a gather is no worse."""


def clamped_load(load: Load, var: Var, lanes: Interval, varies: Callable[[Expr], bool]) -> IfThenElse | None:
    """The choice, if some part of an index is a clamp whose sides move evenly with ``var``, whose values are ``lanes``.

    ``varies`` tells what differs from lane to lane. Clamps within others come first.
    """
    found: list[tuple[Binary, tuple[Expr, Expr, Expr]]] = []
    for node in dict.fromkeys(node for index in load.indices if varies(index) for node in walk(index)):
        if isinstance(node, Binary) and node.dtype is INDEX and varies(node):
            choice = _choice(node, var, lanes)
            if choice is not None:
                found.append((node, choice))
    if len(found) > MOST_CLAMPS:
        return None
    for node, (condition, *sides) in found:
        if all(_is_even(side, var, varies) for side in sides):
            a, b = (_with(load, node, side) for side in sides)
            return IfThenElse(condition, a, b)
    return None


def _choice(node: Binary, var: Var, lanes: Interval) -> tuple[Expr, Expr, Expr] | None:
    """A condition, what an index is where it holds, and what elsewhere."""
    match node:
        case Binary("max", a, b):
            return Compare(">=", a, b), a, b
        case Binary("min", a, b):
            return Compare("<=", a, b), a, b
        case Binary("%", a, Const(int(c))) if c > 0:
            bounds = interval_of(a, {var: lanes})
            if bounds.low is not None and bounds.high is not None and bounds.high // c == bounds.low // c + 1:
                first, second = (const(bound // c * c, INDEX) for bound in (bounds.low, bounds.high))
                return Compare("<", a, second), subtract(a, first), subtract(a, second)
    return None


def _is_even(side: Expr, var: Var, varies: Callable[[Expr], bool]) -> bool:
    """Whether an index is the same in all lanes, or moves by the same step from each to the next."""
    form = affine_in(side, var)
    return form is not None and not varies(form[1])


def _with(load: Load, old: Expr, new: Expr) -> Load:
    def put(node: Node) -> Expr | None:
        return new if node is old else None

    return replace(load, indices=tuple(rewrite(index, put) for index in load.indices))
