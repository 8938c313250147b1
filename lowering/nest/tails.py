"""The tails of splits that are not mere guards: loops of their own for full tiles, and for what is left.

Part of ``realize``, which calls it on the nest of each stage. Of a peeled split, the loop over tiles is cut where the
last full tile ends; inside the rest, loops get shorter where that is all the condition asks. Where the loop over tiles
was fused into another, so that what is left lies all over its range, each iteration chooses by a test. A shifted tile
that might not fit into its loop at all has two nests, of which a test chooses.

Each copy is unrolled like the original, so that tails within tails would soon make more code than anybody waits for.
Beyond a budget of statements a copy is plain: its conditions stay, and its unrolled loops are loops.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...base.dataclass import dataclass
from ...ir.constants import FALSE, ONE, TRUE, const_int
from ...ir.contents import bindings_in, free_vars, reads_memory, substitute
from ...ir.expr import Compare, Expr, Var
from ...ir.facts import Facts, prove
from ...ir.simplify import simplify
from ...ir.stmt import PLAIN_TAIL, CallExtern, Evaluate, For, If, Stmt, StmtNode, Store, seq
from ...ir.visit import Node, children, rewrite, walk, with_children
from ..passes.context import inside_loop
from ..passes.copying import fresh_copy
from ..passes.guards import Guard, conditions_in, guard_of
from ..passes.loop_partition import KEPT_WHOLE
from ..passes.loop_ranges import split_range, with_loop_body, with_range, without
from .loops import Predicate

MAX_COPIES = 8
"""Most copies of loops that the tails of one stage may make; conditions beyond that stay where they are."""

MAX_STATEMENTS = 256
"""Most statements that the copies for the tails of one stage may become when their loops are unrolled."""

logger = logging.getLogger("loopwright.lowering")

Cuts = Mapping[Expr, Expr]
"""For each condition of a tail, another one: where that holds, the condition does. FALSE where that is nowhere."""


def cut_tails(nest: Stmt, guards: Sequence[Predicate], facts: Facts, loop_of: dict[Var, str]) -> Stmt:
    """The nest with the conditions of peeled and shifted tails gone from the full tiles; ``loop_of`` learns the ids of
    the loops that are copied. What depends on memory stays: the second of two loops would ask for it after stores."""
    cuts = {g.condition: g.full for g in guards if g.full is not None and not reads_memory(g.full)}
    return _Cutter(loop_of).stmt(nest, _Context(cuts, facts)) if cuts else nest


@dataclass(frozen=True, slots=True, eq=False)
class _Context:
    """What is known at a statement of the nest; ``lanes`` are the variables of the vectorized loops around it,
    ``times`` how often the unrolled ones copy it."""

    cuts: Cuts
    facts: Facts
    lanes: frozenset[Var] = frozenset()
    times: int = 1

    def inside(self, loop: For) -> _Context:
        lanes = self.lanes | {loop.var} if loop.kind == "vectorized" else self.lanes
        return replace(self, facts=inside_loop(self.facts, loop), lanes=lanes, times=self.times * _copies_of(loop))

    def where(self, test: Expr) -> _Context:
        return replace(self, facts=self.facts.with_condition(test))

    def in_rest(self, conditions: Sequence[Expr]) -> _Context:
        """Where the tiles of these conditions are never full."""
        return replace(self, cuts={**self.cuts, **dict.fromkeys(conditions, FALSE)})

    def with_value(self, var: Var, value: Expr) -> _Context:
        values = {var: value}
        return replace(self, cuts={substitute(c, values): substitute(full, values) for c, full in self.cuts.items()})


class _Cutter:
    """Walks from the outside inwards. Mutable: ``loop_of`` grows with each copy, and what is still to be had of copies
    and of their statements gets less."""

    def __init__(self, loop_of: dict[Var, str]) -> None:
        self._loop_of = loop_of
        self._copies_left = MAX_COPIES
        self._statements_left = MAX_STATEMENTS

    def stmt(self, stmt: Stmt, context: _Context) -> Stmt:
        def inside(child: Node) -> Node:
            return self.stmt(child, context) if isinstance(child, StmtNode) else child

        return self._for(stmt, context) if isinstance(stmt, For) else with_children(stmt, inside)

    def _for(self, loop: For, context: _Context) -> Stmt:
        if loop.extent is ONE:
            value = {loop.var: loop.min}
            return self.stmt(substitute(loop.body, value), context.with_value(loop.var, loop.min))
        varying = context.lanes.union((loop.var,), bindings_in(loop.body))
        for condition, _ in _conditions(loop, context):
            test = simplify(context.cuts[condition], context.facts)
            if test is not FALSE and self._copies_left > 0 and not varying.intersection(free_vars(test)):
                return self._choose_loop(loop, condition, test, context)
        loop = _shortened(loop, context)
        if loop.kind in ("serial", "parallel"):
            return self._cut(loop, context)
        return with_loop_body(loop, self.stmt(loop.body, context.inside(loop)))

    def _choose_loop(self, loop: For, condition: Expr, test: Expr, context: _Context) -> Stmt:
        """One of two loops, by a test that is the same in all iterations."""
        full = self.stmt(without(loop, [condition]), context.where(test))
        if test is TRUE:
            return full
        if not self._affords(loop, context):
            return If(test, full, self._copy(_plain(loop)))
        return If(test, full, self._copy(self.stmt(loop, context.in_rest([condition]))))

    def _affords(self, stmt: Stmt, context: _Context) -> bool:
        """Whether a copy of a statement, which is yet to be unrolled, is within the budget, from which it is taken."""
        size = context.times * _unrolled_size(stmt)
        if size > self._statements_left:
            names = ", ".join(dict.fromkeys(self._loop_of.get(loop.var, loop.var.name) for loop in _loops(stmt)))
            logger.info("a tail is plain: unrolled, %s would be %d statements more, of %d", names, size, MAX_STATEMENTS)
            return False
        self._statements_left -= size
        return True

    def _cut(self, loop: For, context: _Context) -> Stmt:
        """The loop over full tiles, and that over what is left."""
        guards = _solvable(loop, context) if self._copies_left > 0 else []
        parts = split_range(loop, guards, context.facts)
        if parts is None:
            return self._choose_in(loop, guards, context)
        full = with_range(loop, without(loop.body, parts.removed), parts.low, parts.high)
        main = self._choose_in(full, [g for g in guards if g.condition not in parts.removed], context)
        rest = context.in_rest([c for c, inner in _conditions(loop, context) if _is_exact(context.cuts[c], inner)])
        ends = (None if end is None else self._rest(with_range(loop, loop.body, *end), rest) for end in parts.around)
        before, after = ends
        return seq(before, main, after)

    def _rest(self, loop: For, context: _Context) -> Stmt:
        """What is left is but one iteration, in general: no work for several threads."""
        if prove(loop.extent <= ONE, context.facts):
            loop = replace(loop, kind="serial")
        if not self._affords(loop, context):
            return self._copy(_plain(loop))
        if loop.extent is ONE:
            return self._copy(self._for(loop, context))
        loop = _shortened(loop, context)
        return self._copy(with_loop_body(loop, self.stmt(loop.body, context.inside(loop))))

    def _choose_in(self, loop: For, guards: Sequence[Guard], context: _Context) -> Stmt:
        """The loop, whose iterations choose by a test where no range can be cut."""
        inside = context.inside(loop)
        tests: dict[Expr, list[Expr]] = {}
        for guard in guards:
            if guard.low is None and guard.high is None:
                tests.setdefault(simplify(guard.worst, inside.facts), []).append(guard.condition)
        return with_loop_body(loop, self._choose_body(loop.body, list(tests.items()), inside))

    def _choose_body(self, body: Stmt, tests: Sequence[tuple[Expr, Sequence[Expr]]], context: _Context) -> Stmt:
        if not tests or self._copies_left <= 0:
            return self.stmt(body, context)
        (test, conditions), *others = tests
        full = self._choose_body(without(body, conditions), others, context.where(test))
        if test is TRUE:
            return full
        if not self._affords(body, context):
            return If(test, full, self._copy(_plain(body)))
        return If(test, full, self._copy(self._choose_body(body, others, context.in_rest(conditions))))

    def _copy(self, stmt: Stmt) -> Stmt:
        self._copies_left -= 1
        copy = fresh_copy(stmt)
        for old, new in zip(_loops(stmt), _loops(copy), strict=True):
            if old.var in self._loop_of:  # those of prefetches and intrinsics are no loops of the schedule
                self._loop_of[new.var] = self._loop_of[old.var]
        return copy


def _copies_of(loop: For) -> int:
    """How many copies of its body a loop becomes."""
    return max(1, const_int(loop.extent) or 1) if loop.kind == "unrolled" else 1


def _unrolled_size(node: Node) -> int:
    """How many statements a statement becomes when its loops are unrolled."""
    if isinstance(node, (Store, Evaluate, CallExtern)):
        return 1
    times = _copies_of(node) if isinstance(node, For) else 1
    return times * sum(_unrolled_size(child) for child in children(node) if isinstance(child, StmtNode))


def _plain(stmt: Stmt) -> Stmt:
    """A tail in little code: its unrolled loops are serial ones, and no pass makes more loops of these."""

    def visit(node: Node) -> Node | None:
        match node:
            case For(kind="unrolled"):
                return replace(node, kind="serial", notes=(*node.notes, PLAIN_TAIL, KEPT_WHOLE))
            case For(kind="serial"):
                return replace(node, notes=(*node.notes, KEPT_WHOLE))
            case _:
                return None

    return rewrite(stmt, visit)


def _loops(stmt: Stmt) -> list[For]:
    return [node for node in walk(stmt) if isinstance(node, For)]


def _conditions(loop: For, context: _Context) -> list[tuple[Compare, tuple[For, ...]]]:
    """The conditions of tails in a loop, each with the loops between."""
    return [(condition, inner) for condition, inner in conditions_in(loop.body) if condition in context.cuts]


def _is_exact(full: Expr, inner: Sequence[For]) -> bool:
    """Whether the loops inside have no say in whether a tile is full."""
    return not {nested.var for nested in inner}.intersection(free_vars(full))


def _solvable(loop: For, context: _Context) -> list[Guard]:
    """What the conditions ask of the loop: that tiles be full, or else that the condition hold in all loops inside."""
    found = []
    for condition, inner in _conditions(loop, context):
        full = context.cuts[condition]
        guard = guard_of(loop, full, inner) if isinstance(full, Compare) else None
        if guard is None:
            guard = guard_of(loop, condition, inner)
            if guard is not None and guard.low is None and guard.high is None:
                continue
        if guard is not None and not context.lanes.intersection(free_vars(guard.worst)):
            found.append(replace(guard, condition=condition))
    return found


def _shortened(loop: For, context: _Context) -> For:
    """A loop over those iterations only that the conditions around its whole body let through; loops of which the
    extent must be constant stay so."""
    guards = [guard_of(loop, condition, ()) for condition in _around_body(loop, context)]
    usable = [g for g in guards if g is not None and not context.lanes.intersection(free_vars(g.worst))]
    parts = split_range(loop, usable, context.facts)
    if parts is None:
        return loop
    shorter = with_range(loop, without(loop.body, parts.removed), parts.low, parts.high)
    needs_constant = loop.kind in ("vectorized", "unrolled")
    return loop if needs_constant and const_int(shorter.extent) is None else shorter


def _around_body(loop: For, context: _Context) -> Iterator[Compare]:
    """The conditions of tails that stand around all that a loop does, and do not depend on loops between."""
    between: set[Var] = set()
    body = loop.body
    while isinstance(body, For) or (isinstance(body, If) and body.orelse is None):
        if isinstance(body, For):
            between.add(body.var)
            body = body.body
            continue
        condition = body.condition
        if (
            condition in context.cuts
            and isinstance(condition, Compare)
            and not between.intersection(free_vars(condition))
        ):
            yield condition
        body = body.then
