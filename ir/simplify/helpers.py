"""What the rules ask in their conditions and build in their results.

Each function's docstring opens with its contract, an equation; the proofs of the rules assume it, and
tests/ir/test_simplify_helpers.py tests it.
"""

from __future__ import annotations

import math

from ...base.dataclass import dataclass
from ...base.dtype import DType
from ..constants import const
from ..expr import Binary, Compare, Const, Expr
from ..facts import Facts
from ..interval import range_of
from ..linear import Linear, Term, linear_of, monomial_key, without_factors
from ..linear_expr import expr_of
from ..modular import modulus_of
from ..scalar import wrap

_LARGEST_INDEX = 1 << 48


def like(x: Expr, value: int) -> Expr:
    """``value``, as a constant of x's dtype."""
    return const(value, x.dtype)


def wrapped(x: Expr, value: int) -> int:
    """``value``, wrapped around as x's dtype does."""
    return wrap(x.dtype.element, value)


def fits(x: Expr, value: int) -> bool:
    """``value`` is in the range of x's dtype; of index, far enough from its ends that sums with it cannot leave it."""
    if x.dtype.is_index:
        return abs(value) <= _LARGEST_INDEX
    return wrap(x.dtype.element, value) == value


def all_ones(x: Expr) -> int:
    """The value of x's dtype that has all bits set."""
    return wrap(x.dtype.element, -1)


@dataclass(frozen=True, slots=True, eq=False)
class DivMod:
    """A value in parts, ``quotient * y + rest`` for the divisor y that ``split`` was asked about; the rest may be
    negative."""

    quotient: Expr
    rest: Expr


def split(x: Expr, y: Expr) -> DivMod | None:
    """``x == quotient * y + rest``, where some term of x is a multiple of y, a constant above 1 or a product; or x has
    a multiple of y among its terms, a sum."""
    form, divisor = linear_of(x), _divisor(y)
    if divisor is None:
        return _split_by_sum(x, linear_of(y))
    if not divisor.factors and divisor.coefficient <= 1:
        return None
    quotient, rest = Linear(form.kind), Linear(form.kind)
    for term in form:
        others = without_factors(term.factors, divisor.factors)
        if others is None or term.coefficient == 0:
            rest.accumulate(term.coefficient, term.factors)
            continue
        count = _multiples(term, divisor.coefficient)
        quotient.accumulate(count, others)
        rest.accumulate(term.coefficient - count * divisor.coefficient, term.factors)
    if quotient.is_constant and quotient.constant == 0:
        return None
    return DivMod(expr_of(quotient, x.dtype.lanes), expr_of(rest, x.dtype.lanes))


def _split_by_sum(x: Expr, divisor: Linear) -> DivMod | None:
    """``split`` by a sum, each of whose terms x has equally often."""
    form = linear_of(x)
    counts = {
        divmod(form.terms[key].coefficient, term.coefficient) if key in form.terms else (0, 1)
        for key, term in divisor.terms.items()
    }
    if len(counts) > 1 or not x.dtype.is_index:
        return None
    ((count, left),) = counts
    if left or not count:
        return None
    return DivMod(like(x, count), expr_of(form.plus(divisor, -count), x.dtype.lanes))


def _divisor(y: Expr) -> Term | None:
    form = linear_of(y)
    return Term(form.constant, ()) if form.is_constant else form.single


