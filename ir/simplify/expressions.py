"""Visits of expressions: operands first, under the facts that hold where they stand, then the rules."""

from __future__ import annotations

from ...base.dtype import BOOL
from ..constants import FALSE, TRUE, const
from ..expr import Binary, Broadcast, Const, Expr, IfThenElse, Let, Load, Logical, LogicalOp, Reduce, Select, Unary, Var
from ..facts import Facts
from ..interval import EVERYTHING
from ..linear import atoms_of, expr_of, is_lane_number, is_ring_node, linear_of, product_is_atom, replace_atoms
from ..makers import broadcast_to
from ..visit import Node, children, with_children
from .apply import apply_rules
from .combine import combine, divisions_of
from .visitor import Visit, VisitorState

_CONTEXT_LIMIT = 12
"""Number of parts of a condition up to which each part is simplified with all the others as facts."""


class ExpressionVisitor(VisitorState):
    """Visits of all kinds of expressions."""

    def visit_expr(self, e: Expr, facts: Facts) -> Visit:
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
            case _ if _has_form(e):
                return self._arithmetic(e, facts)
            case _:
                return self._plain(e, facts)

    def _var(self, var: Var, facts: Facts) -> Visit:
        value = self.values.get(var)
        if value is not None:
            return (yield value, facts)
        known = facts.ranges.get(var, EVERYTHING)
        if known.is_point and known.low is not None:
            return const(known.low, var.dtype)
        return _known_truth(var, facts)

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
        if rebuilt is not e and _has_form(rebuilt):
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
            return Reduce(rebuilt.combiner, rebuilt.sources, rebuilt.axes, None, rebuilt.index)
        return rebuilt


def _has_form(e: Expr) -> bool:
    """Whether the node is arithmetic to be put into normal form."""
    if not is_ring_node(e) or is_lane_number(e):
        return False
    return not (isinstance(e, Binary) and e.op == "*" and product_is_atom(e))


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
