"""Extents written as text: what exporters name dimensions, read as index expressions."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright import te
from loopwright.ir.constants import const_int
from loopwright.ir.contents import substitute
from loopwright.ir.extent_text import names_of_formula, parse_extent
from loopwright.ir.makers import as_index
from loopwright.ir.simplify import simplify

N, M = te.var("n"), te.var("m")
NAMES = {"n": N, "m": M}


def value(text, **numbers):
    formula = parse_extent(text, NAMES.__getitem__)
    return const_int(simplify(substitute(formula, {NAMES[k]: as_index(v) for k, v in numbers.items()})))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n + 1", lambda n, m: n + 1),
        ("n*4", lambda n, m: n * 4),
        ("(n + m)*2 - 1", lambda n, m: (n + m) * 2 - 1),
        ("floor(n/2) + 1", lambda n, m: n // 2 + 1),
        ("ceiling(n/2)", lambda n, m: math.ceil(n / 2)),
        ("floor(n/2 - 1/2) + 1", lambda n, m: math.floor(n / 2 - 1 / 2) + 1),
        ("floor(n/2 + m/3)", lambda n, m: (3 * n + 2 * m) // 6),
        ("ceil(n/4 + 1/2)", lambda n, m: math.ceil(n / 4 + 1 / 2)),
        ("int(max(n/2, m/3))", lambda n, m: math.floor(max(n / 2, m / 3))),
        ("-(n/2) + n", lambda n, m: math.floor(n / 2)),
        ("2*floor(n/2)", lambda n, m: 2 * (n // 2)),
        ("(n - 1)//3 % 5", lambda n, m: (n - 1) // 3 % 5),
        ("Max(0, n - m)", lambda n, m: max(0, n - m)),
        ("min(n, 1000000000)", lambda n, m: n),
        ("-n + m", lambda n, m: m - n),
        ("n // (m + 1)", lambda n, m: n // (m + 1)),
        ("n % (m + 2) * 3", lambda n, m: n % (m + 2) * 3),
    ],
)
def test_formulas_have_the_values_of_python(text, expected):
    for n, m in [(0, 0), (1, 5), (7, 3), (1000, 1)]:
        assert value(text, n=n, m=m) == expected(n, m)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "p2o.DynamicDimension.0",
        "n +",
        "n / m",
        "n // 0",
        "n/2 // m",
        "n % -1",
        "n ** 2",
        "f(n)",
        "min(n)",
        "floor(n, m)",
        "n if m else 1",
        "True",
        "1.5",
        "'n'",
        "n[0]",
        "__import__('os')",
        "(" * 300 + "n" + ")" * 300,
        "n+" * 400 + "n",
        "n\0",
        str(2**64),
    ],
)
def test_other_texts_are_none(text):
    assert parse_extent(text, lambda name: N) is None
    assert names_of_formula(text) is None


def test_a_formula_tells_its_names():
    assert names_of_formula("past + min(n, past) * 2") == {"past", "n"}
    assert names_of_formula("3") == set()


@given(
    st.recursive(
        st.sampled_from(["n", "m", "1", "3"]),
        lambda e: st.tuples(e, st.sampled_from("+-*"), e).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        max_leaves=6,
    )
)
def test_what_is_printed_is_read_again(text):
    formula = parse_extent(text, NAMES.__getitem__)
    assert parse_extent(str(formula), NAMES.__getitem__) is formula
