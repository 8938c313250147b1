"""Bounds of index expressions, held against all values that the expression really takes."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwright.base.dtype import INDEX
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import const, const_int
from loopwright.ir.contents import substitute
from loopwright.ir.expr import Const, Expr, IfThenElse, Load, Select, Var
from loopwright.ir.facts import NO_FACTS
from loopwright.ir.makers import cast, maximum, minimum
from loopwright.ir.relax import lower_bounds, relax, upper_bounds
from loopwright.ir.simplify import simplify

# Inner loops i and r run, the outer loop io and the size n stay.
I, R, IO, N = (index_var(name) for name in ("i", "r", "io", "n"))
INDICES = make_buffer("indices", (N,), "int32")


def idx(value: int) -> Expr:
    return const(value, INDEX)


def value(e: Expr, at: dict[Var, int]) -> int:
    found = const_int(simplify(substitute(e, {v: idx(x) for v, x in at.items()})))
    assert found is not None
    return found


TILE = {I: (idx(0), idx(3)), R: (idx(0), idx(2))}
EXACT = [
    (I * 2 + R, TILE, "0", "8", 9),
    (IO * 4 + I - IO * 4, TILE, "0", "3", 4),
    (IO * 4 + I + R - 1, TILE, "io * 4 - 1", "io * 4 + 4", 6),
    (I * 2 + R - 1, {I: (IO * 8, IO * 8 + 7), R: (idx(0), idx(2))}, "io * 16 - 1", "io * 16 + 15", 17),
    (-I, TILE, "-3", "0", 4),
    (I - R, TILE, "-2", "3", 6),
    (I * 3 - I, TILE, "0", "6", 7),
    ((IO * 16 + I) // 4, {I: (idx(0), idx(15))}, "io * 4", "io * 4 + 3", 4),
    ((IO * 16 + I) % 4, {I: (idx(0), idx(15))}, "0", "3", 4),
    ((IO * 16 + I) % 16, {I: (idx(4), idx(7))}, "4", "7", 4),
    (I // 2, TILE, "0", "1", 2),
    (maximum(I - 2, 2 - I), TILE, "0", "2", 3),
    (minimum(I, 3 - I), TILE, "0", "1", 2),
    (minimum(IO * 4 + I, IO * 4 + 2), TILE, "io * 4", "io * 4 + 2", 3),
    (IfThenElse(I >= 1, I - 1, 0 * I), TILE, "0", "2", 3),
    (Select(I < 2, I, 3 - I), TILE, "0", "1", 2),
    (IO + 5, TILE, "io + 5", "io + 5", 1),
]


@pytest.mark.parametrize(("e", "ranges", "low", "high", "width"), EXACT, ids=[str(row[0]) for row in EXACT])
def test_bounds_and_width_of(e: Expr, ranges: dict[Var, tuple[Expr, Expr]], low: str, high: str, width: int) -> None:
    bounds = relax(e, ranges)
    assert bounds is not None
    assert (str(bounds[0]), str(bounds[1])) == (low, high)
    assert const_int(simplify(bounds[1] - bounds[0] + 1)) == width


def test_symbolic_extents_stay_symbolic() -> None:
    facts = NO_FACTS.with_condition(N >= 1)
    bounds = relax(IO * N + I, {I: (idx(0), N - 1)}, facts)
    assert bounds is not None
    assert str(simplify(bounds[1] - bounds[0] + 1, facts)) == "n"
    assert relax(I * N, {I: (idx(0), idx(3))}) is None, "n may be negative"
    bounds = relax(I * N, {I: (idx(0), idx(3))}, facts)
    assert bounds is not None
    assert str(bounds[1]) == "n * 3"


def test_terms_of_one_variable_are_bounded_together() -> None:
    facts = NO_FACTS.with_condition(N >= 4)
    for e in (I * N - I * 4, (N - 4) * I):
        bounds = relax(e, {I: (idx(0), idx(3))}, facts)
        assert bounds is not None
        assert (str(bounds[0]), str(bounds[1])) == ("0", "n * 3 - 12")
    bounds = relax(I * N - I * 4, {I: (idx(0), idx(3))}, NO_FACTS.with_condition(N >= 0))
    assert bounds is not None
    assert (str(bounds[0]), str(bounds[1])) == ("-12", "n * 3")


def test_the_difference_of_bounds_loses_what_they_have_in_common() -> None:
    facts = NO_FACTS.with_condition(N >= 0)
    bounds = relax((IO * 8 + I) * (N + 2), {I: (idx(0), idx(7))}, facts)
    assert bounds is not None
    assert str(simplify(bounds[1] - bounds[0], facts)) == "n * 7 + 14"


def test_what_memory_says_is_not_bounded_unless_clamped_or_of_a_byte() -> None:
    gather = cast("index", Load(INDICES, (I,)))
    assert relax(gather, TILE) is None
    assert relax(gather + IO, {}) is None
    bounds = relax(maximum(minimum(gather, N - 1), 0), TILE, NO_FACTS.with_condition(N >= 1))
    assert bounds is not None
    assert (str(bounds[0]), str(bounds[1])) == ("0", "n - 1")
    byte = cast("index", Load(make_buffer("bytes", (N,), "uint8"), (I,)))
    assert [str(bound) for bound in relax(byte + IO, TILE) or ()] == ["io", "io + 255"]
    bounds = relax(gather % 8, TILE)
    assert bounds is not None
    assert (str(bounds[0]), str(bounds[1])) == ("0", "7")


def random_index(rng: random.Random, depth: int) -> Expr:
    if depth == 0:
        return rng.choice([I, R, IO, I, R, idx(rng.randint(-3, 5))])
    a, b = random_index(rng, depth - 1), random_index(rng, depth - 1)
    match rng.randrange(9):
        case 0 | 1:
            return a + b
        case 2:
            return a - b
        case 3:
            return a * rng.choice([-2, 2, 3, 4])
        case 4:
            return a // rng.choice([2, 3, 4])
        case 5:
            return a % rng.choice([2, 3, 4])
        case 6:
            return minimum(a, b)
        case 7:
            return maximum(a, b)
        case _:
            return rng.choice([IfThenElse, Select])(rng.choice([a < b, I < 2, (I >= 1) & (R < 2), a == b]), a, b)


@settings(max_examples=250, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_all_values_lie_within_the_bounds(seed: int) -> None:
    rng = random.Random(seed)
    e = random_index(rng, rng.randint(1, 3))
    low_i, low_r = rng.randint(-2, 2), rng.randint(0, 1)
    high_i, high_r = low_i + rng.randint(0, 4), low_r + rng.randint(0, 2)
    outer = rng.choice([0, 4])
    ranges = {I: (IO * outer + low_i, IO * outer + high_i), R: (idx(low_r), idx(high_r))}
    bounds = relax(e, ranges)
    assert bounds is not None, str(e)
    for io in (-2, 0, 3):
        low, high = value(bounds[0], {IO: io}), value(bounds[1], {IO: io})
        inner = itertools.product(range(low_i, high_i + 1), range(low_r, high_r + 1))
        taken = [value(e, {IO: io, I: io * outer + i, R: r}) for i, r in inner]
        assert low <= min(taken) <= max(taken) <= high, f"{e}: {bounds} at io={io}, but {min(taken)} … {max(taken)}"


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_bounds_of_affine_expressions_are_exact(seed: int) -> None:
    rng = random.Random(seed)
    e: Expr = idx(rng.randint(-4, 4))
    for _ in range(rng.randint(1, 6)):
        e = e + rng.choice([I, R, IO]) * rng.randint(-3, 3)
    ranges = {I: (idx(0), idx(rng.randint(0, 4))), R: (idx(-1), idx(rng.randint(-1, 2)))}
    bounds = relax(e, ranges)
    assert bounds is not None
    ends = [range(int_of(low), int_of(high) + 1) for low, high in ranges.values()]
    taken = [value(e, {IO: 5, I: i, R: r}) for i, r in itertools.product(*ends)]
    assert (value(bounds[0], {IO: 5}), value(bounds[1], {IO: 5})) == (min(taken), max(taken))
    assert isinstance(simplify(bounds[1] - bounds[0] + 1), Const)


def int_of(e: Expr) -> int:
    found = const_int(e)
    assert found is not None
    return found


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_plainer_bounds_lie_on_their_side(seed: int) -> None:
    rng = random.Random(seed)
    e = random_index(rng, rng.randint(1, 3))
    below, above = lower_bounds(e), upper_bounds(e)
    assert below
    assert above
    for i, r, io in itertools.product((-3, 0, 1, 4), (0, 2), (-1, 2)):
        at = {I: i, R: r, IO: io}
        taken = value(e, at)
        assert all(value(low, at) <= taken for low in below), f"{e}: {[str(low) for low in below]}"
        assert all(value(high, at) >= taken for high in above), f"{e}: {[str(high) for high in above]}"


def test_plainer_bounds_are_affine() -> None:
    assert [str(e) for e in upper_bounds(minimum(IO * 32 + 32, N - 1) * 2 + 1)] == ["io * 64 + 65", "n * 2 - 1"]
    assert [str(e) for e in lower_bounds(maximum(IO * 32 - 1, 0) - minimum(I, R))] == [
        "io * 32 - i - 1",
        "io * 32 - r - 1",
        "-i",
        "-r",
    ]


def test_quotients_by_an_open_extent_run_as_far_as_whole_periods() -> None:
    blocks = (N + idx(7)) // idx(8)  # of a fused loop over 21 tiles of each block of rows
    facts = NO_FACTS.with_condition(idx(1) <= N)
    task = {I: (idx(0), simplify(blocks * idx(21) - idx(1), facts))}
    bounds = relax(I // blocks, task, facts)
    assert bounds is not None
    assert [str(b) for b in bounds] == ["0", "20"]
