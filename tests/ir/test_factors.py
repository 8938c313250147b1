"""Products of symbolic extents, their factors and quotients, against the numbers that they stand for."""

import math

import pytest

from loopwright.ir.build import index_var
from loopwright.ir.constants import const_int
from loopwright.ir.contents import substitute
from loopwright.ir.factors import product_of, quotient, same_product
from loopwright.ir.makers import as_index
from loopwright.ir.simplify import simplify

N, M = index_var("n"), index_var("m")
VALUES = [(1, 1), (2, 3), (7, 5), (12, 1)]


def number(extents, n, m):
    made = math.prod((as_index(e) for e in extents), start=as_index(1))
    return const_int(simplify(substitute(made, {N: as_index(n), M: as_index(m)})))


@pytest.mark.parametrize(
    ("extents", "known", "symbolic"),
    [
        ((N * 6, 4), 24, ["n"]),
        ((N * M * 2 + N * 4,), 2, ["n", "m + 2"]),
        ((N * 6 - M * 4,), 2, ["n * 3 - m * 2"]),
        ((N + 1,), 1, ["n + 1"]),
        ((3, 5), 15, []),
    ],
)
def test_the_factors_multiply_to_the_product(extents, known, symbolic):
    extents = [as_index(e) for e in extents]
    found, factors = product_of(extents)
    assert (found, list(map(str, factors))) == (known, symbolic)
    for n, m in VALUES:
        assert number([found, *factors], n, m) == number(extents, n, m)


@pytest.mark.parametrize(
    ("extents", "by", "is_whole"),
    [
        ((N * 6, M), (N, 3), True),
        ((N * M * 2 + N * 4,), (N, M + 2), True),
        ((N * 6,), (4,), False),  # of an odd n it is not
        ((N,), (M,), False),
        ((N,), (0,), False),
        ((N * M, 8), (M * 4,), True),
    ],
)
def test_a_quotient_is_given_where_it_is_certain_to_be_whole(extents, by, is_whole):
    extents, by = [as_index(e) for e in extents], [as_index(e) for e in by]
    found = quotient(extents, by)
    assert (found is not None) == is_whole
    for n, m in VALUES if found is not None else ():
        assert number([found], n, m) * number(by, n, m) == number(extents, n, m)


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ((N, 4), (2, N * 2), True),
        ((N, 0), (0,), True),
        ((N, 0), (N,), False),
        ((N, M), (M, N), True),
        ((N,), (N + 1,), False),
        ((N * 2,), (N,), False),
    ],
)
def test_products_that_are_certainly_the_same(a, b, same):
    a, b = [as_index(e) for e in a], [as_index(e) for e in b]
    assert same_product(a, b) is same
    if same:
        assert all(number(a, n, m) == number(b, n, m) for n, m in VALUES)
