"""Visits of expressions: operands first, under the facts that hold where they stand, then the rules."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from ...base.dtype import BOOL
from ..constants import FALSE, TRUE, const
from ..expr import Broadcast, Const, Expr, IfThenElse, Let, Load, Logical, LogicalOp, Reduce, Select, Unary, Var
from ..facts import Facts
from ..linear import atoms_of, has_form, linear_of
from ..linear_expr import expr_of, replace_atoms
from ..makers import broadcast_to
from ..visit import Node, children, with_children
from .apply import apply_rules
from .combine import combine, divisions_of
from .visitor import Visit, VisitorState

_CONTEXT_LIMIT = 12
"""Number of parts of a condition up to which each part is simplified with all the others as facts."""


_DEEPEST = 24
"""Expressions nested deeper than this are visited without recursion."""


class ExpressionVisitor(VisitorState):
    """Visits of all kinds of expressions. Most need none: ``at_once`` recurs into expressions that are not deep, all of
    whose parts stand under the facts of the whole."""

    def at_once(self, e: Expr, facts: Facts, depth: int = _DEEPEST) -> Expr | None:
        """What becomes of an expression; None where that takes a visit."""
        found: Expr | None = self.known(e, facts)
        if found is not None:
            return found
        if not depth or e in self._visited:
            return None
        match e:
            case Var():
                found = self._var_at_once(e, facts, depth)
            case Load(mask=None):
                indices = self._all_at_once(e.indices, facts, depth)
                found = None if indices is None else self._loaded(e, indices, None, facts)
            case Logical() | Select() | IfThenElse() | Let() | Reduce() | Load():
                pass
            case _ if has_form(e):
                found = self._arithmetic_at_once(e, facts, depth)
            case _:
                found = self._plain_at_once(e, facts, depth)
        if found is None:
            self._visited.add(e)
        else:
            self.visits += 1
            self.remember(e, facts, found)
        return found

    def _all_at_once(self, parts: tuple[Expr, ...], facts: Facts, depth: int) -> tuple[Expr, ...] | None:
        done: list[Expr] = []
        for part in parts:
            simpler = self.at_once(part, facts, depth - 1)
            if simpler is None:
                return None
            done.append(simpler)
        return tuple(done)

    def _var_at_once(self, var: Var, facts: Facts, depth: int) -> Expr | None:
        value = self.values.get(var)
        return _of_var(var, facts) if value is None else self.at_once(value, facts, depth - 1)

    def _plain_at_once(self, e: Expr, facts: Facts, depth: int) -> Expr | None:
        done: dict[Node, Node] = {}
        for child in children(e):
            simpler = self.at_once(cast(Expr, child), facts, depth - 1)
            if simpler is None:
                return None
            if simpler is not child:
                done[child] = simpler
        if done:
            e = with_children(e, lambda child: done.get(child, child))
            if has_form(e):
                return self.at_once(e, facts, depth - 1)
        result = apply_rules(e, facts)
        if result is None or result is e:
            return _known_truth(e, facts)
        return self.at_once(broadcast_to(result, e.dtype.lanes), facts, depth - 1)

    def _arithmetic_at_once(self, e: Expr, facts: Facts, depth: int) -> Expr | None:
        form = linear_of(e)
        simpler: dict[Expr, Expr] = {}
        for atom in atoms_of(form):
            value = self.at_once(atom, facts, depth - 1)
            if value is None:
                return None
            if value is not atom:
                simpler[atom] = value
        if simpler:
            return self.at_once(expr_of(replace_atoms(form, simpler), e.dtype.lanes), facts, depth - 1)
        if form.kind.is_index and divisions_of(form):
            return None
        return expr_of(form, e.dtype.lanes)

    def visit_expr(self, e: Expr, facts: Facts) -> Visit:
        """The visit of an expression by its kind. It yields the operands with their facts, and returns what becomes of
        the whole."""
        match e:
            case Var():
                return self._var(e, facts)
            case Logical():
                return self._logical(e, facts)
            case Select() | IfThenElse():
                return self._choice(e, facts)
            case Let():
                return self._let(e, facts)
            case Load():
                return self._load(e, facts)
            case Reduce():
                return self._reduce(e, facts)
            case _ if has_form(e):
                return self._arithmetic(e, facts)
            case _:
                return self._plain(e, facts)

    def _var(self, var: Var, facts: Facts) -> Visit:
        value = self.values.get(var)
        if value is not None:
            return (yield value, facts)
        return _of_var(var, facts)

    def _plain(self, e: Expr, facts: Facts) -> Visit:
        """A node whose operands all stand under the node's own facts."""
        done: dict[Node, Node] = {}
        for child in children(e):
            value = self.known(child, facts)
            if value is None:
                value = yield child, facts
            if value is not child:
                done[child] = value
        rebuilt = with_children(e, lambda child: done.get(child, child)) if done else e
        if rebuilt is not e and has_form(rebuilt):
            return (yield rebuilt, facts)
        return (yield from self._rules(rebuilt, facts))

    def _rules(self, e: Expr, facts: Facts) -> Visit:
        """Apply one rule to a node whose operands are simplified, and go on with what it gives."""
        result = apply_rules(e, facts)
        if result is None or result is e:
            return _known_truth(e, facts)
        return (yield broadcast_to(result, e.dtype.lanes), facts)

    def _arithmetic(self, e: Expr, facts: Facts) -> Visit:
        """Sums, differences and products go into normal form, as a whole."""
        simpler: dict[Expr, Expr] = {}
        form = linear_of(e)
        for atom in atoms_of(form):
            value = self.known(atom, facts)
            if value is None:
                value = yield atom, facts
            if value is not atom:
                simpler[atom] = value
        if simpler:
            return (yield expr_of(replace_atoms(form, simpler), e.dtype.lanes), facts)
        if form.kind.is_index and divisions_of(form):
            combined = yield from combine(form, facts)
            if combined is not None:
                return (yield expr_of(combined, e.dtype.lanes), facts)
        return expr_of(form, e.dtype.lanes)

    def _logical(self, e: Logical, facts: Facts) -> Visit:
        """The parts of ``and`` are facts for each other; of ``or``, their opposites are."""
        parts = list(dict.fromkeys(_chain(e, e.op)))
        for position in reversed(range(len(parts))):  # of two that say the same the first stays
            part = parts[position]
            context = facts
            if len(parts) <= _CONTEXT_LIMIT and self.is_total(part):
                for other in parts[:position] + parts[position + 1 :]:
                    context = self.given(context, other, e.op == "and")
            parts[position] = yield part, context
        rebuilt: Expr | None = None
        for part in dict.fromkeys(parts):
            if rebuilt is not None:
                joined = Logical(e.op, rebuilt, part)
                result = apply_rules(joined, facts)
                rebuilt = joined if result is None else broadcast_to(result, e.dtype.lanes)
            else:
                rebuilt = part
        assert rebuilt is not None
        if rebuilt is not e:
            return (yield rebuilt, facts)
        return _known_truth(e, facts)

    def _choice(self, e: Select | IfThenElse, facts: Facts) -> Visit:
        condition = yield e.condition, facts
        sides = []
        for choice, truth in ((e.a, True), (e.b, False)):
            side = choice
            if isinstance(condition, Const) and condition.value is not truth:
                sides.append(side)
                continue
            if isinstance(e, Select) and not self.is_total(side):
                side = yield side, facts
            if isinstance(e, IfThenElse) or self.is_total(side):
                side = yield side, self.given(facts, condition, truth)
            sides.append(side)
        if isinstance(condition, Unary) and condition.op == "not":
            return (yield type(e)(condition.a, sides[1], sides[0]), facts)
        inner, other = sides
        match e, inner:
            case IfThenElse(), IfThenElse(narrower, chosen, b) if b is other and self._may_join(condition, narrower):
                joined = IfThenElse(Logical("and", condition, narrower), chosen, other)
                return (yield joined, facts)
        return (yield from self._rules(type(e)(condition, inner, other), facts))

    def _may_join(self, outer: Expr, inner: Expr) -> bool:
        """Whether a condition may be asked for together with one that it stands under, which may fail."""
        return inner.dtype is outer.dtype and self.is_total(inner)

    def _let(self, e: Let, facts: Facts) -> Visit:
        value = yield e.value, facts
        if isinstance(value, (Const, Var)):
            self.replace_var(e.var, value)
            return (yield e.body, facts)
        body = yield e.body, let_facts(facts, e.var, value)
        return body if isinstance(body, Const) else Let(e.var, value, body)

    def _load(self, e: Load, facts: Facts) -> Visit:
        indices = yield from self.visit_all(e.indices, facts)
        mask = None if e.mask is None else (yield e.mask, facts)
        return self._loaded(e, indices, mask, facts)

    def _loaded(self, e: Load, indices: tuple[Expr, ...], mask: Expr | None, facts: Facts) -> Expr:
        """A load at indices and under a mask that are simplified."""
        if mask is not None and is_always(mask, True):
            mask = None
        if mask is not None and is_always(mask, False):
            return const(0, e.dtype)
        buffer = self.buffer(e.buffer)
        if mask is None and e.dtype.lanes > 1 and buffer.dtype.lanes == 1:
            scalars = tuple(i.value if isinstance(i, Broadcast) else i for i in indices)
            if all(i.dtype.lanes == 1 for i in scalars):
                return Broadcast(Load(buffer, scalars), e.dtype.lanes)
        return _known_truth(Load(buffer, indices, mask), facts)

    def _reduce(self, e: Reduce, facts: Facts) -> Visit:
        inside = facts
        for axis in e.axes:
            inside = inside.with_range(axis.var, axis.min, axis.extent)
        bounds = {bound for axis in e.axes for bound in (axis.min, axis.extent)}
        done: dict[Node, Node] = {}
        for child in children(e):
            done[child] = yield child, facts if child in bounds else inside
        rebuilt = with_children(e, lambda child: done[child])
        if rebuilt.condition is not None and is_always(rebuilt.condition, True):
            return replace(rebuilt, condition=None)
        return rebuilt


def _of_var(var: Var, facts: Facts) -> Expr:
    known = facts.ranges.get(var)
    if known is not None and known.is_point and known.low is not None:
        return const(known.low, var.dtype)
    return _known_truth(var, facts)


def _known_truth(e: Expr, facts: Facts) -> Expr:
    if e.dtype is BOOL and e in facts.known:
        return TRUE if facts.known[e] else FALSE
    return e


def _chain(e: Expr, op: LogicalOp) -> list[Expr]:
    """The operands of a tree of one logical operator, left to right."""
    parts, stack = [], [e]
    while stack:
        x = stack.pop()
        if isinstance(x, Logical) and x.op == op:
            stack += (x.b, x.a)
        else:
            parts.append(x)
    return parts


def let_facts(facts: Facts, var: Var, value: Expr) -> Facts:
    """What is known of a variable that is bound to a value."""
    if value.dtype.lanes != 1 or not (value.dtype.is_index or value.dtype.is_data_int):
        return facts
    return facts.with_interval(var, facts.interval(value))


def is_always(condition: Expr, truth: bool) -> bool:
    """Whether a condition is this constant in all its lanes."""
    match condition:
        case Const(value=value) | Broadcast(Const(value=value)):
            return value is truth
        case _:
            return False
