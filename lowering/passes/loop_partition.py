"""Take guards out of hot loops: split the range of a loop so that in its main part the conditions hold and are gone.

``for i in range(n): if i >= 1: S`` becomes ``for i in range(1, n): S``; the tail tile of a split and the border of a
padded convolution get loops of their own. ``guards.py`` finds the conditions and solves them.

Policy. A loop of which the guard is the whole body just gets shorter. Else serial loops are split by range, from the
outside inwards; the condition must hold for all iterations of the loops inside (``io*16 + ii < n`` splits ``io``). The
border parts, which run seldom, are not split again; but where a guard chooses between values from memory, as in a
concatenation, what is behind it is no border. A parallel loop stays one loop, so that it costs one launch: its
body is chosen by a test. One task that fails it may be half of the work, so loops in it are split as well. Vectorized
and unrolled loops are left; inside a vectorized loop, no range may come to depend on the lane. The conditions of masks
(``If.mask``) are left too.
"""

from __future__ import annotations

import dataclasses

from ...ir.expr import TRUE, IfThenElse, Var, logical_and
from ...ir.facts import Facts, entry_facts, negate
from ...ir.origin import as_border
from ...ir.simplify import simplify
from ...ir.stmt import Allocate, For, If, LetStmt, PrimFunc, Seq, Stmt, While, seq
from ...ir.visit import free_vars, reads_memory, walk, with_body
from .context import inside_loop
from .copying import fresh_copy
from .guards import Guard, conjuncts, find_guards
from .loop_ranges import split_range, with_loop_body, with_range, without

KEPT_WHOLE = ("partition", False)
"""The note at a loop that is left as it is."""


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
                return with_loop_body(stmt, self.stmt(stmt.body, inside_loop(facts, stmt)))
            case If(condition, then, orelse):
                new_then = self.stmt(then, facts.with_lasting(condition))
                new_else = None if orelse is None else self.stmt(orelse, facts.with_lasting(negate(condition)))
                same = new_then is then and new_else is orelse
                return stmt if same else dataclasses.replace(stmt, then=new_then, orelse=new_else)
            case Seq(stmts):
                done = [self.stmt(s, facts) for s in stmts]
                return stmt if all(a is b for a, b in zip(done, stmts, strict=True)) else seq(*done)
            case LetStmt(var, value, body):
                if self._per_lane.intersection(free_vars(value)):
                    self._per_lane.add(var)
                return with_loop_body(stmt, self.stmt(body, facts))
            case Allocate() | While():
                return with_loop_body(stmt, self.stmt(stmt.body, facts))
            case _:
                return stmt

    def _serial(self, loop: For, facts: Facts) -> Stmt:
        # The part behind the main one would evaluate the bounds again, after stores.
        fixed = not reads_memory(loop.min) and not reads_memory(loop.extent)
        parts = split_range(loop, self._guards(loop), facts) if fixed and not self._in_border else None
        if parts is None or len(parts.borders) > self._copies_left:
            return with_loop_body(loop, self.stmt(loop.body, inside_loop(facts, loop)))
        self._copies_left -= len(parts.borders)
        main = with_range(loop, without(loop.body, parts.removed), parts.low, parts.high)
        inside = self.stmt(main.body, inside_loop(facts, main))
        ends = (None if p is None else with_range(loop, loop.body, *p) for p in parts.around)
        before, after = (None if end is None else self._border(end, facts) for end in ends)
        return seq(before, with_loop_body(main, inside), after)

    def _guards(self, loop: For) -> list[Guard]:
        """The guards that hold or fail in all lanes alike."""
        if KEPT_WHOLE in loop.notes:
            return []
        return [g for g in find_guards(loop) if not self._per_lane.intersection(free_vars(g.worst))]

    def _trim(self, loop: For, facts: Facts) -> For:
        """A loop over those iterations only that the condition around its whole body lets through."""
        if not isinstance(loop.body, If) or loop.body.orelse is not None:
            return loop
        around = set(conjuncts(loop.body.condition))
        guards = [g for g in self._guards(loop) if g.condition in around]
        parts = split_range(loop, guards, facts)
        return loop if parts is None else with_range(loop, without(loop.body, parts.removed), parts.low, parts.high)

    def _border(self, stmt: Stmt, facts: Facts) -> Stmt:
        """A copy of a statement, for the iterations in which the guards may fail: a border, unless guards choose there
        between places of memory."""
        if _chooses(stmt):
            return self.stmt(simplify(fresh_copy(stmt, {}), facts), facts)
        outside, self._in_border = self._in_border, True
        result = self.stmt(simplify(as_border(fresh_copy(stmt, {})), facts), facts)
        self._in_border = outside
        return result

    def _parallel(self, loop: For, facts: Facts) -> Stmt:
        inside = inside_loop(facts, loop)
        guards = [] if self._in_border or KEPT_WHOLE in loop.notes else find_guards(loop)
        tests = list(dict.fromkeys(simplify(g.worst, inside) for g in guards))
        body = without(loop.body, [g.condition for g in guards])
        test = logical_and([t for t in tests if t is not TRUE])
        if not guards or (test is not TRUE and self._copies_left == 0):
            return with_loop_body(loop, self.stmt(loop.body, inside))
        if test is TRUE:
            return with_loop_body(loop, self.stmt(body, inside))
        self._copies_left -= 1
        main = self.stmt(body, inside.with_condition(test))
        rest = self.stmt(as_border(fresh_copy(loop.body, {})), inside.with_lasting(negate(test)))
        return with_loop_body(loop, If(test, main, rest))


def _chooses(stmt: Stmt) -> bool:
    """Whether values come from one place of memory or from another, as a condition says."""
    return any(isinstance(n, IfThenElse) and reads_memory(n.a) and reads_memory(n.b) for n in walk(stmt))
