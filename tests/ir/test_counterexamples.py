"""Examples of what facts allow: all that the facts say holds in each, and a form that they refute is negative there."""

from __future__ import annotations

import random

import pytest

from loopwright.base.dtype import INDEX
from loopwright.ir.build import index_var
from loopwright.ir.constants import TRUE, const, const_int
from loopwright.ir.contents import substitute
from loopwright.ir.expr import Compare, Expr, Select, Var
from loopwright.ir.facts import NO_FACTS, Facts
from loopwright.ir.linear import linear_of
from loopwright.ir.makers import maximum, minimum
from loopwright.ir.proof_search import Search
from loopwright.ir.simplify import simplify

I, J, M, N = (index_var(name) for name in "ijmn")
NEST = NO_FACTS.with_condition(N > 0).with_condition(M >= 2).with_range(I, 0, N).with_range(J, I, M - I)


def value(e: Expr, at: dict[Var, int]) -> int:
    found = const_int(simplify(substitute(e, {var: const(number, INDEX) for var, number in at.items()})))
    assert found is not None
    return found


def drawn(seed: int) -> tuple[Facts, list[Var], list[Compare]]:
    """Facts of a nest of loops and conditions, its variables, and the comparisons that the facts are made of."""
    draw = random.Random(seed)
    variables = [N, M]
    known = [N >= 1, draw.choice((0, 1, 16)) <= M]
    facts = NO_FACTS.with_condition(known[0]).with_condition(known[1])

    def part() -> Expr:
        a, b, k = draw.choice(variables), draw.choice(variables), draw.randint(1, 9)
        return draw.choice((a, a * k, a // k, a % k, a * b, a + k, minimum(a, b), maximum(a - b, a * 0)))

    for depth in range(draw.randint(1, 4)):
        var, low, extent = (
            index_var(f"i{depth}"),
            const(draw.randint(0, 3), INDEX),
            draw.choice((N, M, part(), N * 0 + 4)),
        )
        facts = facts.with_range(var, low, extent)
        known += [extent >= 1, var >= low, var < low + extent]
        variables.append(var)
        if draw.random() < 0.5:
            condition = part() < part() + draw.randint(0, 20)
            facts = facts.with_condition(condition)
            known.append(condition)
    return facts, variables, [c for c in known if isinstance(c, Compare)]


def test_all_that_is_known_holds_in_each_example() -> None:
    count = 0
    for seed in range(300):
        facts, variables, known = drawn(seed)
        for example in facts.examples().known():
            numbers: dict[Var, Expr] = {var: const(example.of(var), INDEX) for var in variables}
            count += 1
            for condition in known:
                assert simplify(substitute(condition, numbers)) is TRUE, (seed, str(condition), numbers)
    assert count > 600


def test_an_example_gives_an_expression_the_value_that_it_has() -> None:
    e = Select(I < J, (J * 7 - I) // 3, (I + M) % 5) * minimum(N, M) - maximum(I, J)
    examples = NEST.examples().known()
    assert examples
    for example in examples:
        at = {var: example.of(var) for var in (I, J, M, N)}
        assert example.of(e) == example.of_linear(linear_of(e)) == value(e, at)


@pytest.mark.parametrize(
    "claim", [N - 2, N - I - 2, M - J - 2, I - 1, N - M, M // 8 - 1, minimum(N, 4) - 4, 4 * N - N * M], ids=str
)
def test_what_does_not_hold_is_refuted_at_once(claim: Expr) -> None:
    assert NEST.examples().refute(linear_of(claim))
    assert not NEST.nonnegative(linear_of(claim))


@pytest.mark.parametrize(
    "claim",
    [N - I - 1, M - I - 1, J - I, M - J - 1, N * M - N, M // 2 - 1, 3 - (J - I) % 4, maximum(I - J, 0)],
    ids=str,
)
def test_what_holds_is_proved(claim: Expr) -> None:
    assert not NEST.examples().refute(linear_of(claim))
    assert NEST.nonnegative(linear_of(claim))


def test_what_was_asked_before_changes_no_example() -> None:
    fresh, asked = (NO_FACTS.with_range(I, 0, N) for _ in range(2))
    asked.examples().refute(linear_of(N * J - (I + M) // 3))
    inside = [facts.with_range(J, I, N).with_range(M, J, 8).examples().known() for facts in (fresh, asked)]
    values = [[[example.of(var) for var in (N, I, J, M)] for example in known] for known in inside]
    assert values[0] == values[1] != []


def test_nothing_is_refuted_where_nothing_is_possible() -> None:
    facts = NO_FACTS.with_range(I, 0, N).with_condition(I > N)
    assert not facts.examples().known()
    assert Search(facts).nonnegative(linear_of(I - N))


def test_what_is_added_is_asked_of_the_examples_found_before() -> None:
    before = NEST.examples().known()
    inside = NEST.with_condition(N >= 3)
    assert all(example.of(N) >= 3 for example in inside.examples().known())
    assert len(before) > 1
    assert any(example.of(N) < 3 for example in before)
