"""The default schedule's register tile, where no number of rows divides those that there are, or these are open, or
where the columns are those of a copy."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir.stmt import Allocate
from loopwright.ir.visit import walk
from loopwright.schedules.default_schedule import default_schedule


def product(rows, columns):
    """A product with 30 terms by the default schedule for x86-64-v3, and the most sums that it holds at once."""
    a, b = te.placeholder((rows, 30), name="a"), te.placeholder((30, columns), name="b")
    k = te.reduce_axis((0, 30), name="k")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    target = lw.resolve_target("x86-64-v3")
    func = lw.lower(default_schedule([c], target), [a, b, c], target=target)
    held = [n.buffer for n in walk(func.body) if isinstance(n, Allocate) and n.buffer.scope == "register"]
    return func, max((int(buffer.shape[0]) for buffer in held), default=0)


@pytest.mark.parametrize("rows", [1, 7, 61, 64, 67])
@pytest.mark.parametrize("columns", [40, 48])
def test_a_prime_number_of_rows_is_tiled_too(rows, columns):
    func, sums = product(rows, columns)
    if rows > 3:
        assert sums >= 6
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((rows, 30)).astype(np.float32), rng.standard_normal((30, columns)).astype(np.float32)
    found = np.empty((rows, columns), np.float32)
    lw.interpret(func)(x, y, found)
    np.testing.assert_allclose(found, x.astype(np.float64) @ y, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("columns", [40, 64])
def test_an_open_number_of_rows_is_tiled_too(columns):
    func, sums = product(te.var("rows"), columns)
    assert sums >= 12  # of some rows at once
    rng = np.random.default_rng(0)
    y = rng.standard_normal((30, columns)).astype(np.float32)
    for count in (0, 1, 3, 4, 5, 9):
        x, found = rng.standard_normal((count, 30)).astype(np.float32), np.empty((count, columns), np.float32)
        lw.interpret(func)(x, y, found)
        np.testing.assert_allclose(found, x.astype(np.float64) @ y, rtol=1e-4, atol=1e-5)


def test_open_rows_that_share_nothing_are_summed_one_by_one():
    rows = te.var("rows")
    a = te.placeholder((rows, 30, 64), name="a")
    k = te.reduce_axis((0, 30), name="k")
    c = te.compute((rows, 64), lambda i, j: te.sum(a[i, k, j], axis=k), name="c")
    schedule = default_schedule([c], lw.resolve_target("x86-64-v3"))
    assert "peel" not in str(schedule.trace)


@pytest.mark.parametrize(("rows", "copied"), [(1, False), (8, True), (te.var("rows"), True)], ids=["1", "8", "open"])
def test_a_factor_whose_gaps_a_copy_closes_is_not_summed_in_lanes_as_well(rows, copied):
    a, b = te.placeholder((rows, 64), name="a"), te.placeholder((48, 64), name="b")
    k = te.reduce_axis((0, 64), name="k")
    c = te.compute((rows, 48), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k), name="c")
    target = lw.resolve_target("x86-64-v3")
    schedule = default_schedule([c], target)
    steps = str(schedule.trace)
    assert ("cache_read" in steps, "rfactor" in steps) == (copied, not copied)
    func = lw.lower(schedule, [a, b, c], target=target)
    rng = np.random.default_rng(0)
    count = rows if isinstance(rows, int) else 5
    x, y = rng.standard_normal((count, 64)).astype(np.float32), rng.standard_normal((48, 64)).astype(np.float32)
    found = np.empty((count, 48), np.float32)
    lw.interpret(func)(x, y, found)
    np.testing.assert_allclose(found, x.astype(np.float64) @ y.T, rtol=1e-4, atol=1e-5)


def test_the_values_and_the_positions_of_a_tile_find_registers():
    """Positions of 64 bits are twice as wide as the values, and want registers beside theirs."""
    a, r = te.placeholder((100, 150, 60), name="a"), te.reduce_axis((0, 150), name="r")
    target = lw.resolve_target("x86-64-v4")
    best = te.compute((100, 60), lambda i, j: te.argmax(a[i, r, j], axis=r), name="best")
    func = lw.lower(default_schedule(best, target), [a, *best], target=target)
    held = [n.buffer for n in walk(func.body) if isinstance(n, Allocate) and n.buffer.scope == "register"]
    assert 2 * max(int(buffer.shape[0]) for buffer in held) < target.vector_registers
