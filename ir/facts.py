"""Facts: what is known of the variables at a place in a program, as an immutable value, and what follows from it.

Loops give ranges, ``if`` conditions give inequalities. The simplifier carries facts down the program and asks them;
``prove`` is the question other passes ask.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any

from ..base.dataclass import dataclass
from .constants import FALSE, TRUE, ZERO
from .contents import reads_memory
from .counterexamples import Examples
from .expr import Binary, Compare, CompareOp, Const, Expr, ExprLike, Logical, Unary, Var
from .interval import EVERYTHING, Interval, IntervalAnalysis
from .linear import Factors, Linear, linear_of, monomial_key
from .linear_expr import expr_of, term_expr
from .makers import as_index
from .modular import Congruence, ModularAnalysis
from .proof_search import Search
from .stmt import PrimFunc, Stmt

_MAX_CONDITIONS = 100
"""Conditions nested deeper than this are forgotten: each costs time wherever something is to be proved."""

NEGATED: dict[CompareOp, CompareOp] = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """What is known. Make one from ``NO_FACTS`` by ``with_range`` and ``with_condition``.

    ``ranges`` bound variables (and other parts of expressions) by constants; each form in ``bounds`` is >= 0;
    ``known`` says which conditions hold or fail, ``outer`` has examples for the facts that these add to. The
    underscored fields remember answers.
    """

    ranges: Mapping[Expr, Interval] = field(default_factory=dict)
    bounds: tuple[Linear, ...] = ()
    congruences: Mapping[Expr, Congruence] = field(default_factory=dict)
    known: Mapping[Expr, bool] = field(default_factory=dict)
    outer: Examples | None = None
    _intervals: list[IntervalAnalysis] = field(default_factory=list, init=False)
    _moduli: list[ModularAnalysis] = field(default_factory=list, init=False)
    _about: dict[Factors, list[Linear]] = field(default_factory=dict, init=False)
    _examples: list[Examples] = field(default_factory=list, init=False)
    _proved: dict[tuple[Hashable, ...], bool] = field(default_factory=dict, init=False)
    _derived: dict[tuple[Expr, ...], Facts] = field(default_factory=dict, init=False)
    simplified: dict[Expr | Stmt, Expr | Stmt] = field(default_factory=dict, init=False)
    """What the simplifier made of expressions under these facts. Mutable, as what the underscored fields remember."""

    def with_range(self, var: Var, minimum: ExprLike, extent: ExprLike) -> Facts:
        """The facts with a variable's range: ``minimum <= var < minimum + extent``."""
        key = (var, as_index(minimum), as_index(extent))
        return self._derived.get(key) or self._remember(key, self._with_range(*key))

    def _with_range(self, var: Var, low: Expr, count: Expr) -> Facts:
        first, last = linear_of(low), linear_of(low).plus(linear_of(count)).shifted(-1)
        v = linear_of(var)
        begins = [first]
        match low:
            case Binary("min", a, b):  # a loop that goes on behind another one runs only where that is not at the end
                end = expr_of(last.shifted(1))
                begins += [linear_of(x) for x, other in ((a, b), (b, a)) if _at_most(end, other)]
        facts = self._with_nonnegative(
            linear_of(count).shifted(-1), *(v.plus(begin, -1) for begin in begins), last.plus(v, -1)
        )
        periods = linear_of(count).single
        if low is ZERO and periods is not None and periods.coefficient > 1:
            period = term_expr(1, periods.factors)
            return facts.with_interval(Binary("//", var, period), Interval(0, periods.coefficient - 1))
        return facts

    def _remember(self, key: tuple[Expr, ...], derived: Facts) -> Facts:
        """Facts made of these, which what asks for them again gets again, and what was found out under them."""
        if self is not NO_FACTS:  # they live for ever, and what they remember would too
            self._derived[key] = derived
        return derived

    def with_loop(self, var: Var, minimum: Expr, extent: Expr) -> Facts:
        """What the body of a loop may rely on, whatever it stores: the bounds were evaluated before it."""
        if not reads_memory(minimum) and not reads_memory(extent):
            return self.with_range(var, minimum, extent)
        return self if reads_memory(minimum) else self.with_condition(Compare(">=", var, minimum))

    def with_lasting(self, condition: Expr) -> Facts:
        """Add that a condition holds, unless a store could make it untrue."""
        return self if reads_memory(condition) else self.with_condition(condition)

    def with_value(self, var: Var, value: Expr) -> Facts:
        """The same facts, where a value is put in for a variable: what becomes there of expressions is remembered apart
        from what becomes of them where the variable stands for itself."""
        key = (var, value)
        return self._derived.get(key) or self._remember(key, replace(self))

    def with_interval(self, e: Expr, interval: Interval) -> Facts:
        """Add that an integer expression lies in a constant interval."""
        known = self.ranges.get(e, EVERYTHING)
        return self._with(ranges={**self.ranges, e: known.intersect(interval)})

    def with_condition(self, condition: Expr) -> Facts:
        """Add that a condition holds. Conditions on vectors and floats add nothing beyond themselves."""
        return self._derived.get((condition,)) or self._remember((condition,), self._with_condition(condition))

    def _with_condition(self, condition: Expr) -> Facts:
        facts = self
        for part in _conjuncts(condition):
            facts = facts.with_part(part)
        return facts

    def without(self, condition: Expr) -> Facts:
        """Add that a condition does not hold."""
        return self.with_condition(negate(condition))

    def with_limits(self, limits: Mapping[Var, tuple[Expr, Expr]]) -> Facts:
        """Add ``low <= var`` and ``var <= high`` for index variables: as ``with_condition``, for all at once."""
        known = dict(self.known)
        forms: list[Linear] = []
        for var, (low, high) in limits.items():
            v = linear_of(var)
            more, less = v.plus(linear_of(low), -1), v.plus(linear_of(high), -1)
            for condition in (Compare(">=", var, low), Compare("<=", var, high)):
                if len(known) < _MAX_CONDITIONS:
                    known.update({condition: True, negate(condition): False})
            forms += (more, Linear(v.kind).plus(less, -1))
        return replace(self._with_nonnegative(*forms), known=known)

    def interval(self, e: Expr) -> Interval:
        """Constant bounds of an integer expression."""
        return self.analysis().of(e)

    def modulus(self, e: Expr) -> Congruence:
        """The strongest congruence known of an index expression."""
        if not self._moduli:
            made = ModularAnalysis(self.congruences)
            if self is NO_FACTS:
                return made.of(e)
            self._moduli.append(made)
        return self._moduli[0].of(e)

    def within(self, e: Expr, low: int | None, high: int | None) -> bool:
        """Whether it is proved that ``low <= e <= high``; None is no bound."""
        return self.interval(e).within(low, high)

    def nonnegative(self, form: Linear) -> bool:
        """Whether the index form is proved to be >= 0."""
        if self is NO_FACTS:
            return Search(self).nonnegative(form)
        key = (form.constant, *((factors, term.coefficient) for factors, term in form.terms.items()))
        found = self._proved.get(key)
        if found is None:
            found = self._proved[key] = Search(self).nonnegative(form)
        return found

    def not_less(self, a: Expr, b: Expr) -> bool:
        """Whether ``a >= b`` is proved, of index expressions, or data integers through their intervals."""
        if a is b:
            return True
        if not a.dtype.is_index:
            low, high = self.interval(a).low, self.interval(b).high
            return low is not None and high is not None and low >= high
        return self.nonnegative(linear_of(a).plus(linear_of(b), -1))

    def less(self, a: Expr, b: Expr) -> bool:
        """Whether ``a < b`` is proved, likewise."""
        if not a.dtype.is_index:
            high, low = self.interval(a).high, self.interval(b).low
            return low is not None and high is not None and high < low
        return self.nonnegative(linear_of(b).plus(linear_of(a), -1).shifted(-1))

    def analysis(self) -> IntervalAnalysis:
        """The analysis of intervals under these facts, which remembers what it was asked."""
        if not self._intervals:
            made = IntervalAnalysis(self.ranges)
            if self is NO_FACTS:
                return made  # it lives for ever, and what it remembers would too
            self._intervals.append(made)
        return self._intervals[0]

    def examples(self) -> Examples:
        """Numbers that the facts allow."""
        if not self._examples:
            self._examples.append(Examples(self.ranges, self.bounds, self.outer))
        return self._examples[0]

    def _with(self, **added: Any) -> Facts:
        """The facts with other fields, to which something was added."""
        return replace(self, outer=None if self is NO_FACTS else self.examples(), **added)

    def about(self, factors: Factors) -> list[Linear]:
        """The bounds in which a term occurs."""
        if not self._about:
            self._about[()] = []
            for form in self.bounds:
                for key in form.terms:
                    self._about.setdefault(key, []).append(form)
        return self._about.get(monomial_key(factors), [])

    def _with_nonnegative(self, *forms: Linear) -> Facts:
        ranges, bounds = dict(self.ranges), list(self.bounds)
        waiting = list(reversed(forms))
        while waiting:
            form = waiting.pop()
            term = next(iter(form.terms.values()), None)
            if term is None:
                continue
            if len(form.terms) == 1 and len(term.factors) == 1:
                k, c, atom = term.coefficient, form.constant, term.factors[0]
                solved = Interval(-(c // k), None) if k > 0 else Interval(None, c // -k)
                ranges[atom] = ranges.get(atom, EVERYTHING).intersect(solved)
                match atom:
                    case Binary("//", a, Const(value=int() as c)) if c > 0 and solved.low is not None:
                        waiting.append(linear_of(a).shifted(-c * solved.low))
                continue
            if len(form.terms) == 1 and term.coefficient > 0 > form.constant and self._are_nonnegative(term.factors):
                for factor in term.factors:  # their product is positive
                    ranges[factor] = ranges.get(factor, EVERYTHING).intersect(Interval(1, None))
            if len(bounds) < _MAX_CONDITIONS:
                bounds.append(form)
        return self._with(ranges=ranges, bounds=tuple(bounds))

    def _are_nonnegative(self, factors: Factors) -> bool:
        return all(self.within(factor, 0, None) for factor in factors)

    def with_part(self, condition: Expr) -> Facts:
        """The facts with one more condition, which is no ``and`` of others. Besides what follows of bounds, the
        condition itself counts as true and its negation as false, up to a limited number of conditions."""
        facts = self
        if len(self.known) < _MAX_CONDITIONS:
            facts = self._with(known={**self.known, condition: True, negate(condition): False})
        match condition:
            case Compare(op, a, b) if a.dtype.is_index and a.dtype.lanes == 1:
                return facts.with_index_compare(op, a, b)
            case Compare(op, a, b) if a.dtype.is_data_int and a.dtype.lanes == 1:
                return facts.with_data_compare(op, a, b)
            case _:
                return facts

    def with_index_compare(self, op: CompareOp, a: Expr, b: Expr) -> Facts:
        """The facts with a comparison of two scalar index expressions, as bounds on their difference; ``==`` also gives
        congruences. ``!=`` tells something only where 0 is an end of the difference's interval."""
        more = linear_of(a).plus(linear_of(b), -1)  # a - b
        less = Linear(more.kind).plus(more, -1)
        match op:
            case "<":
                return self._with_nonnegative(less.shifted(-1))
            case "<=":
                return self._with_nonnegative(less)
            case ">":
                return self._with_nonnegative(more.shifted(-1))
            case ">=":
                return self._with_nonnegative(more)
            case "==":
                return self._with_nonnegative(less, more).with_congruence(a, b).with_congruence(b, a)
            case "!=":
                return self._with_exclusion(more)

    def _with_exclusion(self, form: Linear) -> Facts:
        """``form != 0``, which tells something where 0 is an end of its interval."""
        bounds = self.analysis().of_linear(form)
        if bounds.low == 0:
            return self._with_nonnegative(form.shifted(-1))
        if bounds.high == 0:
            return self._with_nonnegative(Linear(form.kind).plus(form, -1).shifted(-1))
        return self

    def with_congruence(self, a: Expr, b: Expr) -> Facts:
        """The facts with what ``a == b`` says where a is ``x % c`` and b a constant: x's remainder modulo c. Other
        equalities change nothing."""
        match a, b:
            case Binary("%", x, Const(value=int() as c)), Const(value=int() as r) if c > 0:
                stronger = Congruence(c, r).intersect(self.congruences.get(x, Congruence(1, 0)))
                return self._with(congruences={**self.congruences, x: stronger})
            case _:
                return self

    def with_data_compare(self, op: CompareOp, a: Expr, b: Expr) -> Facts:
        """The facts with a comparison of two data integers, which may wrap around: only the ranges of both sides are
        narrowed, their difference says nothing."""
        match op:
            case "<" | "<=":
                gap = 1 if op == "<" else 0
                low, high = self.interval(a).low, self.interval(b).high
                facts = self if high is None else self.with_interval(a, Interval(None, high - gap))
                return facts if low is None else facts.with_interval(b, Interval(low + gap, None))
            case ">":
                return self.with_data_compare("<", b, a)
            case ">=":
                return self.with_data_compare("<=", b, a)
            case "==":
                return self.with_interval(a, self.interval(b)).with_interval(b, self.interval(a))
            case "!=":
                return self


NO_FACTS = Facts()


def nonnegative(variables: Iterable[Var]) -> Facts:
    """The facts that none of these is negative, as no extent is."""
    facts = NO_FACTS
    for var in variables:
        facts = facts.with_interval(var, Interval(0, None))
    return facts


def entry_facts(func: PrimFunc) -> Facts:
    """What holds at the entry of a function: symbolic dimensions of the arguments are not negative, nor are those of
    which the arguments have multiples."""
    facts = Facts()
    for extent in dict.fromkeys(extent for buffer in func.buffers for extent in buffer.shape):
        term = linear_of(extent).single
        if term is not None and term.coefficient > 0 and isinstance(term.factors[0], Var) and len(term.factors) == 1:
            facts = facts.with_interval(term.factors[0], Interval(0, None))
    return facts


def prove(condition: Expr, facts: Facts = NO_FACTS) -> bool:
    """Whether the condition certainly holds (in all lanes). False says "not proved", not "false"."""
    from .simplify import simplify  # facts are what the simplifier works with, so it comes later

    proved = simplify(condition, facts)
    return isinstance(proved, Const) and bool(proved.value) if proved.dtype.lanes == 1 else _all_true(proved)


def _all_true(condition: Expr) -> bool:
    return getattr(condition, "value", None) is TRUE


def _at_most(e: Expr, other: Expr) -> bool:
    """Whether an expression is another one, or less by a constant, or the minimum of such a one and others."""
    if isinstance(e, Binary) and e.op == "min":
        return _at_most(e.a, other) or _at_most(e.b, other)
    difference = linear_of(other).plus(linear_of(e), -1)
    return not difference.terms and difference.constant >= 0


def negate(condition: Expr) -> Expr:
    """The opposite, with ``not`` pushed inwards where that is exact (it is not for ordered floats, because of NaN)."""
    match condition:
        case Const(value=value):
            return FALSE if value else TRUE
        case Unary("not", a):
            return a
        case Compare(op, a) if not a.dtype.is_float or op in ("==", "!="):
            return opposite(condition)
        case _:
            return Unary("not", condition)


def opposite(condition: Compare) -> Compare:
    """The comparison that holds where this one does not; ordered comparisons of floats have none, because of NaN."""
    return Compare(NEGATED[condition.op], condition.a, condition.b)


def _conjuncts(condition: Expr) -> Iterator[Expr]:
    """The parts that hold if the condition holds, ``not (a or b)`` taken apart too."""
    stack = [condition]
    while stack:
        match stack.pop():
            case Logical("and", a, b):
                stack += (b, a)
            case Unary("not", Logical("or", a, b)):
                stack += (negate(b), negate(a))
            case Const():
                pass
            case part:
                yield part
