"""The ranges that the indices of reads cover while loops run and where conditions hold. Part of bound inference."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from ...base.dataclass import dataclass
from ...ir.build import index_var
from ...ir.constants import ONE, ZERO
from ...ir.contents import free_vars, substitute
from ...ir.expr import Binary, Compare, Const, Expr, IfThenElse, Reduce, Select, TensorRead, Var
from ...ir.facts import Facts, negate, prove
from ...ir.linear import Linear, Term, linear_of, without_factors
from ...ir.linear_expr import expr_of
from ...ir.makers import maximum, minimum
from ...ir.relax import Limits, Range, relax
from ...ir.simplify import simplify
from ...ir.visit import Node, children, rewrite, walk
from ..passes.guards import margin_of
from ..stage import Stage
from .inference import Inference


@dataclass(frozen=True, slots=True, eq=False)
class LoopRanges:
    """The ranges of loop variables; those of ragged loops are None where they are not known.

    ``facts`` are of the other loops: that a ragged one runs at all says something of the loops around it, which holds
    for what is read inside of it only. ``quotients`` are of numbers that are divided without a rest, each with a name
    for ``box``, and its range.
    """

    varying: Limits
    ragged: Mapping[Var, Range | None]
    facts: Facts
    quotients: Mapping[Expr, tuple[Var, Range]] = field(default_factory=dict)

    def dividing(self, conditions: Sequence[Expr]) -> LoopRanges:
        """The same where these conditions hold, some of which say that a number is divided without a rest: where
        ``(p - r) % 2 == 0``, of p below 2 and r below 4, ``(p - r) // 2`` is at least -1, not -2."""
        quotients: dict[Expr, tuple[Var, Range]] = {}
        for condition in conditions:
            match simplify(condition, self.facts):
                case Compare("==", Binary("%", number, Const() as divisor), Const(value=0)):
                    bounds = self.box(number)
                    if bounds is not None:
                        first = simplify(-(-bounds[0] // divisor), self.facts)
                        last = simplify(bounds[1] // divisor, self.facts)
                        quotients[number // divisor] = index_var("quotient"), (first, last)
        return replace(self, quotients=quotients) if quotients else self

    def box(self, index: Expr) -> Range | None:
        """Bounds of an index while the loops run."""
        ragged: dict[Var, Range] = {}
        if self.quotients:
            index = rewrite(index, lambda node: self._named(node, ragged))
        for var in free_vars(index):
            if var in self.ragged:
                ends = self.ragged[var]
                if ends is None:
                    return None
                ragged[var] = ends
        limits = Limits.of({**self.varying.ranges, **ragged}, self.facts) if ragged else self.varying
        return limits.relax(index)

    def box_of_parts(self, index: Expr, values: Mapping[Var, Expr], margins: Sequence[Expr]) -> Range | None:
        """Bounds of an index that is made of variables with these values, by those of its parts: of the variables, and
        of quotients and remainders of theirs, which margins that are >= 0 bound each by itself."""
        ranges: dict[Var, Range] = dict(self.varying.ranges)
        for var, value in values.items():
            box = self.box(simplify(substitute(value, values), self.facts))
            if box is None:
                return None
            ranges[var] = box
        bounds: dict[Expr, list[Expr]] = {}
        for margin in margins:
            if (part := _bounded_part(margin)) is not None:
                bounds.setdefault(part, []).append(margin)
        for part in sorted(bounds, key=lambda part: -sum(1 for _ in walk(part))):  # those that are made of others first
            box = Limits.of(ranges, self.facts).relax(part)
            if box is not None and any(node is part for node in walk(index)):
                name = index_var("part")
                ranges[name] = self.narrowed(box, part, bounds[part]) or box
                index = _renamed(index, part, name)
        return Limits.of(ranges, self.facts).relax(index)

    def _named(self, node: Node, ranges: dict[Var, Range]) -> Expr | None:
        """The name of a quotient, whose range is noted."""
        found = self.quotients.get(node) if isinstance(node, Binary) else None
        if found is None:
            return None
        ranges[found[0]] = found[1]
        return found[0]

    def narrowed(self, bounds: Range | None, index: Expr, margins: Sequence[Expr]) -> Range | None:
        """Bounds of an index where these margins are >= 0: one that moves with it, or against it, is a bound."""
        if bounds is None:
            return None
        low, high = bounds
        for margin in margins:
            least, most = simplify(index - margin, self.facts), simplify(index + margin, self.facts)
            low = low if self._varies(least) else maximum(low, least)
            high = high if self._varies(most) else minimum(high, most)
        return low, high

    def ended(self, bounds: Range | None, index: Expr, margins: Sequence[Expr]) -> Range | None:
        """Bounds of an index where these margins are >= 0, the last one by all that falls as the index grows, and the
        first by all that grows with it: as where tiles begin says how far they reach."""
        if bounds is None:
            return None
        low, high = bounds
        for margin in margins:
            times = _steepness(index, margin)
            reach = self.box(simplify(index + margin * times, self.facts)) if times else None
            if reach is not None and times > 0 and prove(reach[1] <= high, self.facts):
                high = reach[1]
            if reach is not None and times < 0 and prove(reach[0] >= low, self.facts):
                low = reach[0]
        return low, high

    def last(self, high: Expr, index: Expr, margins: Sequence[Expr]) -> Expr:
        """The last index, which is at most ``high``, where these margins are >= 0."""
        for margin in margins:
            times = _steepness(index, margin)
            reach = self.box(simplify(index + margin * times, self.facts)) if times > 0 else None
            if reach is not None and not prove(high <= reach[1], self.facts):
                high = simplify(minimum(high, reach[1]), self.facts)
        return high

    def _varies(self, e: Expr) -> bool:
        return any(var in self.varying.ranges or var in self.ragged for var in free_vars(e))


def _renamed(index: Expr, part: Expr, name: Var) -> Expr:
    return rewrite(index, lambda node: name if node is part else None)


def _bounded_part(margin: Expr) -> Expr | None:
    """What a margin that is >= 0 bounds alone, from below or from above."""
    match list(linear_of(margin).terms.values()):
        case [Term(coefficient=1 | -1, factors=(part,))]:
            return part
    return None


def _steepness(index: Expr, margin: Expr) -> int:
    """How many times faster than a margin falls an index grows, by the first variable that both have; else 0."""
    rates = {term.factors: term.coefficient for term in linear_of(index)}
    for term in linear_of(margin):
        if term.factors in rates:
            return -rates[term.factors] // term.coefficient
    return 0


def loop_ranges(known: Inference, inside: Sequence[tuple[Stage, str]], fixed: set[Var]) -> LoopRanges:
    """The ranges of the loops that a place is ``inside``, but for those that stand still, the ``fixed`` ones."""
    loops = [(known.loops[stage.name], leaf) for stage, leaf in inside]
    extents = {found.vars[leaf]: found.extents[leaf] for found, leaf in loops}
    ragged = {v for v, e in extents.items() if any(n in extents or isinstance(n, TensorRead) for n in walk(e))}
    facts, whole_loops = known.facts, {}
    for var, extent in extents.items():
        if var not in ragged:
            facts = _with_positive(facts.with_range(var, ZERO, extent), extent)
            whole_loops[var] = (ZERO, simplify(extent - ONE))
    widest = {
        v: relax(simplify(extents[v] - ONE), whole_loops, facts) for v in extents if v in ragged and v not in fixed
    }
    return LoopRanges(
        Limits.of({v: r for v, r in whole_loops.items() if v not in fixed}, facts),
        {v: None if r is None else (ZERO, r[1]) for v, r in widest.items()},
        facts,
    )


def _with_positive(facts: Facts, extent: Expr) -> Facts:
    """Add what follows from an extent that is at least 1, as that of a loop that runs: no factor of it is 0."""
    match extent:
        case Const():
            return facts
        case Binary("*", a, b) if prove(a >= ZERO, facts) and prove(b >= ZERO, facts):
            return _with_positive(_with_positive(facts, a), b)
        case _:
            form = linear_of(extent)
            for factor in _factors_of_all(form):
                if prove(factor >= ZERO, facts):
                    rest = Linear(form.kind)
                    for term in form:
                        rest.accumulate(term.coefficient, without_factors(term.factors, (factor,)) or ())
                    return _with_positive(_with_positive(facts, factor), expr_of(rest))
            if (dividends := _without_quotient(form)) is not None:
                facts = facts.with_condition(expr_of(dividends) > ZERO)
            common = math.gcd(*(term.coefficient for term in form), form.constant)
            return facts.with_condition(simplify(extent // common) >= ONE)


def _without_quotient(form: Linear) -> Linear | None:
    """What is above 0 where a sum with a quotient is: ``13 * (3 * n) + (10 * n + 12) - 12`` where
    ``3 * n + (10 * n + 12) // 13`` is. None without a quotient."""
    for term in form.terms.values():
        match term.factors:
            case (Binary("//", dividend, Const(value=int(divisor))) as quotient,):
                if term.coefficient > 0 and divisor > 0:
                    others = form.plus(linear_of(quotient), -term.coefficient)
                    return others.times(divisor).plus(linear_of(dividend), term.coefficient).shifted(1 - divisor)
            case _:
                pass
    return None


def _factors_of_all(form: Linear) -> list[Expr]:
    """The factors that all of several terms have, as n is one of ``m * n - n``."""
    first, *others = [*form, *([] if len(form.terms) > 1 else [Term(1, ())])]
    return [f for f in first.factors if all(any(f is g for g in term.factors) for term in others)]


def margin(condition: Expr) -> Expr | None:
    """An expression that is >= 0 where the condition holds, if it is a comparison of indices."""
    return margin_of(condition) if isinstance(condition, Compare) and condition.a.dtype.is_index else None


def reads_with_conditions(bodies: Sequence[Expr]) -> Iterator[tuple[TensorRead, tuple[Expr, ...]]]:
    """The reads, each with the conditions of the choices and the sums that it is part of, once for each way to it."""
    seen: set[tuple[int, tuple[Expr, ...]]] = set()
    stack: list[tuple[Node, tuple[Expr, ...]]] = [(body, ()) for body in bodies]
    while stack:
        node, conditions = stack.pop()
        if (id(node), conditions) in seen:
            continue
        seen.add((id(node), conditions))
        if isinstance(node, TensorRead):
            yield node, conditions
        if isinstance(node, (IfThenElse, Select)):
            stack += [(node.condition, conditions), (node.a, (*conditions, node.condition))]
            stack.append((node.b, (*conditions, negate(node.condition))))
        elif isinstance(node, Reduce) and node.condition is not None:
            stack.append((node.condition, conditions))
            stack += [(source, (*conditions, node.condition)) for source in node.sources]
        else:
            stack += [(child, conditions) for child in children(node)]
