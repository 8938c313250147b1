"""Take guards out of hot loops: split the range of a loop so that in its main part the conditions hold and are gone.

``for i in range(n): if i >= 1: S`` becomes ``for i in range(1, n): S``; the tail tile of a split and the border of a
padded convolution get loops of their own. ``guards.py`` finds the conditions and solves them.

Policy. A loop of which the guard is the whole body just gets shorter. Else serial loops are split by range, from the
outside inwards; the condition must hold for all iterations of the loops inside (``io*16 + ii < n`` splits ``io``). The
border parts, which run seldom, are not split again. A parallel loop stays one loop, so that it costs one launch: its
body is chosen by a test. Vectorized and unrolled loops are left; inside a vectorized loop, no range may come to depend
on the lane.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from ..ir.expr import TRUE, Expr, Var, logical_and, maximum, minimum
from ..ir.facts import Facts, entry_facts, negate, prove
from ..ir.origin import as_border
from ..ir.simplify import simplify
from ..ir.stmt import Allocate, For, If, LetStmt, PrimFunc, Seq, Stmt, While, seq
from ..ir.visit import Node, free_vars, reads_memory, rewrite, with_body
from .context import inside_loop
from .copying import fresh_copy
from .folding import add, subtract
from .guards import Guard, conjuncts, find_guards


def loop_partition(func: PrimFunc, *, max_copies: int = 16) -> PrimFunc:
    """The function with loops split where that removes conditions; at most ``max_copies`` loop bodies are added."""
    facts = entry_facts(func)
    body = _Partitioner(max_copies).stmt(func.body, facts)
    return func if body is func.body else with_body(func, simplify(body, facts))


class _Partitioner:
    """Walks from the outside inwards. Mutable: counts the copies that may still be made, knows if it is in a border,
    and which variables differ from lane to lane."""

    def __init__(self, max_copies: int) -> None:
        self._copies_left = max_copies
        self._in_border = False
        self._per_lane: set[Var] = set()

    def stmt(self, stmt: Stmt, facts: Facts) -> Stmt:
        match stmt:
            case For(kind="serial" | "parallel"):
                trimmed = self._trim(stmt, facts)
                return self._serial(trimmed, facts) if stmt.kind == "serial" else self._parallel(trimmed, facts)
            case For(var, kind=kind):
                if kind == "vectorized":
                    self._per_lane.add(var)
                return _with_body(stmt, self.stmt(stmt.body, inside_loop(facts, stmt)))
            case If(condition, then, orelse):
                new_then = self.stmt(then, facts.with_lasting(condition))
                new_else = None if orelse is None else self.stmt(orelse, facts.with_lasting(negate(condition)))
                return stmt if new_then is then and new_else is orelse else If(condition, new_then, new_else)
            case Seq(stmts):
                done = [self.stmt(s, facts) for s in stmts]
                return stmt if all(a is b for a, b in zip(done, stmts, strict=True)) else seq(*done)
            case LetStmt(var, value, body):
                if self._per_lane.intersection(free_vars(value)):
                    self._per_lane.add(var)
                return _with_body(stmt, self.stmt(body, facts))
            case Allocate() | While():
                return _with_body(stmt, self.stmt(stmt.body, facts))
            case _:
                return stmt

    def _serial(self, loop: For, facts: Facts) -> Stmt:
        # The part behind the main one would evaluate the bounds again, after stores.
        fixed = not reads_memory(loop.min) and not reads_memory(loop.extent)
        parts = _split(loop, self._guards(loop), facts) if fixed and not self._in_border else None
        if parts is None or len(parts.borders) > self._copies_left:
            return _with_body(loop, self.stmt(loop.body, inside_loop(facts, loop)))
        self._copies_left -= len(parts.borders)
        main = _range(loop, _without(loop.body, parts.removed), parts.low, parts.high)
        inside = self.stmt(main.body, inside_loop(facts, main))
        before, after = (None if p is None else self._border(_range(loop, loop.body, *p), facts) for p in parts.around)
        return seq(before, _with_body(main, inside), after)

    def _guards(self, loop: For) -> list[Guard]:
        """The guards that hold or fail in all lanes alike."""
        return [g for g in find_guards(loop) if not self._per_lane.intersection(free_vars(g.worst))]

    def _trim(self, loop: For, facts: Facts) -> For:
        """A loop over those iterations only that the condition around its whole body lets through."""
        if not isinstance(loop.body, If) or loop.body.orelse is not None:
            return loop
        around = set(conjuncts(loop.body.condition))
        guards = [g for g in self._guards(loop) if g.condition in around]
        parts = _split(loop, guards, facts)
        return loop if parts is None else _range(loop, _without(loop.body, parts.removed), parts.low, parts.high)

    def _border(self, stmt: Stmt, facts: Facts) -> Stmt:
        """A copy of a statement, for the iterations in which the guards may fail."""
        outside, self._in_border = self._in_border, True
        result = self.stmt(simplify(as_border(fresh_copy(stmt, {})), facts), facts)
        self._in_border = outside
        return result

    def _parallel(self, loop: For, facts: Facts) -> Stmt:
        inside = inside_loop(facts, loop)
        guards = [] if self._in_border else find_guards(loop)
        tests = list(dict.fromkeys(simplify(g.worst, inside) for g in guards))
        body = _without(loop.body, guards)
        test = logical_and([t for t in tests if t is not TRUE])
        if not guards or (test is not TRUE and self._copies_left == 0):
            return _with_body(loop, self.stmt(loop.body, inside))
        if test is TRUE:
            return _with_body(loop, self.stmt(body, inside))
        self._copies_left -= 1
        main = self.stmt(body, inside.with_condition(test))
        return _with_body(loop, If(test, main, self._border(loop.body, inside)))


@dataclasses.dataclass(frozen=True, slots=True)
class _Parts:
    """The main part ``low … high`` of a loop, in which the ``removed`` guards hold, and what is before and after it."""

    low: Expr
    high: Expr
    around: tuple[tuple[Expr, Expr] | None, tuple[Expr, Expr] | None]
    removed: Sequence[Guard]

    @property
    def borders(self) -> list[tuple[Expr, Expr]]:
        return [p for p in self.around if p is not None]


def _split(loop: For, guards: Sequence[Guard], facts: Facts) -> _Parts | None:
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
    return _Parts(low, high, (before, after), solved)


def _clamped_low(begin: Expr, end: Expr, lows: Sequence[Expr], facts: Facts) -> Expr:
    low = _bound(maximum, begin, lows, facts)
    return low if low is begin or prove(low <= end, facts) else simplify(minimum(low, end), facts)


def _bound(pick: Callable[[Expr, Expr], Expr], start: Expr, others: Sequence[Expr], facts: Facts) -> Expr:
    """The least or the greatest of the bounds; ``start`` itself if it is proved to be that."""
    result = start
    for other in others:
        picked = simplify(pick(result, other), facts)
        if prove(picked >= result, facts) and prove(picked <= result, facts):
            continue
        result = other if prove(picked >= other, facts) and prove(picked <= other, facts) else picked
    return result


def _range(loop: For, body: Stmt, low: Expr, high: Expr) -> For:
    return dataclasses.replace(loop, min=low, extent=simplify(subtract(high, low)), body=body)


def _without(body: Stmt, guards: Sequence[Guard]) -> Stmt:
    """The body where these conditions hold."""
    true = {g.condition for g in guards}

    def visit(node: Node) -> Node | None:
        return TRUE if node in true else None

    return rewrite(body, visit)


def _with_body(stmt: For | Allocate | LetStmt | While, body: Stmt) -> Stmt:
    return stmt if body is stmt.body else dataclasses.replace(stmt, body=body)
