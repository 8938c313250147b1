"""The helpers of the simplifier's rules keep their contracts, which the proofs of the rules take for granted."""

from __future__ import annotations

import random

import pytest

from loopwright.base.dtype import INDEX, INT8, UINT8, DType, dtype
from loopwright.ir.build import index_var
from loopwright.ir.constants import const, const_int
from loopwright.ir.contents import substitute
from loopwright.ir.expr import Cast, Expr, Select, Var
from loopwright.ir.facts import NO_FACTS
from loopwright.ir.interval import Interval
from loopwright.ir.makers import cast
from loopwright.ir.scalar import eval_cast
from loopwright.ir.simplify import helpers as h
from loopwright.ir.simplify import simplify

I, J, N, K = (index_var(name) for name in ("i", "j", "n", "k"))
FACTS = NO_FACTS.with_range(I, -5, 11).with_range(J, 0, 4).with_condition((N >= 1) & (N <= 6)).with_range(K, 0, N)
SEEDS = range(300)


def random_sum(rng: random.Random) -> Expr:
    total: Expr = const(rng.choice([0, 0, 3, 8, -5]), INDEX)
    for _ in range(rng.randint(1, 4)):
        atom = rng.choice([I, J, N, K, I * N, J % 4, (I + N) % 8, N // 2])
        total = total + atom * rng.choice([1, 1, -1, 2, 4, 8, 12, -4])
    return simplify(total, FACTS)


def environment(rng: random.Random) -> dict[Var, Expr]:
    n = rng.randint(1, 6)
    values = {I: rng.randint(-5, 5), J: rng.randint(0, 3), N: n, K: rng.randrange(n)}
    return {v: const(x, INDEX) for v, x in values.items()}


def value(e: Expr, at: dict[Var, Expr]) -> int:
    found = const_int(simplify(substitute(e, at)))
    assert found is not None
    return found


def test_split_takes_multiples_out() -> None:
    found = 0
    for seed in SEEDS:
        rng = random.Random(seed)
        x, y = random_sum(rng), rng.choice([const(4, INDEX), const(8, INDEX), N, N * 2])
        parts, at = h.split(x, y), environment(rng)
        if parts is not None:
            found += 1
            assert value(x, at) == value(parts.quotient, at) * value(y, at) + value(parts.rest, at), f"seed {seed}"
    assert found > 50


def test_only_quotient_is_the_quotient() -> None:
    found = 0
    for seed in SEEDS:
        rng = random.Random(seed)
        x, c, at = random_sum(rng), rng.choice([16, 64, 300]), environment(rng)
        quotient = h.only_quotient(x, c, FACTS)
        if quotient is not None:
            found += 1
            assert value(x, at) // c == quotient, f"seed {seed}"
    assert found > 10


def test_known_rest_is_the_rest() -> None:
    found = 0
    for seed in SEEDS:
        rng = random.Random(seed)
        x, c, at = random_sum(rng), rng.choice([2, 4]), environment(rng)
        rest = h.known_rest(x, c, FACTS)
        if rest is not None:
            found += 1
            assert value(x, at) % c == rest, f"seed {seed}"
    assert found > 10


def test_leaving_out_remainders_changes_nothing_modulo_c() -> None:
    found = 0
    for seed in SEEDS:
        rng = random.Random(seed)
        x, c, at = random_sum(rng), rng.choice([2, 4, 8]), environment(rng)
        without = h.without_remainders(x, c)
        if without is not None:
            found += 1
            assert (value(without, at) - value(x, at)) % c == 0, f"seed {seed}"
    assert found > 10


def test_grouped_is_a_division_with_a_rest() -> None:
    found = 0
    for seed in SEEDS:
        rng = random.Random(seed)
        x, c, at = random_sum(rng), rng.choice([8, 12, 16]), environment(rng)
        group = h.grouped(x, c, FACTS)
        if group is not None:
            found += 1
            rest = value(group.rest, at)
            assert group.factor > 1
            assert c % group.factor == 0
            assert 0 <= rest < group.factor, f"seed {seed}"
            assert value(x, at) == group.factor * value(group.quotient, at) + rest, f"seed {seed}"
    assert found > 10


def test_common_part_is_common() -> None:
    found = 0
    for seed in SEEDS:
        rng = random.Random(seed)
        x, y, at = random_sum(rng), random_sum(rng), environment(rng)
        parts = h.common_part(x, y)
        if parts is not None:
            found += 1
            common = value(parts.common, at)
            assert (value(x, at), value(y, at)) == (common + value(parts.a, at), common + value(parts.b, at))
    assert found > 10


@pytest.mark.parametrize("helper", [h.balanced, h.flipped])
def test_sides_of_a_comparison_are_balanced(helper: object) -> None:
    found = 0
    for seed in SEEDS:
        rng = random.Random(seed)
        x, y, at = random_sum(rng), random_sum(rng), environment(rng)
        if seed % 2:
            y = x - rng.choice([J, N, J * 2 + N]) * rng.choice([2, -3, 4])
        if helper is h.flipped:
            difference, sides = h.flipped(x, y), (y, x)
        else:
            difference, sides = h.balanced(x, y), (x, y)
        if difference is not None:
            found += 1
            expected = value(sides[0], at) - value(sides[1], at)
            a, b = value(difference.a, at), value(difference.b, at)
            assert difference.factor > 0
            assert expected == difference.factor * (a - b) + difference.constant, f"seed {seed}"
    assert found > 10


KINDS = [dtype(k) for k in ("bool", "int8", "uint8", "int16", "uint16", "int32", "float16", "bfloat16", "float32")]


def extremes(kind: DType) -> list[int]:
    limits = kind.int_range() or (-70000, 70000)
    return [x for x in (*limits, -300, -129, -1, 0, 1, 127, 255, 2049, 65535) if limits[0] <= x <= limits[1]]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_cast_that_is_left_out_changed_nothing(kind: DType) -> None:
    x = Var("x", kind)
    numbers = [eval_cast(kind, n) for n in (*extremes(kind), *([0.5, -1.5, 1e-7, 3e38] if kind.is_float else []))]
    for middle in KINDS:
        for to in KINDS:
            if h.passes(middle, to, x, NO_FACTS):
                for number in numbers:
                    assert eval_cast(to, eval_cast(middle, number)) == eval_cast(to, number), f"{to}({middle}({kind}))"


def test_constants_of_a_dtype() -> None:
    x, u = Var("x", INT8), Var("u", UINT8)
    assert (h.all_ones(x), h.all_ones(u)) == (-1, 255)
    assert (h.wrapped(x, 200), h.wrapped(u, 300), h.wrapped(I, 300)) == (-56, 44, 300)
    assert (h.fits(x, 127), h.fits(x, 128), h.fits(I, 1 << 40), h.fits(I, 1 << 60)) == (True, False, True, False)
    assert h.like(u, 7) is cast(UINT8, const(7, UINT8))
    assert FACTS.interval(Cast(INDEX, u)) == Interval(0, 255)


def test_a_choice_of_the_larger_is_one() -> None:
    found = 0
    for seed in SEEDS:
        rng = random.Random(seed)
        a, b = random_sum(rng), random_sum(rng)
        y = random_sum(rng)
        x = simplify(y + (a - b) * rng.choice([1, -1, 2]) + rng.choice([0, 1, 2, -1]), FACTS)
        condition = rng.choice([a < b, a <= b, a > b, a >= b])
        if h.chooses_larger(condition, x, y):
            found += 1
            for _ in range(10):
                at = environment(rng)
                holds = bool(value(Select(condition, const(1, INDEX), const(0, INDEX)), at))
                assert value(x, at) >= value(y, at) if holds else value(x, at) <= value(y, at), f"seed {seed}"
    assert found > 10
