"""Normal forms of integer expressions: the same ones whichever way sums are nested, deep ones and shared ones too."""

from __future__ import annotations

import random
from functools import reduce

import pytest

from loopwright.base.dtype import INT8
from loopwright.ir.build import index_var
from loopwright.ir.constants import ZERO, const
from loopwright.ir.contents import substitute
from loopwright.ir.expr import Binary, Broadcast, Expr, Ramp, Unary, Var
from loopwright.ir.linear import Linear, atoms_of, linear_of
from loopwright.ir.linear_expr import expr_of, replace_atoms

VARS = [index_var(name) for name in "abcd"]


def coefficients(form: Linear) -> dict[str, int]:
    return {" * ".join(map(str, term.factors)): term.coefficient for term in form}


def random_sum(rng: random.Random, depth: int) -> tuple[Expr, dict[Var, int], int]:
    """An expression with the coefficients of its variables, and its constant."""
    if depth == 0:
        var, number = rng.choice(VARS), rng.randrange(-3, 4)
        return (var, {var: 1}, 0) if rng.random() < 0.7 else (const(number, "index"), {}, number)
    left, by_left, at_left = random_sum(rng, depth - 1)
    if rng.random() < 0.2:
        times = rng.randrange(-2, 4)
        return left * times, {v: k * times for v, k in by_left.items()}, at_left * times
    right, by_right, at_right = random_sum(rng, rng.randrange(depth))
    op, sign = rng.choice((("+", 1), ("-", -1)))
    by = {v: by_left.get(v, 0) + sign * by_right.get(v, 0) for v in {**by_left, **by_right}}
    return Binary(op, left, right), by, at_left + sign * at_right


@pytest.mark.parametrize("seed", range(100))
def test_the_form_has_the_coefficients_of_the_sum(seed: int) -> None:
    e, by, constant = random_sum(random.Random(seed), 6)
    form = linear_of(e)
    assert form.constant == constant
    assert {t.factors[0]: t.coefficient for t in form.terms.values()} == {v: k for v, k in by.items() if k}


@pytest.mark.parametrize("seed", range(100))
def test_values_put_into_a_form_give_the_form_of_the_expression_with_them(seed: int) -> None:
    rng = random.Random(seed)
    sums = [random_sum(rng, 3)[0] for _ in range(3)]
    e = sums[0] * VARS[0] + (sums[1] + VARS[3]) * (sums[2] + VARS[2]) * VARS[1]
    for value in (const(rng.randrange(-2, 4), "index"), VARS[0] + VARS[2], VARS[3]):
        values: dict[Var, Expr] = {VARS[1]: value}
        form = linear_of(e)
        changed = {atom: new for atom in atoms_of(form) if (new := substitute(atom, values)) is not atom}
        put_in = replace_atoms(form, changed)
        assert coefficients(put_in) == coefficients(linear_of(expr_of(put_in)))
        for _ in range(4):
            env = {var: rng.randrange(-5, 6) for var in VARS}
            assert value_of(expr_of(put_in), env) == value_of(substitute(e, values), env)


def value_of(e: Expr, env: dict[Var, int]) -> int:
    """The number that Python's own arithmetic makes of an expression."""
    return int(eval(str(e), {}, {var.name: value for var, value in env.items()}))


def test_the_form_does_not_depend_on_what_was_asked_before() -> None:
    def made() -> Expr:
        a, b, c, _ = VARS
        return Binary("+", b * 7, Binary("+", Binary("-", c, b * 7), b * 7 + a))

    first = list(coefficients(linear_of(made())))
    e = made()
    linear_of(e.b)
    assert list(coefficients(linear_of(e))) == first


@pytest.mark.parametrize("left", [True, False])
def test_deep_sums_have_forms(left: bool) -> None:
    a = VARS[0]
    parts = [a] * 3000
    nested = reduce(lambda x, y: Binary("+", x, y) if left else Binary("+", y, x), parts)
    assert coefficients(linear_of(nested)) == {"a": 3000}


def test_sums_with_shared_parts_have_forms() -> None:
    e: Expr = VARS[0] + 1
    for _ in range(200):
        e = e + e
    assert coefficients(linear_of(e)) == {"a": 2**200, "": 2**200}


def test_data_integers_wrap_and_vectors_are_forms_of_lanes() -> None:
    x = Var("x", INT8)
    assert coefficients(linear_of(Binary("+", x * 100, x * 100))) == {"x": -56}
    assert coefficients(linear_of(Unary("-", x * 3))) == {"x": -3}
    a, b, _, _ = VARS
    lanes = Ramp(a, b, 4) + Broadcast(a, 4) * 3
    assert coefficients(linear_of(lanes)) == {"a": 4, f"b * {Ramp(ZERO, const(1, 'index'), 4)}": 1}
