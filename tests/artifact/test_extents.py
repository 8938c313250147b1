"""Extents as plain data: from index expressions, to numbers, to text and JSON and back."""

import json

import pytest

import loopwright as lw
from loopwright import te
from loopwright.artifact.extents import Formula, evaluate, extent_from_json, extent_json, extent_of
from loopwright.ir.simplify import simplify

N, M = te.var("n"), te.var("m")
NAMES = {N: "N", M: "M"}


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda n, m: n, "N"),
        (lambda n, m: n * 4 + m, "(N * 4) + M"),
        (lambda n, m: (n + 1) // 2 - m % 3, "((N + 1) // 2) - (M % 3)"),
        (lambda n, m: te.maximum(n - 5, 0) * 2, "max(N - 5, 0) * 2"),
        (lambda n, m: te.minimum(-n, m), "min(0 - N, M)"),
    ],
)
def test_formulas_have_the_value_of_their_expressions(make, text):
    extent = extent_of(make(N, M), NAMES)
    assert str(extent) == text
    assert extent_from_json(json.loads(json.dumps(extent_json(extent)))) == extent
    for n, m in [(0, 0), (1, 7), (13, 2)]:
        expected = int(simplify(make(te.const(n, "index"), te.const(m, "index"))))
        assert evaluate(extent, {"N": n, "M": m}) == expected


def test_a_number_stands_for_itself():
    assert extent_of(te.const(12, "index"), {}) == 12


def test_a_dimension_without_name_is_refused():
    with pytest.raises(lw.ModelError, match="dimension m is none of the inputs' dimensions"):
        extent_of(N + M, {N: "N"})


@pytest.mark.parametrize("data", [True, 1.5, None, ["+", 1], ["pow", 1, 2], {"a": 1}, [1, 2, 3]])
def test_other_data_is_no_extent(data):
    with pytest.raises(lw.ModelError, match=r"is no extent|an extent is"):
        extent_from_json(data)


def test_formulas_know_their_operators():
    with pytest.raises(lw.ModelError, match="not by '/'"):
        Formula("/", 1, 2)
