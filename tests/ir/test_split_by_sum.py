"""Quotients and remainders by a sum that the dividend has a multiple of, as a number of tiles by those of a row."""

import itertools

from loopwright import te
from loopwright.ir.contents import substitute
from loopwright.ir.expr import Const
from loopwright.ir.facts import nonnegative
from loopwright.ir.simplify import simplify

N, M = te.var("n"), te.var("m")
TILES = (N * 3 + 12) // 13


def test_a_multiple_of_a_sum_is_divided_out():
    assert str(simplify((N * 3 + M * 3) // (N + M))) == "3"
    assert str(simplify((N * 3 + TILES * 3) % (N + TILES))) == "0"
    assert str(simplify((N * 3 + M * 3 + 5) % (N + M))) == "5 % (n + m)"


def test_terms_that_it_does_not_have_equally_often_stay():
    for e in ((N * 2 + M * 3) // (N + M), (N * 3) // (N + M), (N * 3 + M * 4) % (N * 2 + M)):
        assert simplify(e) is simplify(e, nonnegative([N, M]))
        assert "//" in str(simplify(e)) or "%" in str(simplify(e))


def test_one_less_than_a_multiple_is_one_less_by_facts_alone():
    e = (N * 3 + M * 3 - 1) // (N + M)
    assert "//" in str(simplify(e))
    assert str(simplify(e, nonnegative([N, M]).with_condition(N + M >= 1))) == "2"


def test_values_stay_as_they_are():
    makers = [
        lambda a, b: (a * 3 + b * 3 - 1) // (a + b),
        lambda a, b: (a * 4 - b * 4 + 7) // (a - b),
        lambda a, b: (a * 4 - b * 4 + 7) % (a - b),
        lambda a, b: (b - a * 2) // (a * 2 - b),
        lambda a, b: (a * 6 + b * 4 + 1) % (a * 3 + b * 2),
    ]
    for make, (a, b) in itertools.product(makers, itertools.product(range(-4, 5), repeat=2)):
        try:
            wanted = make(a, b)
        except ZeroDivisionError:
            continue
        numbers = {N: Const(a, N.dtype), M: Const(b, M.dtype)}
        assert int(simplify(substitute(simplify(make(N, M)), numbers))) == wanted
