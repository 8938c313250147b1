"""Puts together what division took apart: finds the equations of ``add_sub.py`` among the terms of an index sum."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from ..expr import Binary, Expr
from ..facts import Facts
from ..linear import Linear, Term, linear_of, monomial_key, without_factors
from .add_sub import (
    Equation,
    exact_quotient,
    remainder_and_other_quotient,
    remainder_and_quotient,
    two_remainders,
    value_and_quotient,
)
from .visitor import Request


def divisions_of(form: Linear) -> list[Binary]:
    """The quotients and remainders among the factors of a sum; without any there is nothing to combine."""
    return [f for t in form.terms.values() for f in t.factors if isinstance(f, Binary) and f.op in ("//", "%")]


def combine(form: Linear, facts: Facts) -> Generator[Request, Any, Linear | None]:
    """The sum with one equation applied, or None. Asks (yields) for the simplified form of quotients."""
    divisions = divisions_of(form)
    for a in dict.fromkeys(divisions):
        for equation in (yield from _equations(a, divisions, facts)):
            result = _apply(form, a, equation)
            if result is not None:
                return result
    return None


def _equations(a: Binary, divisions: list[Binary], facts: Facts) -> Generator[Request, Any, list[Equation]]:
    if a.op == "//":
        found = [exact_quotient(a, facts), value_and_quotient(a, facts)]
    else:
        q = yield Binary("//", a.a, a.b), facts
        found = [remainder_and_quotient(a, q, facts)]
        for b in divisions:
            found += [two_remainders(a, b, q, facts), remainder_and_other_quotient(a, b, facts)]
    return [e for e in found if e is not None]


def _apply(form: Linear, pivot: Expr, equation: Equation) -> Linear | None:
    """``form - k*left + k*right`` for the k that makes the terms of left vanish; None if one of them is not there."""
    left = linear_of(equation.left)
    inside = next((t for t in left.terms.values() if any(f is pivot for f in t.factors)), None)
    if inside is None:
        return None
    for term in form.terms.values():
        others = without_factors(term.factors, inside.factors)
        if others is None or term.coefficient % inside.coefficient:
            continue
        scale = term.coefficient // inside.coefficient
        if all(_present(form, t, scale, others) for t in left.terms.values()):
            return form.plus(left.times(scale, others), -1).plus(linear_of(equation.right).times(scale, others))
    return None


def _present(form: Linear, term: Term, scale: int, others: tuple[Expr, ...]) -> bool:
    found = form.terms.get(monomial_key(term.factors + others))
    return found is not None and found.coefficient == term.coefficient * scale
