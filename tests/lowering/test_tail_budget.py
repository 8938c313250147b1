"""Tails within tails of unrolled loops: the code they make has a bound, the result is right, and users are told."""

import logging

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.lowering.nest.tails import MAX_STATEMENTS


def stacked(factors, tail):
    """A loop of unknown extent, split again and again from the outside; the loops within are unrolled, the first of
    them vectorized."""
    n = te.var("n")
    A = te.placeholder((n,), "float32", name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0 + 1.0, name="B")
    schedule = lw.create_schedule(B)
    (loop,) = schedule[B].op.axis
    unrolled = []
    for factor in factors:
        loop, inner = schedule[B].split(loop, factor, tail=tail)
        unrolled.append(inner)
    schedule[B].vectorize(unrolled[0])
    for inner in unrolled[1:]:
        schedule[B].unroll(inner)
    return schedule, [A, B]


@pytest.mark.parametrize(("factors", "tail"), [((4, 4, 4, 4), "peel"), ((4, 7, 5, 3), "peel"), ((4, 5, 4, 4), "shift")])
def test_stacked_tails_are_right_and_of_bounded_size(factors, tail, caplog):
    schedule, args = stacked(factors, tail)
    caplog.set_level(logging.INFO, "loopwright.lowering")
    kernel = lw.build(schedule, args, target="x86-64-v2")
    tile, unrolled = int(np.prod(factors)), int(np.prod(factors[1:]))
    assert "a tail is plain: unrolled" in caplog.text
    assert kernel.loop_ir.count("] = ") <= 2 * (unrolled + MAX_STATEMENTS)  # a masked one may be two
    for size in (0, 1, tile - 1, tile, tile + 1, 3 * tile, 4 * tile - 1, 5 * tile + 7):
        a, b = np.arange(size, dtype=np.float32), np.full(size, np.nan, np.float32)
        kernel(a, b)
        np.testing.assert_array_equal(b, a * 2 + 1)


def test_the_report_tells_of_plain_tails():
    schedule, args = stacked((4, 4, 4, 4), "peel")
    report = lw.build(schedule, args, target="x86-64-v2").vector_report()
    assert any("its tail is plain" in cost for cost in report.costs), str(report)


def test_tails_within_the_budget_are_copied_out(caplog):
    caplog.set_level(logging.INFO, "loopwright.lowering")
    schedule, args = stacked((4, 4), "peel")
    assert "plain" not in str(lw.lower(schedule, args))
    assert "plain" not in caplog.text
