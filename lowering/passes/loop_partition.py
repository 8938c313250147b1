"""Take guards out of hot loops: split the range of a loop so that in its main part the conditions hold and are gone.

``for i in range(n): if i >= 1: S`` becomes ``for i in range(1, n): S``; the tail tile of a split and the border of a
padded convolution get loops of their own. ``guards.py`` finds the conditions and solves them.

Policy. A loop of which the guard is the whole body just gets shorter, also where loops stand between: the iterations
are left out in which it lets nothing through. Else serial loops are split by range, from the outside inwards; the
condition must hold for all iterations of the loops inside (``io*16 + ii < n`` splits ``io``). In a border part the
condition that alone limits the main one fails, and is gone as well. The border parts, which run seldom, are not split
again; but where a guard chooses between values from memory, as in a concatenation, what is behind it is no border. A
parallel loop stays one loop, so that it costs one launch: its body is chosen by a test. One task that fails it may be
half of the work, so loops in it are split as well; rows of an open extent that end in a task make no second body, since
the loop over them is cut there. Vectorized and unrolled loops are left; inside a vectorized loop, no range may come to
depend on the lane. The conditions of masks (``If.mask``) are left too.

Clamps of indices (``clamps.py``) are decided likewise, but only in loops where they cost something: in the main part
``A[max(i - 1, 0)]`` is ``A[i - 1]``. A border is split again for these, for it may be a whole row of an image.
"""

from __future__ import annotations

import dataclasses
from itertools import groupby

from ...ir.constants import TRUE
from ...ir.contents import free_vars, reads_memory, variables_of
from ...ir.expr import Compare, Expr, IfThenElse, Var
from ...ir.facts import Facts, negate
from ...ir.makers import logical_and
from ...ir.origin import as_border
from ...ir.simplify import FunctionSimplifier, simplify
from ...ir.stmt import Allocate, For, If, LetStmt, PrimFunc, Seq, Stmt, While, seq
from ...ir.visit import walk, with_body
from .clamps import ClampFinder, has_clamps
from .context import inside_loop
from .copying import fresh_copy
from .guards import Guard, conditions_around, conditions_in, find_guards, guard_of, limits_of
from .loop_ranges import split_range, where_failing, with_loop_body, with_range, without

CLAMP_COPIES = 4
"""So many times as many copies may be made for clamps as for guards: of innermost loops, which are short."""
KEPT_WHOLE = ("partition", False)
"""The note at a loop that is left as it is."""


def loop_partition(func: PrimFunc, *, max_copies: int = 16, simplifier: FunctionSimplifier | None = None) -> PrimFunc:
    """The function with loops split where that removes conditions; at most ``max_copies`` loop bodies are added.

    ``simplifier`` is the one of the function, for what comes of that.
    """
    simplifier = simplifier or FunctionSimplifier()
    partitioner = _Partitioner(max_copies, ClampFinder() if has_clamps(func.body) else None)
    body = partitioner.stmt(func.body, simplifier.facts_of(func))
    return func if body is func.body else simplifier(with_body(func, body))


