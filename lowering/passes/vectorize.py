"""Turn vectorized loops into vector code: one iteration a lane.

``for v in vectorized(8): C[v] = A[v] + x`` becomes ``C[ramp(0, 1, 8)] = A[ramp(0, 1, 8)] + broadcast(x, 8)``. What is
the same in all lanes stays scalar, conditions become masks, memory private to an iteration gets a lane for each.
``widen.py`` does the expressions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from ...base.dtype import INDEX
from ...ir.constants import ONE, ZERO, const, const_int
from ...ir.contents import reads_memory, statements_of, substitute
from ...ir.expr import Binary, Expr, Ramp, Var
from ...ir.facts import NO_FACTS, Facts, negate
from ...ir.makers import broadcast_to
from ...ir.operand_types import MAX_LANES
from ...ir.simplify import simplify
from ...ir.stmt import (
    Allocate,
    Assert,
    CallExtern,
    Evaluate,
    For,
    If,
    Launch,
    LetStmt,
    PrefetchStmt,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    While,
    seq,
)
from ...ir.visit import Node, rewrite, with_body
from .diagnostics import loop_error
from .folding import add, both
from .masks import any_lane
from .safe_divisions import SafeDivisions
from .widen import NestedVectorError, Widener


def vectorize(func: PrimFunc, facts: Facts = NO_FACTS) -> PrimFunc:
    """The function without vectorized loops; ``facts`` are those at its entry.

    Raises ``ScheduleError`` for a loop that cannot be vectorized: its extent is no constant or too large, it is inside
    another one, its iterations are not independent, or inner loops run differently from lane to lane.
    """

    def visit(node: Node) -> Node | None:
        return _vectorize_loop(node, safe) if isinstance(node, For) and node.kind == "vectorized" else None

    _refuse_nested(func.body)
    safe = SafeDivisions(facts).of(func.body)
    return with_body(func, rewrite(func.body, visit))


def _refuse_nested(root: Stmt) -> None:
    loops = [
        each
        for each in statements_of(root)
        if isinstance(each, For) and each.kind == "vectorized" and _lanes(each) != 1
    ]
    for outer in loops:
        inside = set(statements_of(outer.body))
        for inner in loops:
            if inner in inside:
                raise loop_error(
                    outer,
                    inner,
                    f"the loop {outer.var.name} is vectorized, and so is {inner.var.name} inside it: keep one",
                )


def _lanes(loop: For) -> int | None:
    return const_int(simplify(loop.extent))


def _vectorize_loop(loop: For, safe: frozenset[Binary]) -> Stmt:
    lanes = _lanes(loop)
    if lanes is None or lanes > MAX_LANES:
        what = f"of {lanes} iterations" if lanes is not None else "whose extent is not constant"
        raise loop_error(
            loop, loop, f"a loop {what} cannot be vectorized: split it by a constant of 2 to {MAX_LANES} first"
        )
    if lanes <= 0:
        return Seq(())
    if lanes == 1:
        return substitute(loop.body, {loop.var: loop.min})
    facts = NO_FACTS.with_range(loop.var, loop.min, loop.extent)
    active = _active_iterations(loop.body, loop.var, facts)
    if active is not None and len(active) == 1:
        return substitute(loop.body, {loop.var: const(active.pop(), INDEX)})
    return _LoopVectorizer(loop, lanes, facts, safe).stmt(loop.body, None)


def _active_iterations(body: Stmt, var: Var, facts: Facts) -> set[int] | None:
    """The iterations that do anything at all, where the conditions around everything say which; else None."""
    match body:
        case If(condition, then, None):
            only = _only_value(var, facts.with_condition(condition))
            return {only} if only is not None else _active_iterations(then, var, facts.with_condition(condition))
        case For() | Allocate() | LetStmt():
            return _active_iterations(body.body, var, facts)
        case Seq(stmts):
            active: set[int] = set()
            for stmt in stmts:
                found = _active_iterations(stmt, var, facts)
                if found is None:
                    return None
                active |= found
            return active
        case _:
            return None


def _only_value(var: Var, facts: Facts) -> int | None:
    interval = facts.interval(var)
    return interval.low if interval.is_point else None


class _LoopVectorizer:
    """Widens the statements of one loop. ``mask`` is the vector condition a statement runs under, None: always."""

    def __init__(self, loop: For, lanes: int, facts: Facts, safe: frozenset[Binary]) -> None:
        self.loop = loop
        self.lanes = lanes
        self.facts = facts
        self.widen = Widener(loop.body, loop.var, Ramp(loop.min, ONE, lanes), safe)

    def stmt(self, stmt: Stmt, mask: Expr | None) -> Stmt:
        match stmt:
            case Store():
                return self._store(stmt, mask)
            case Seq(stmts):
                return seq(*(self.stmt(s, mask) for s in stmts))
            case If():
                return self._if(stmt, mask)
            case For():
                return self._for(stmt, mask)
            case LetStmt(var, value, body):
                wide = self._expr(value, mask, stmt)
                return LetStmt(self.widen.bind(var, wide), wide, self.stmt(body, mask))
            case Allocate(buffer, body):
                return Allocate(self.widen.view(buffer), self.stmt(body, mask))
            case Evaluate(value):
                return Evaluate(self._expr(value, mask, stmt))
            case While(condition, body):
                if mask is not None or self.widen.varies(condition):
                    raise self._error(stmt, "it contains a `while` loop that may run differently from lane to lane")
                return While(condition, self.stmt(body, None))
            case Assert() | PrefetchStmt() | Launch() | CallExtern():
                raise self._error(stmt, "it contains a statement that has no vector form")
            case _:
                assert_never(stmt)

    def _error(self, culprit: Stmt, reason: str) -> Exception:
        return loop_error(self.loop, culprit, f"the loop {self.loop.var.name} cannot be vectorized, because {reason}")

    def _expr(self, value: Expr, mask: Expr | None, culprit: Stmt) -> Expr:
        try:
            return self.widen(value, mask)
        except NestedVectorError as error:
            raise self._error(culprit, str(error)) from None

    def _store(self, stmt: Store, mask: Expr | None) -> Stmt:
        buffer = stmt.buffer
        if stmt.value.dtype.lanes != 1:
            raise self._error(stmt, "it contains vectors already")
        value = self._expr(self.widen.alike_first(stmt.value), mask, stmt)
        indices = tuple(self._expr(i, mask, stmt) for i in stmt.indices)
        if buffer.data in self.widen.vector_elements:
            return replace(stmt, buffer=self.widen.view(buffer), indices=indices, value=broadcast_to(value, self.lanes))
        if buffer.data in self.widen.varies.private:
            indices = self.widen.private_indices(buffer, indices)
        elif all(i.dtype.lanes == 1 for i in indices):
            if _only_value(self.loop.var, self.facts) is not None:
                return replace(stmt, indices=self._spread(indices), value=broadcast_to(value, self.lanes), mask=mask)
            raise self._error(
                stmt,
                f"all its iterations store to the same element of {buffer.name}: "
                "a reduction needs rfactor before its loop can be vectorized",
            )
        own = None if stmt.mask is None else broadcast_to(self._expr(stmt.mask, mask, stmt), self.lanes)
        value = broadcast_to(value, self.lanes)
        return Store(self.widen.view(buffer), indices, value, both(mask, own), stmt.origin)

    def _spread(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The indices as vectors, for a store by the one lane that is on."""
        return tuple(broadcast_to(i, self.lanes) for i in indices)

    def _for(self, stmt: For, mask: Expr | None) -> Stmt:
        if stmt.kind == "parallel":
            raise self._error(stmt, "it contains a parallel loop")
        extent = self._expr(stmt.extent, mask, stmt)
        if extent.dtype.lanes != 1:
            raise self._error(stmt, f"the extent of the loop {stmt.var.name} inside it differs from lane to lane")
        low = self._expr(stmt.min, mask, stmt)
        if low.dtype.lanes == 1:
            return replace(stmt, min=low, extent=extent, body=self.stmt(stmt.body, mask))
        step = Var(stmt.var.name, stmt.var.dtype)
        self.widen.assign(stmt.var, add(low, step))
        return For(step, ZERO, extent, stmt.kind, self.stmt(stmt.body, mask), stmt.origin, stmt.notes)

    def _if(self, stmt: If, mask: Expr | None) -> Stmt:
        condition = self._expr(stmt.condition, mask, stmt)
        if condition.dtype.lanes == 1:
            orelse = None if stmt.orelse is None else self.stmt(stmt.orelse, mask)
            return If(condition, self.stmt(stmt.then, mask), orelse)
        if not reads_memory(condition):
            return self._masked(stmt, condition, mask)
        # The branches may overwrite what the condition has read.
        kept = Var("mask", condition.dtype)
        return LetStmt(kept, condition, self._masked(stmt, kept, mask))

    def _masked(self, stmt: If, condition: Expr, mask: Expr | None) -> Stmt:
        then = self._guarded(stmt.then, both(mask, condition), self.facts.with_condition(stmt.condition))
        if stmt.orelse is None:
            return then
        orelse = self._guarded(stmt.orelse, both(mask, negate(condition)), self.facts.without(stmt.condition))
        return seq(then, orelse)

    def _guarded(self, stmt: Stmt, mask: Expr | None, facts: Facts) -> Stmt:
        """The statement under a mask; if it loads scalars, these are only safe to load if a lane is active at all."""
        assert mask is not None
        outside, self.facts = self.facts, facts
        try:
            return self._if_active(stmt, mask)
        finally:
            self.facts = outside

    def _if_active(self, stmt: Stmt, mask: Expr) -> Stmt:
        active = any_lane(mask)
        if active is None:
            return self.stmt(stmt, mask)
        with self.widen.known_active(mask) as use:
            body = self.stmt(stmt, mask)
        return If(active, body) if use.scalar_access else body
