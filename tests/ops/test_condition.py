"""Conditions of implementations: normal form, verdicts, guards, and what is no condition."""

import itertools

import pytest

import loopwright as lw
from loopwright import te
from loopwright.base.dtype import FLOAT32
from loopwright.ir.contents import substitute
from loopwright.ir.makers import as_index
from loopwright.ir.simplify import simplify
from loopwright.ops.definition.condition import clause, condition_of

m, n = te.var("m"), te.var("n")
THREE = as_index(3)


def verdicts(*clauses):
    return [(str(c), holds) for c, holds in condition_of(clauses).verdicts()]


def value(e, **sizes):
    numbers = {var: as_index(sizes[var.name]) for var in (m, n) if var.name in sizes}
    return simplify(substitute(e, numbers)).value


def test_clauses_of_known_extents_are_decided_and_read_as_they_were_written():
    assert verdicts(THREE >= 16, THREE % 3 == 0) == [("3 >= 16", False), ("3 % 3 == 0", True)]


def test_clauses_of_symbolic_extents_are_open():
    assert verdicts(m >= 16, THREE < 4, m % 4 == 0) == [("m >= 16", None), ("3 < 4", True), ("m % 4 == 0", None)]


def test_a_clause_is_judged_given_those_before_it():
    assert verdicts(m >= 16, m >= 8, m < 4) == [("m >= 16", None), ("m >= 8", True), ("m < 4", False)]


def test_a_clause_that_fails_says_nothing_about_those_after_it():
    assert verdicts(THREE > 4, m > 4) == [("3 > 4", False), ("m > 4", None)]


def test_extents_are_not_negative():
    assert verdicts(m >= 0, m + n < 0) == [("m >= 0", True), ("m + n < 0", False)]


def test_dtypes_and_attributes_are_bools_which_may_have_names():
    assert verdicts(True, clause("x is of float32", lw.var("x", (1,)).type.dtype is FLOAT32), False) == [
        ("True", True),
        ("x is of float32", True),
        ("False", False),
    ]


def test_conjunctions_become_clauses_and_negations_move_to_comparisons():
    assert [str(c) for c in condition_of([te.all(m >= 1, n < 2)]).clauses] == ["m >= 1", "n < 2"]
    assert [str(c) for c in condition_of([~te.any(m >= 1, n == 2)]).clauses] == ["m < 1", "n != 2"]
    assert [str(c) for c in condition_of([te.any(m >= 1, n == 2)]).clauses] == ["m >= 1 or n == 2"]


def test_disjunctions_of_conjunctions_are_multiplied_out():
    both = condition_of([te.any(te.all(m >= 2, n >= 2), m == 7)])
    assert str(both) == "(m >= 2 or m == 7) and (n >= 2 or m == 7)"


def test_normal_form_means_the_same():
    whole = ~te.any(te.all(m >= 2, ~te.all(n < 3, m % 2 == 0)), ~te.any(n == 1, m < 5))
    parts = condition_of([whole]).clauses
    for i, j in itertools.product(range(8), repeat=2):
        expected = value(whole, m=i, n=j)
        assert all(value(c.condition, m=i, n=j) for c in parts) is expected, (i, j)


def test_scopes_add_to_those_around_them():
    outer = condition_of([m >= 16])
    assert [str(c) for c in condition_of([n >= 2], outer).clauses] == ["m >= 16", "n >= 2"]


def test_guards_are_what_is_left_to_test():
    condition = condition_of([THREE < 4, m >= 8, m >= 16, te.any(n % 4 == 0, THREE > 5)])
    assert list(map(str, condition.guards())) == ["m >= 16", "n % 4 == 0"]


def test_equal_guards_stay_once():
    assert list(map(str, condition_of([m >= 8, ~(m < 8), m > 7]).guards())) == ["m >= 8"]


@pytest.mark.parametrize("given", [1, "m >= 16", None, m, m + 1])
def test_what_is_no_condition_is_refused(given):
    with pytest.raises(lw.SelectionError, match="a clause is a comparison of extents"):
        condition_of([given])


def test_comparisons_of_data_are_refused():
    x = te.placeholder((4,), "float32", name="x")
    with pytest.raises(lw.SelectionError, match=r"x\[0\] > .* does not"):
        condition_of([x[0] > 1])


def test_conditions_that_nobody_would_read_are_refused():
    with pytest.raises(lw.SelectionError, match="at most 32"):
        condition_of([m >= k for k in range(40)])
    wide = te.any(*(te.all(m >= k, n >= k) for k in range(6)))
    with pytest.raises(lw.SelectionError, match="more than 32 clauses in conjunctive normal form"):
        condition_of([wide])