def _multiples(term: Term, divisor: int) -> int:
    """How often the divisor goes into a coefficient: towards 0, but downwards for a constant: its rest is >= 0."""
    if not term.factors:
        return term.coefficient // divisor
    return int(math.copysign(abs(term.coefficient) // abs(divisor), term.coefficient * divisor))


def only_quotient(x: Expr, c: int, facts: Facts) -> int | None:
    """The quotient that all values of x have: ``result * c <= x < (result + 1) * c``, where c > 0."""
    bounds = facts.interval(x)
    if bounds.low is None or bounds.high is None or bounds.low // c != bounds.high // c:
        return None
    return bounds.low // c


def known_rest(x: Expr, c: int, facts: Facts) -> int | None:
    """The remainder that all values of x have: ``x % c == result``, where c > 0."""
    return modulus_of(x, facts).modulo(c)


def without_remainders(x: Expr, c: int) -> Expr | None:
    """``result == x + t * c`` for some integer t, where x has terms ``k * (y % d)`` with c dividing ``k * d``."""
    form, changed = Linear(x.dtype.element), False
    for term in linear_of(x):
        match term.factors:
            case (Binary("%", y, Const(int(d))),) if term.coefficient * d % c == 0:
                form, changed = form.plus(linear_of(y), term.coefficient), True
            case _:
                form.accumulate(term.coefficient, term.factors)
    return expr_of(form, x.dtype.lanes) if changed else None


@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """A value in parts, ``factor * quotient + rest`` with ``0 <= rest < factor``, as ``grouped`` finds them."""

    factor: int
    quotient: Expr
    rest: Expr


def grouped(x: Expr, c: int, facts: Facts) -> Grouped | None:
    """``x == factor * quotient + rest`` and ``0 <= rest < factor``, where factor > 1 divides c."""
    form = linear_of(x)
    factors = {math.gcd(t.coefficient, c) for t in form.terms.values()}
    for factor in sorted(factors - {1}, reverse=True):
        quotient, rest = Linear(form.kind), Linear(form.kind)
        for term in form:
            count = term.coefficient // factor
            if term.factors and term.coefficient % factor:
                count = 0
            quotient.accumulate(count, term.factors)
            rest.accumulate(term.coefficient - count * factor, term.factors)
        if facts.analysis().of_linear(rest).within(0, factor - 1):
            return Grouped(factor, expr_of(quotient, x.dtype.lanes), expr_of(rest, x.dtype.lanes))
    return None


@dataclass(frozen=True, slots=True, eq=False)
class Common:
    """Two sums as ``common + a`` and ``common + b``, as ``common_part`` finds them."""

    common: Expr
    a: Expr
    b: Expr


def common_part(x: Expr, y: Expr) -> Common | None:
    """``x == common + a`` and ``y == common + b``, where common is not 0."""
    left, right = linear_of(x), linear_of(y)
    shared = Linear(left.kind)
    for key, term in left.terms.items():
        found = right.terms.get(key)
        if found is not None and found.coefficient == term.coefficient:
            shared.accumulate(term.coefficient, term.factors)
    if left.constant and left.terms and right.terms and left.constant == right.constant:
        shared.constant = left.constant
    if shared.is_constant and shared.constant == 0:
        return None
    lanes = max(x.dtype.lanes, y.dtype.lanes)
    return Common(*(expr_of(f, lanes) for f in (shared, left.plus(shared, -1), right.plus(shared, -1))))


@dataclass(frozen=True, slots=True, eq=False)
class BalancedDifference:
    """The difference of two values as ``factor * (a - b) + constant``, as ``balanced`` and ``flipped`` find it."""

    factor: int
    a: Expr
    b: Expr
    constant: int


def balanced(x: Expr, y: Expr) -> BalancedDifference | None:
    """``x - y == factor * (a - b) + constant`` and factor > 0; None if x and y stand like this already.

    The terms of a and b have positive coefficients, without a common factor, and a has some.
    """
    left, right = linear_of(x), linear_of(y)
    form = left.plus(right, -1)
    factor = form.content()
    a, b = Linear(form.kind), Linear(form.kind)
    for term in form.terms.values():
        (a if term.coefficient > 0 else b).accumulate(abs(term.coefficient) // factor, term.factors)
    if not a.terms:
        return None
    lanes = max(x.dtype.lanes, y.dtype.lanes)
    if factor == 1 and _same(a, left) and _same(b.shifted(-form.constant), right):
        return None
    return BalancedDifference(factor, expr_of(a, lanes), expr_of(b, lanes), form.constant)


def flipped(x: Expr, y: Expr) -> BalancedDifference | None:
    """``y - x == factor * (a - b) + constant`` and factor > 0, where ``x - y`` has no positive term."""
    form = linear_of(y).plus(linear_of(x), -1)
    return balanced(y, x) if form.terms and all(t.coefficient > 0 for t in form.terms.values()) else None


def chooses_larger(condition: Expr, x: Expr, y: Expr) -> bool:
    """``x >= y`` where the condition holds, and ``x <= y`` where it does not: ``x - y`` moves with what it compares."""
    if not isinstance(condition, Compare) or not condition.a.dtype.is_index or x.dtype.lanes != 1:
        return False
    left, right = linear_of(condition.a), linear_of(condition.b)
    match condition.op:
        case ">=" | ">":
            margin = left.plus(right, -1)
        case "<=" | "<":
            margin = right.plus(left, -1)
        case _:
            return False
    margin = margin.shifted(-1) if condition.op in ("<", ">") else margin  # the condition holds where this is >= 0
    term = next(iter(margin.terms.values()), None)
    gap = linear_of(x).plus(linear_of(y), -1)
    found = None if term is None else gap.terms.get(monomial_key(term.factors))
    if term is None or found is None or found.coefficient % term.coefficient:
        return False
    scale = found.coefficient // term.coefficient
    rest = gap.plus(margin, -scale)
    return scale > 0 and rest.is_constant and 0 <= rest.constant <= scale


def _same(a: Linear, b: Linear) -> bool:
    if a.constant != b.constant or len(a.terms) != len(b.terms):
        return False
    return all(
        (found := b.terms.get(key)) is not None and found.coefficient == term.coefficient
        for key, term in a.terms.items()
    )


_MANTISSA = {("float", 16): 11, ("float", 32): 24, ("float", 64): 53, ("bfloat", 16): 8}


def passes(middle: DType, to: DType, x: Expr, facts: Facts) -> bool:
    """Whether a cast in between changes nothing: ``to(middle(x)) == to(x)``."""
    kind = x.dtype
    if middle.is_bool or kind.is_bool:
        return kind.is_bool
    if kind.is_narrow or middle.is_narrow:
        return middle.element is kind.element
    if kind.is_float:
        wider = middle.kind == "float" and middle.bits > kind.bits
        return middle.element is kind.element or wider
    bounds = facts.interval(x)
    if not middle.is_float:
        return bounds.within(*_ends(middle))
    exact = 1 << _MANTISSA[middle.kind, middle.bits]  # a float saturates when it becomes an integer, an integer wraps
    return bounds.within(-exact, exact) and bounds.within(*_ends(to))


def _ends(kind: DType) -> tuple[int | None, int | None]:
    whole = range_of(kind)
    return whole.low, whole.high
