"""Extents as products: the factors that they have in common, and what is left of one divided by another."""

from __future__ import annotations

import functools
import math
import operator
from collections import Counter
from collections.abc import Sequence

from .constants import ONE, ZERO, const_int
from .expr import Binary, Const, Expr
from .makers import as_index
from .simplify import simplify


def product_of(extents: Sequence[Expr]) -> tuple[int, list[Expr]]:
    """The number and the symbolic factors that the extents multiply to: (6·n, 4) are 24 and n, and (2·n·m + 4·n,) are
    2, n and m + 2."""
    number, factors = 1, []
    for extent in extents:
        match extent:
            case Const(value=int() as known):
                number *= known
            case Binary("*", a, b):
                inner, symbolic = product_of((a, b))
                number *= inner
                factors += symbolic
            case Binary("+" | "-"):
                inner, symbolic = _factored(extent)
                number *= inner
                factors += symbolic
            case _:
                factors.append(extent)
    return number, factors


def _factored(total: Expr) -> tuple[int, list[Expr]]:
    """What all terms of a sum have as factors, and last what that leaves of the sum."""
    terms = [(number, Counter(factors)) for number, factors in (product_of((term,)) for term in _terms(total))]
    number = math.gcd(*(coefficient for coefficient, _ in terms))
    common = functools.reduce(operator.and_, (factors for _, factors in terms))
    if number <= 1 and not common:
        return 1, [total]
    rest = (math.prod((f - common).elements(), start=as_index(coefficient // number)) for coefficient, f in terms)
    return number, [*common.elements(), simplify(sum(rest, start=ZERO))]


def _terms(total: Expr, sign: int = 1) -> list[Expr]:
    match total:
        case Binary("+" | "-" as op, a, b):
            return [*_terms(a, sign), *_terms(b, sign if op == "+" else -sign)]
        case _:
            return [total if sign > 0 else total * sign]


def quotient(extents: Sequence[Expr], by: Sequence[Expr]) -> Expr | None:
    """The product of the extents divided by the product of others, None where it is not certain to be whole."""
    number, factors = product_of(extents)
    divisor, divided = product_of(by)
    if divisor == 0 or number % divisor or Counter(divided) - Counter(factors):
        return None
    return simplify(math.prod((Counter(factors) - Counter(divided)).elements(), start=as_index(number // divisor)))


def same_product(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    """Whether both products are certainly the same number."""
    if 0 in (product_of(a)[0], product_of(b)[0]):
        return product_of(a)[0] == product_of(b)[0]
    ratio = quotient(a, b)
    if ratio is not None:
        return const_int(ratio) == 1
    return simplify(math.prod(a, start=ONE) - math.prod(b, start=ONE)) is ZERO  # as n + -n % 8 is its eighth times 8