class _Partitioner:
    """Walks from the outside inwards. Mutable: counts the copies that may still be made, knows if it is in a border,
    and which variables differ from lane to lane."""

    def __init__(self, max_copies: int, clamps: ClampFinder | None) -> None:
        self._copies_left = max_copies
        self._clamp_copies_left = CLAMP_COPIES * max_copies
        self._clamps = clamps
        self._in_border = False
        self._per_lane: set[Var] = set()

    def stmt(self, stmt: Stmt, facts: Facts) -> Stmt:
        if self._clamps is not None and isinstance(stmt, For):
            self._clamps.enter(stmt)
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
        guards, clamps = self._guards_of(loop, facts) if fixed else ([], [])
        parts = split_range(loop, [*guards, *clamps], facts)
        if parts is None or not self._can_copy(len(parts.borders), bool(clamps)):
            return with_loop_body(loop, self.stmt(loop.body, inside_loop(facts, loop)))
        main = with_range(loop, without(loop.body, parts.removed), parts.low, parts.high)
        inside = self.stmt(main.body, inside_loop(facts, main))
        ends = [
            None if part is None else with_range(loop, where_failing(loop.body, failing), *part)
            for part, failing in zip(parts.around, parts.failing, strict=True)
        ]
        before, after = (None if end is None else self._border(end, facts) for end in ends)
        return seq(before, with_loop_body(main, inside), after)

    def _can_copy(self, count: int, for_clamps: bool) -> bool:
        """Whether so many copies may still be made; they are counted."""
        if for_clamps and count <= self._clamp_copies_left:
            self._clamp_copies_left -= count
        elif not for_clamps and count <= self._copies_left:
            self._copies_left -= count
        else:
            return False
        return True

    def _guards_of(self, loop: For, facts: Facts) -> tuple[list[Guard], list[Guard]]:
        """What is worth a cut, guards and clamps; in a border only where there are clamps, which cost whole rows."""
        guards = [] if self._in_border and self._clamps is None else self._alike(find_guards(loop), loop)
        if self._clamps is None:
            return guards, []
        parts = split_range(loop, guards, facts)
        usual = loop if parts is None else with_range(loop, loop.body, parts.low, parts.high)
        clamps = self._alike(self._clamps.guards(usual), loop)
        failing = {negate(guard.condition) for guard in clamps}
        others = [guard for guard in guards if guard.condition not in failing]
        return others if clamps or not self._in_border else [], clamps

    def _alike(self, guards: list[Guard], loop: For) -> list[Guard]:
        """The guards that hold or fail in all lanes alike."""
        if KEPT_WHOLE in loop.notes:
            return []
        return [g for g in guards if not self._per_lane.intersection(free_vars(g.worst))]

    def _trim(self, loop: For, facts: Facts) -> For:
        """A loop over those iterations only in which the conditions around its whole body let something through;
        those in no loop inside are gone."""
        parts = split_range(loop, self._alike(limits_of(loop), loop), facts)
        if parts is None:
            return loop
        gone = parts.removed.intersection(condition for condition, inner in conditions_around(loop.body) if not inner)
        return with_range(loop, without(loop.body, gone), parts.low, parts.high)

    def _border(self, stmt: Stmt, facts: Facts) -> Stmt:
        """A copy of a statement, for the iterations in which the guards may fail: a border, unless guards choose there
        between places of memory, and some of them are decided now: cuts that decide nothing would never end."""
        copy = simplify(fresh_copy(stmt), facts)
        if _choices(copy) < _choices(stmt):
            return self.stmt(copy, facts)
        outside, self._in_border = self._in_border, True
        border = as_border(copy)
        if isinstance(border, For) and border.kind == "serial":  # it has been cut
            trimmed = self._trim(border, facts)
            border = with_loop_body(trimmed, self.stmt(trimmed.body, inside_loop(facts, trimmed)))
        else:
            border = self.stmt(border, facts)
        self._in_border = outside
        return border

    def _parallel(self, loop: For, facts: Facts) -> Stmt:
        inside = inside_loop(facts, loop)
        conditions, clamps = self._guards_of(loop, facts)
        tests = {guard: simplify(guard.worst, inside) for guard in (*conditions, *clamps)}
        body = without(loop.body, [guard.condition for guard, test in tests.items() if test is TRUE])
        left = _left_to_rows(loop) if conditions else set()
        unsure = [g for g in tests if tests[g] is not TRUE and (g.condition not in left or g in clamps)]
        guards = _decided_by_tasks(unsure, loop)
        if not guards or self._copies_left == 0:
            return with_loop_body(loop, self.stmt(body, inside))
        self._copies_left -= 1
        test = logical_and(list(dict.fromkeys(tests[guard] for guard in guards)))
        return with_loop_body(loop, self._choose(body, frozenset(g.condition for g in guards), test, inside))

    def _choose(self, body: Stmt, conditions: frozenset[Expr], test: Expr, facts: Facts) -> Stmt:
        """What a task does, of which the parts that conditions stand in are chosen by a test that all of these hold."""
        if not _has_part_without(body, conditions):
            main = self.stmt(without(body, conditions), facts.with_condition(test))
            return If(test, main, self.stmt(as_border(fresh_copy(body)), facts.with_lasting(negate(test))))
        if isinstance(body, Allocate):
            return with_loop_body(body, self._choose(body.body, conditions, test, facts))
        if not isinstance(body, Seq):
            return self.stmt(body, facts)
        runs = groupby(body.stmts, lambda part: _has_part_without(part, conditions))
        done: list[Stmt] = []
        for apart, run in runs:
            done += [self._choose(part, conditions, test, facts) for part in (run if apart else [seq(*run)])]
        return seq(*done)


def _decided_by_tasks(guards: list[Guard], loop: For) -> list[Guard]:
    """The guards by which the body of a task is chosen. Where some are of a task as a whole, those that serial loops
    in it can be split for are left to these, so that a task does not become a border for a partial panel."""
    serial = {node.var for node in walk(loop.body) if isinstance(node, For) and node.kind == "serial"}
    whole = {guard.worst for guard in guards if not serial.intersection(free_vars(guard.condition))}
    return [guard for guard in guards if guard.worst in whole] if whole else guards


def _has_part_without(stmt: Stmt, conditions: frozenset[Expr]) -> bool:
    """Whether there is one of the parts of a task in which none of these conditions stands."""
    match stmt:
        case Allocate():
            return _has_part_without(stmt.body, conditions)
        case Seq(stmts):
            return any(_has_part_without(part, conditions) for part in stmts)
        case _:
            return without(stmt, conditions) is stmt


def _left_to_rows(task: For) -> set[Expr]:
    """The conditions over open extents that loops over rows in a task can be cut for: serial ones, with loops inside.
    No copy of the whole task is made for these, as no copy knows how many rows the last task has."""
    left: set[Expr] = set()
    others: set[Expr] = set()
    for condition, inner in conditions_in(task.body):
        is_left = any(_is_cut(loop, task, condition, inner[depth + 1 :]) for depth, loop in enumerate(inner))
        (left if is_left else others).add(condition)
    return left - others


def _is_cut(loop: For, task: For, condition: Compare, inner: tuple[For, ...]) -> bool:
    if loop.kind != "serial" or not any(isinstance(node, For) for node in walk(loop.body)):
        return False
    guard = guard_of(loop, condition, inner)
    if guard is None or (guard.low is None and guard.high is None):
        return False
    return bool(set(variables_of(guard.worst)) - {task.var, loop.var})


def _choices(stmt: Stmt) -> int:
    """How many values come from one place of memory or from another, as a condition says."""
    return sum(isinstance(n, IfThenElse) and reads_memory(n.a) and reads_memory(n.b) for n in walk(stmt))
