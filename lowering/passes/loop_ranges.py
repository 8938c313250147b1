"""The range of a loop, cut where the guards inside hold: a main part without them, and what is before and after it.

Part of ``loop_partition`` and of ``tails``, which decide what to cut.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from ...base.dataclass import dataclass
from ...ir.constants import FALSE, TRUE
from ...ir.expr import Expr
from ...ir.facts import Facts, prove
from ...ir.makers import maximum, minimum
from ...ir.simplify import simplify
from ...ir.stmt import Allocate, For, LetStmt, Stmt, While
from ...ir.visit import Node, rewrite
from .clamps import sides_of
from .folding import add, subtract
from .guards import Guard


@dataclass(frozen=True, slots=True, eq=False)
class RangeParts:
    """The main part ``low … high`` of a loop, in which the ``removed`` guards hold, and what is before and after it,
    where those fail that ``failing`` names for each."""

    low: Expr
    high: Expr
    around: tuple[tuple[Expr, Expr] | None, tuple[Expr, Expr] | None]
    removed: frozenset[Expr]
    failing: tuple[frozenset[Expr], frozenset[Expr]]

    @property
    def borders(self) -> list[tuple[Expr, Expr]]:
        """The ranges before and after the main part, those that there are."""
        return [p for p in self.around if p is not None]


def split_range(loop: For, guards: Sequence[Guard], facts: Facts) -> RangeParts | None:
    """How to split the range; None if that gains nothing: no condition can be solved, or the main part is empty."""
    begin, end = loop.min, simplify(add(loop.min, loop.extent), facts)
    lows = [simplify(g.low, facts) for g in guards if g.low is not None]
    highs = [simplify(g.high, facts) for g in guards if g.high is not None]
    solved = [g for g in guards if g.low is not None or g.high is not None]
    if not solved:
        return None
    low = _clamped_low(begin, end, lows, facts)
    high = _bound(minimum, end, highs, facts)
    if prove(high <= low, facts):
        return None
    if low is not begin or high is not end:
        high = high if prove(high >= low, facts) else simplify(maximum(high, low), facts)
    before = None if low is begin else (begin, low)
    after = None if high is end else (high, end)
    return RangeParts(low, high, (before, after), frozenset(g.condition for g in solved), _failing_around(solved))


def _failing_around(guards: Sequence[Guard]) -> tuple[frozenset[Expr], frozenset[Expr]]:
    """The conditions that fail in all iterations before the main part, and after it: those that alone limit it."""
    return _failing((g, g.low) for g in guards), _failing((g, g.high) for g in guards)


def _failing(bounds: Iterable[tuple[Guard, Expr | None]]) -> frozenset[Expr]:
    limiting = [(guard, bound) for guard, bound in bounds if bound is not None]
    if len({bound for _, bound in limiting}) != 1:
        return frozenset()
    return frozenset(guard.condition for guard, _ in limiting if guard.is_exact)


def _clamped_low(begin: Expr, end: Expr, lows: Sequence[Expr], facts: Facts) -> Expr:
    low = _bound(maximum, begin, lows, facts)
    return low if low is begin or prove(low <= end, facts) else simplify(minimum(low, end), facts)


def _bound(pick: Callable[[Expr, Expr], Expr], start: Expr, others: Sequence[Expr], facts: Facts) -> Expr:
    """The least or the greatest of the bounds; ``start`` itself if it is proved to be that."""
    result = start
    for other in others:
        choice = pick(result, other)
        picked = simplify(choice, facts)
        if picked is choice:  # the simplifier has compared the two in vain
            result = picked
            continue
        if prove(picked >= result, facts) and prove(picked <= result, facts):
            continue
        result = other if prove(picked >= other, facts) and prove(picked <= other, facts) else picked
    return result


def with_range(loop: For, body: Stmt, low: Expr, high: Expr) -> For:
    """The loop from ``low`` up to, not including, ``high``, with another body."""
    return replace(loop, min=low, extent=simplify(subtract(high, low)), body=body)


def without(body: Stmt, conditions: Collection[Expr]) -> Stmt:
    """The body where these conditions hold: the choices and clamps that they decide are gone."""
    true = frozenset(conditions)

    def visit(node: Node) -> Node | None:
        if node in true:
            return TRUE
        return next((side.value for side in sides_of(node) if true.issuperset(side.conditions)), None)

    return rewrite(body, visit)


def where_failing(body: Stmt, conditions: Collection[Expr]) -> Stmt:
    """The body where these conditions do not hold."""
    false = frozenset(conditions)
    return rewrite(body, lambda node: FALSE if node in false else None) if false else body


def with_loop_body(stmt: For | Allocate | LetStmt | While, body: Stmt) -> Stmt:
    """The statement with another body; the same object if the body is the same."""
    return stmt if body is stmt.body else replace(stmt, body=body)
