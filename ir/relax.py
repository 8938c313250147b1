"""Symbolic bounds of index expressions: what bound inference asks. Which elements are read while some loops run?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import TypeAlias

from ..base.dataclass import dataclass
from .constants import ONE, ZERO
from .contents import nodes_of, reads_memory, reads_tensors, substitute, variables_of
from .expr import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Let,
    Load,
    Logical,
    Reduce,
    Select,
    TensorRead,
    Var,
)
from .facts import NO_FACTS, Facts, negate
from .linear import Linear, Term, linear_of, monomial_key
from .linear_expr import expr_of
from .makers import maximum, minimum
from .simplify import simplify

Range: TypeAlias = tuple[Expr, Expr]
_Half: TypeAlias = "tuple[Expr | None, Expr | None]"


def relax(e: Expr, ranges: Mapping[Var, Range], facts: Facts = NO_FACTS) -> Range | None:
    """Inclusive bounds (low, high) of an index expression while each variable of ``ranges`` runs between its own.

    The other variables stay in the result. Bounds are exact for affine expressions, also where a variable occurs more
    than once; ``//``, ``%``, min, max and choices are bounded part by part. None if a side cannot be bounded, as where
    the value is read from memory. ``facts`` may speak of all variables.
    """
    return Limits.of(ranges, facts).relax(e)


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """The ranges of variables, and all that is known where they hold. Made once, it bounds many expressions."""

    ranges: Mapping[Var, Range]
    facts: Facts

    @staticmethod
    def of(ranges: Mapping[Var, Range], facts: Facts = NO_FACTS) -> Limits:
        """The ranges of variables together with the facts that follow from these and from ``facts``."""
        return Limits(dict(ranges), facts.with_limits(ranges))

    def relax(self, e: Expr) -> Range | None:
        """Bounds of an expression while the variables run, as the function ``relax`` gives them."""
        low, high = self.bounds(simplify(e, self.facts))
        return None if low is None or high is None else (simplify(low, self.facts), simplify(high, self.facts))

    def bounds(self, e: Expr) -> _Half:
        """Bounds of a sum; a side is None where it is unbounded."""
        form = linear_of(e)
        low: Expr | None = Const(form.constant, form.kind)
        high: Expr | None = low
        fixed = Linear(form.kind, {}, form.constant)
        for term in form.terms.values():
            if not self._varies(term.factors):
                fixed.accumulate(term.coefficient, term.factors)
        low = high = expr_of(fixed)
        for terms in self._grouped(form):
            term_low, term_high = self._product(terms)
            low = None if low is None or term_low is None else low + term_low
            high = None if high is None or term_high is None else high + term_high
        return low, high

    def _grouped(self, form: Linear) -> list[list[Term]]:
        """The terms that vary, each by itself, or with others of the same factor where their signs differ: in ``i * n -
        i * 4``, ``i`` is multiplied by ``n - 4``, whose sign may be known."""
        terms = [term for term in form.terms.values() if self._varies(term.factors)]
        by_factor: dict[Expr, list[Term]] = {}
        for term in terms:
            varying = [f for f in term.factors if self._varies((f,))]
            if len(varying) == 1:
                by_factor.setdefault(varying[0], []).append(term)
        joint = [group for group in by_factor.values() if len({term.coefficient > 0 for term in group}) > 1]
        apart = [[term] for term in terms if not any(term in group for group in joint)]
        return apart + joint

    def _product(self, terms: list[Term]) -> _Half:
        """Bounds of the sum of terms of one factor that varies."""
        if len(terms) == 1:
            return self._term(terms[0])
        (varying,) = (f for f in terms[0].factors if self._varies((f,)))
        scale = Linear(varying.dtype)
        for term in terms:
            scale.accumulate(term.coefficient, tuple(f for f in term.factors if f is not varying))
        total = expr_of(scale)
        rises = self.facts.not_less(total, ZERO)
        if rises or self.facts.not_less(ZERO, total):
            low, high = (None if b is None else _multiplied_out(b, total) for b in self._atom(varying))
            return (low, high) if rises else (high, low)
        parts = [self._term(term) for term in terms]
        lows, highs = ([part[side] for part in parts] for side in (0, 1))
        return _sum_of(lows), _sum_of(highs)

    def _varies(self, parts: tuple[Expr, ...]) -> bool:
        """Whether the value changes with the variables, or with what is in memory."""
        return any(map(self._may_change, parts))

    def _may_change(self, part: Expr) -> bool:
        reads = reads_memory(part) or reads_tensors(part) or bool(nodes_of(part, Reduce))
        return reads or not self.ranges.keys().isdisjoint(variables_of(part))

    def _term(self, term: Term) -> _Half:
        varying = [f for f in term.factors if self._varies((f,))]
        others = tuple(f for f in term.factors if not self._varies((f,)))
        scale = (
            expr_of(Linear(varying[0].dtype, {monomial_key(others): Term(term.coefficient, others)}))
            if others
            else None
        )
        sign = self._sign(term.coefficient, others)
        if len(varying) != 1 or sign is None:
            return self._constants(expr_of(Linear(varying[0].dtype, {monomial_key(term.factors): term})))
        low, high = (
            None if b is None else b * term.coefficient if scale is None else _multiplied_out(b, scale)
            for b in self._atom(varying[0])
        )
        return (low, high) if sign else (high, low)

    def _sign(self, coefficient: int, factors: tuple[Expr, ...]) -> bool | None:
        """Whether a product is >= 0 (True) or <= 0 (False), if that is known."""
        positive = coefficient > 0
        for factor in factors:
            if self.facts.not_less(factor, ZERO):
                continue
            if not self.facts.not_less(ZERO, factor):
                return None
            positive = not positive
        return positive

    def _constants(self, e: Expr) -> _Half:
        """The last resort: constant bounds."""
        found = self.facts.interval(e)
        return tuple(None if b is None else Const(b, e.dtype) for b in (found.low, found.high))  # type: ignore[return-value]

    def _atom(self, e: Expr) -> _Half:
        match e:
            case Var() if e in self.ranges:
                return self.ranges[e]
            case Binary("//", x, Const(int(c))) if c > 0:
                low, high = self.bounds(x)
                return None if low is None else low // c, None if high is None else high // c
            case Binary("//", x, y) if not self._varies((y,)) and self.facts.less(ZERO, y):
                low, high = self.bounds(x)
                return None if low is None else low // y, None if high is None else self._last_quotient(high, y)
            case Binary("%", x, Const(int(c))) if c > 0:
                return self._remainder(x, c)
            case Binary("%", _, y) if not self._varies((y,)) and self.facts.less(ZERO, y):
                return ZERO, y - 1
            case Binary("min", x, y):
                (a, b), (c1, d) = self.bounds(x), self.bounds(y)
                return _both(minimum, a, c1), _either(minimum, _either(minimum, b, d), self._mean(x, y, below=True))
            case Binary("max", x, y):
                (a, b), (c1, d) = self.bounds(x), self.bounds(y)
                return _either(maximum, _either(maximum, a, c1), self._mean(x, y, below=False)), _both(maximum, b, d)
            case Select(condition, x, y) | IfThenElse(condition, x, y):
                a, b = self._under(condition, x)
                c2, d = self._under(negate(condition), y)
                return _both(minimum, a, c2), _both(maximum, b, d)
            case Let(var, value, body):
                return self.bounds(simplify(substitute(body, {var: value}), self.facts))
            case Cast(_, value) if value.dtype.bits <= 8:  # a byte of memory is within a table for each of its values
                return self._constants(e)
            case Load() | TensorRead() | Cast() | Reduce():
                return None, None
            case Call("abs", (x,)):
                low, high = self.bounds(x)
                if low is None or high is None:
                    return ZERO, None
                return maximum(maximum(low, -high), 0), maximum(high, -low)
            case Binary("+" | "-"):
                return self.bounds(e)
            case _:
                return self._constants(e)

    def _mean(self, x: Expr, y: Expr, below: bool) -> Expr | None:
        """Half of ``x + y``, rounded down or up, where that does not vary: the smaller one is not above it, nor the
        larger one below."""
        total = simplify(x + y, self.facts) if x.dtype.is_index else None
        if total is None or self._varies((total,)):
            return None
        return total // 2 if below else (total + 1) // 2

    def _last_quotient(self, high: Expr, y: Expr) -> Expr:
        """``high // y`` for positive y; where ``high`` is the last number of whole periods, that of the last one."""
        periods = simplify((high + 1) // y, self.facts)
        return periods - 1 if simplify(periods * y - high, self.facts) is ONE else high // y

    def _remainder(self, x: Expr, c: int) -> _Half:
        """Within one period a remainder runs like its dividend, otherwise over the whole period."""
        low, high = self.bounds(x)
        if low is not None and high is not None:
            period = simplify(low // c, self.facts)
            if period is simplify(high // c, self.facts):
                return low - period * c, high - period * c
        return ZERO, Const(c - 1, x.dtype)

    def _under(self, condition: Expr, e: Expr) -> _Half:
        """Bounds where a condition holds: comparisons of a variable narrow its range."""
        ranges = dict(self.ranges)
        parts = [condition]
        while parts:
            match parts.pop():
                case Logical("and", a, b):
                    parts += (a, b)
                case Compare(op, Var() as var, limit) if var in ranges and not self._varies((limit,)):
                    low, high = ranges[var]
                    if op in ("<", "<=", "=="):
                        high = minimum(high, limit - 1 if op == "<" else limit)
                    if op in (">", ">=", "=="):
                        low = maximum(low, limit + 1 if op == ">" else limit)
                    ranges[var] = low, high
        facts = self.facts.with_condition(condition)
        return Limits(ranges, facts).bounds(simplify(e, facts))


def _sum_of(bounds: Sequence[Expr | None]) -> Expr | None:
    known = [b for b in bounds if b is not None]
    return reduce(add, known) if len(known) == len(bounds) else None


def _multiplied_out(e: Expr, scale: Expr) -> Expr:
    """A product as the sum of those of all terms: the forms of sums leave products of two sums as they are, and the
    difference of two bounds is to lose what these have in common."""
    terms = (
        expr_of(Linear(e.dtype, {monomial_key(t.factors): t})) if t.factors else t.coefficient for t in linear_of(e)
    )
    return reduce(add, (scale * term for term in terms), ZERO)


def _both(op: Callable[[Expr, Expr], Expr], a: Expr | None, b: Expr | None) -> Expr | None:
    """The bound that holds of two parts; unbounded if one of them is."""
    return None if a is None or b is None else op(a, b)


def _either(op: Callable[[Expr, Expr], Expr], a: Expr | None, b: Expr | None) -> Expr | None:
    """The bound that one of two parts gives."""
    return b if a is None else a if b is None else op(a, b)


_MOST_BOUNDS = 8
"""Of more bounds than these of one expression, the others are left out."""


def lower_bounds(e: Expr, facts: Facts = NO_FACTS) -> list[Expr]:
    """Expressions that are nowhere above an index expression: all ways to put one side in place of a ``max`` in it, and
    those of ``min`` together. ``max(i - 1, 0)`` gives ``i - 1`` and ``0``. Never empty."""
    return _plainer(e, False, facts)


def upper_bounds(e: Expr, facts: Facts = NO_FACTS) -> list[Expr]:
    """Expressions that are nowhere below an index expression, likewise."""
    return _plainer(e, True, facts)


def _plainer(e: Expr, above: bool, facts: Facts) -> list[Expr]:
    form = linear_of(e)
    found: list[Expr] = [Const(form.constant, form.kind)]
    for term in form.terms.values():
        sides = [expr_of(Linear(form.kind, {monomial_key(term.factors): term}))]
        if len(term.factors) == 1:
            parts = _sides_of(term.factors[0], above == (term.coefficient > 0), facts)
            sides = [part * term.coefficient for part in parts]
        found = [total + side for total in found for side in sides][:_MOST_BOUNDS]
    return list(dict.fromkeys(simplify(total, facts) for total in found))


def _sides_of(e: Expr, above: bool, facts: Facts) -> list[Expr]:
    match e:
        case Binary("min" | "max" as op, a, b) if (op == "min") == above:
            return [*_plainer(a, above, facts), *_plainer(b, above, facts)]
        case Binary("min" | "max", a, b) | Select(_, a, b):
            pick = maximum if above else minimum
            return [pick(x, y) for x in _plainer(a, above, facts) for y in _plainer(b, above, facts)]
        case Binary("//", a, Const(int(c))) if c > 0:
            return [x // c for x in _plainer(a, above, facts)]
        case _:
            return [e]
