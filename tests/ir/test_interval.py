"""Interval arithmetic against all members of small intervals, and what the analysis finds for expressions."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable

import pytest

from loopwright.base.dtype import BOOL, INDEX, INT8, INT32, UINT8
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import const
from loopwright.ir.expr import Broadcast, Cast, Expr, Let, Load, Ramp, Select, Var
from loopwright.ir.facts import NO_FACTS
from loopwright.ir.interval import EVERYTHING, Interval, interval_of
from loopwright.ir.intrinsics import call
from loopwright.ir.makers import maximum, minimum
from loopwright.ir.modular import ANYTHING, Congruence, modulus_of

SMALL = [Interval(a, b) for a in range(-4, 5) for b in range(a, 5)]
HALVES = [Interval(a, None) for a in (-3, 0, 2)] + [Interval(None, b) for b in (-2, 0, 3)] + [EVERYTHING]


def members(interval: Interval) -> range:
    """The members, those up to ±9 of an unbounded interval."""
    low = -9 if interval.low is None else interval.low
    return range(low, (9 if interval.high is None else interval.high) + 1)


def floor_or_zero(op: Callable[[int, int], int]) -> Callable[[int, int], int]:
    return lambda a, b: op(a, b) if b else 0


OPERATIONS: dict[str, tuple[Callable[[Interval, Interval], Interval], Callable[[int, int], int]]] = {
    "+": (operator.add, operator.add),
    "-": (operator.sub, operator.sub),
    "*": (operator.mul, operator.mul),
    "//": (operator.floordiv, floor_or_zero(operator.floordiv)),
    "%": (operator.mod, floor_or_zero(operator.mod)),
    "min": (Interval.minimum, min),
    "max": (Interval.maximum, max),
}


@pytest.mark.parametrize("op", OPERATIONS)
@pytest.mark.parametrize("bounded", [True, False])
def test_arithmetic_contains_all_results(op: str, bounded: bool) -> None:
    on_intervals, on_numbers = OPERATIONS[op]
    some = SMALL[::3] if bounded else [*HALVES, *SMALL[::9]]
    for a, b in itertools.product(some, some):
        result = on_intervals(a, b)
        taken = [on_numbers(x, y) for x in members(a) for y in members(b)]
        assert result.low is None or result.low <= min(taken), f"{a} {op} {b} = {result}"
        assert result.high is None or result.high >= max(taken), f"{a} {op} {b} = {result}"
        exact = bounded and op in ("+", "-", "*", "min", "max")
        assert not exact or (result.low, result.high) == (min(taken), max(taken))


def test_a_product_is_at_least_that_of_the_least_factors() -> None:
    assert Interval(2, None) * Interval(3, None) == Interval(6, None)
    assert Interval(2, 5) * Interval(3, None) == Interval(6, None)
    assert Interval(0, None) * Interval(3, 4) == Interval(0, None)
    assert Interval(-1, None) * Interval(3, 4) == EVERYTHING


@pytest.mark.parametrize(("a", "b"), list(itertools.product(SMALL[::4], SMALL[::4])))
def test_union_and_intersection(a: Interval, b: Interval) -> None:
    union, both = set(members(a.union(b))), set(members(a)) & set(members(b))
    assert union >= set(members(a)) | set(members(b))
    assert set(members(a.intersect(b))) == (both or set(members(a)))


I, J = index_var("i"), index_var("j")
U, S = Var("u", UINT8), Var("s", INT8)
DATA = make_buffer("data", (8,), "uint8")
RANGES = {I: Interval(0, 9), J: Interval(-2, 3), U: Interval(10, 20)}

EXPRESSIONS: list[tuple[Expr, Interval]] = [
    (I * 16 + 15, Interval(15, 159)),
    (I * 2 + J - I * 2, Interval(-2, 3)),
    (J * J, Interval(-6, 9)),
    (J // 2, Interval(-1, 1)),
    ((I + 5) // maximum(J, 0), Interval(0, 14)),
    (J // maximum(index_var("free"), 0), Interval(-2, 3)),
    (I % 4, Interval(0, 3)),
    (I % 100, Interval(0, 9)),
    (minimum(I, 4), Interval(0, 4)),
    (maximum(J, 0), Interval(0, 3)),
    (Select(I < 3, I, J), Interval(-2, 9)),
    (index_var("free"), EVERYTHING),
    (Cast(INDEX, Load(DATA, (I,))), Interval(0, 255)),
    (U * 10, Interval(100, 200)),
    (U * 20, Interval(0, 255)),  # may wrap
    (U - 10, Interval(0, 10)),
    (U - 11, Interval(0, 255)),
    (-S, Interval(-128, 127)),
    (S & 15, Interval(0, 15)),
    (U >> 2, Interval(2, 5)),
    (call("abs", J), Interval(0, 3)),
    (Cast(INT32, U) + 1000, Interval(1010, 1020)),
    (Cast(INT8, Cast(INT32, U) * 10), Interval(-128, 127)),
    (Ramp(I, const(2, INDEX), 4), Interval(0, 15)),
    (Broadcast(I, 4) + Ramp(J, const(1, INDEX), 4), Interval(-2, 15)),
    (Let(K := index_var("k"), I + 1, K * 2), Interval(2, 20)),
    (I < 3, Interval(0, 1)),
    (Cast(BOOL, I), Interval(0, 1)),
]


@pytest.mark.parametrize(("e", "expected"), EXPRESSIONS, ids=[str(e) for e, _ in EXPRESSIONS])
def test_interval_of(e: Expr, expected: Interval) -> None:
    assert interval_of(e, RANGES) == expected


def test_deep_expressions_are_bounded() -> None:
    e: Expr = I
    for n in range(5000):
        e = minimum(e, J + n)
    assert interval_of(e, RANGES) == Interval(-2, 3)


ALIGNED = NO_FACTS.with_condition((I % 16).as_expr() == 4)
CONGRUENCES: list[tuple[Expr, Congruence]] = [
    (const(7, INDEX) + 0, Congruence(0, 7)),
    (J, ANYTHING),
    (J * 8 + 3, Congruence(8, 3)),
    (J * 8 + I * 12, Congruence(8, 0)),
    (I, Congruence(16, 4)),
    (I // 4, Congruence(4, 1)),
    (I % 8, Congruence(8, 4)),
    (I * J, Congruence(4, 0)),
    (minimum(J * 8, I), Congruence(4, 0)),
    (Select(J < 0, J * 6, J * 9 + 3), Congruence(3, 0)),
    (I * 16 - 1, Congruence(256, 63)),
]


@pytest.mark.parametrize(("e", "expected"), CONGRUENCES, ids=[str(e) for e, _ in CONGRUENCES])
def test_modulus_of(e: Expr, expected: Congruence) -> None:
    assert modulus_of(e, ALIGNED) == expected
