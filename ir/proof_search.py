"""The search behind ``Facts.nonnegative``: from what is known to be >= 0 to whether a form is >= 0.

It subtracts multiples of known bounds until intervals decide, a bounded Fourier–Motzkin elimination, and takes min, max
and choices apart by cases. A form that an example refutes is followed no further. Incomplete: "no" says "not found".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .expr import Binary, Const, Expr, IfThenElse, Select
from .linear import Linear, Term, linear_of, monomial_key

if TYPE_CHECKING:
    from .facts import Facts

_SEARCH_DEPTH = 6
_SEARCH_STEPS = 40


class Search:
    """The search for a proof that a form is >= 0: subtract multiples of what is known to be >= 0.

    Mutable: counts its steps, and gives up at a limit.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts, self._analysis = facts, facts.analysis()
        self._steps = 0

    def nonnegative(self, form: Linear, depth: int = _SEARCH_DEPTH) -> bool:
        """Whether the form is proved to be >= 0. False says only that no proof was found within ``depth`` subtractions
        and the limit of steps."""
        low = form.constant
        opened: list[Term] = []
        bounded: list[Term] = []
        for term in form.terms.values():
            least, _ = self._analysis.of_term(term)
            (opened if least is None else bounded).append(term)
            low += least or 0
        if low >= 0 and not opened:
            return True
        self._steps += 1
        if depth == 0 or self._steps > _SEARCH_STEPS or not form.terms:
            return False
        if self._facts.examples().refute(form):
            return False
        ways = (self._by_cases, self._by_bounds, self._by_divisor)
        return any(way(form, term, depth) for term in opened + bounded for way in ways)

    def _by_bounds(self, form: Linear, term: Term, depth: int) -> bool:
        """Use a known bound to get rid of a term."""
        key = monomial_key(term.factors)
        for bound in self._bounds_of(term, depth):
            known = bound.terms[key].coefficient
            if (known > 0) != (term.coefficient > 0):
                continue
            if term.coefficient % known == 0:
                if self.nonnegative(form.plus(bound, -(term.coefficient // known)), depth - 1):
                    return True
                continue
            scaled = form.times(abs(known)).shifted(abs(known) - 1)  # whole numbers above -1 are not negative
            if self.nonnegative(scaled.plus(bound, -abs(term.coefficient)), depth - 1):
                return True
        return False

    def _by_divisor(self, form: Linear, term: Term, depth: int) -> bool:
        """Multiply by the divisor b of a quotient q = a // b: the remainder a - b·q is from 0 to b - 1."""
        match term.factors:
            case (Binary("//", a, b) as quotient,) if not isinstance(b, Const) and self._facts.within(b, 1, None):
                divisor = linear_of(b)
            case _:
                return False
        if divisor.constant or len(divisor.terms) != 1:
            return False
        (product,) = divisor.terms.values()
        scaled = form.times(product.coefficient, product.factors).plus(divisor).shifted(-1)  # as in _by_bounds
        remainder = linear_of(a).plus(linear_of(quotient).times(product.coefficient, product.factors), -1)
        bound = remainder if term.coefficient < 0 else divisor.plus(remainder, -1).shifted(-1)
        return self.nonnegative(scaled.plus(bound, -abs(term.coefficient)), depth - 1)

    def _by_cases(self, form: Linear, term: Term, depth: int) -> bool:
        """A term that takes one of two values: both must do."""
        rest = form.plus(_only(form, term), -1)
        for position, factor in enumerate(term.factors):
            others = term.factors[:position] + term.factors[position + 1 :]
            match factor:
                case Binary("min", a, b) if not others and term.coefficient > 0:
                    pass
                case Binary("max", a, b) if not others and term.coefficient < 0:
                    pass
                case Select(_, a, b) | IfThenElse(_, a, b) if a.dtype.lanes == 1:
                    pass
                case _:
                    continue
            cases = [rest.plus(linear_of(side).times(term.coefficient, others)) for side in (a, b)]
            return all(self.nonnegative(case, depth - 1) for case in cases)
        return False

    def _bounds_of(self, term: Term, depth: int) -> Iterator[Linear]:
        yield from self._facts.about(term.factors)
        for position, factor in enumerate(term.factors):
            others = term.factors[:position] + term.factors[position + 1 :]
            if not others:
                yield from self._implied(factor, depth)
            elif all(self._facts.within(f, 0, None) for f in others):
                key = monomial_key(term.factors)
                for bound in [*self._facts.about((factor,)), *self._range_of(factor)]:
                    product = bound.times(1, others)
                    if key in product.terms:
                        yield product

    def _range_of(self, atom: Expr) -> Iterator[Linear]:
        interval, a = self._facts.interval(atom), linear_of(atom)
        if interval.low is not None:
            yield a.shifted(-interval.low)
        if interval.high is not None:
            yield a.times(-1).shifted(interval.high)

    def _implied(self, atom: Expr, depth: int) -> Iterator[Linear]:
        """Bounds that hold by what an atom is."""
        if not atom.dtype.is_index:
            return
        x = linear_of(atom)
        match atom:
            case Binary("min", a, b):
                yield from (linear_of(side).plus(x, -1) for side in (a, b))
            case Binary("max", a, b):
                yield from (x.plus(linear_of(side), -1) for side in (a, b))
            case Binary("//", a, Const(value=int() as c)) if c > 0:
                yield linear_of(a).plus(x, -c)
                yield x.times(c).plus(linear_of(a), -1).shifted(c - 1)
            case Binary("%", a, b):
                divisor = linear_of(b)
                if depth > 1 and self.nonnegative(divisor.shifted(-1), depth - 2):
                    yield x
                    yield divisor.plus(x, -1).shifted(-1)
                if self._facts.within(a, 0, None):
                    yield linear_of(a).plus(x, -1)
            case _:
                return


def _only(form: Linear, term: Term) -> Linear:
    return Linear(form.kind, {monomial_key(term.factors): term})
