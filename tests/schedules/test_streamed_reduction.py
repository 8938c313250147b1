"""The default schedule of reductions that use each element once: long runs, sums in memory, terms in order."""

from dataclasses import replace

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.schedules.default_schedule import default_schedule
from loopwright.te.reducers import reducer

TARGET = lw.resolve_target("llvm -mcpu=x86-64-v3")


def middle_sums(n, k, m):
    A = te.placeholder((n, k, m), name="A")
    r = te.reduce_axis((0, k), name="r")
    return A, te.compute((n, m), lambda i, j: te.sum(A[i, r, j], axis=r), name="S")


def test_far_rows_share_no_tile():
    _, S = middle_sums(64, 32, 1024)
    text = str(default_schedule(S, TARGET))
    terms = "A[i_j_outer_fused, r_outer * 4 + r_inner, j_inner_outer * 8 + j_inner_inner]"
    assert text.splitlines()[-1].strip().endswith(f" + {terms}"), text


@pytest.mark.parametrize(("l2_bytes", "terms"), [(2**16, 1), (2**30, 4)], ids=["memory", "cache"])
def test_short_rows_from_memory_are_read_in_order(l2_bytes, terms):
    _, S = middle_sums(64, 32, 512)
    nest = str(default_schedule(S, replace(TARGET, l2_bytes=l2_bytes)))
    assert ("for r_inner in unrolled(4)" in nest) == (terms == 4), nest


@pytest.mark.parametrize(("n", "k", "m"), [(3, 7, 200), (1, 3, 1030), (2, 1, 130)])
def test_runs_and_terms_that_do_not_come_out_even(n, k, m):
    A, S = middle_sums(n, k, m)
    data = np.random.default_rng(0).normal(size=(n, k, m)).astype(np.float32)
    found = np.empty((n, m), np.float32)
    lw.build(default_schedule(S, TARGET, reassociate=False), [A, S], precision="strict")(data, found)
    expected = np.zeros((n, m), np.float32)
    for term in range(k):
        expected += data[:, term]
    np.testing.assert_array_equal(found, expected)


def test_axes_that_lie_together_are_one_run():
    A = te.placeholder((9, 30, 50), name="A")
    r = te.reduce_axis((0, 9), name="r")
    S = te.compute((30, 50), lambda i, j: te.sum(A[r, i, j], axis=r), name="S")
    assert "for i_j_fused_inner_outer" in str(default_schedule(S, TARGET))


def test_a_reducer_that_minds_the_order_gets_it():
    A = te.placeholder((10, 300), name="A")
    r = te.reduce_axis((0, 10), name="r")
    latest = reducer("latest", lambda a, b: (te.select(b[0] > 0, b[0], a[0]),), lambda kinds: (te.const(0, kinds[0]),))
    L = te.compute((300,), lambda j: latest((A[r, j],), axis=r)[0], name="L")
    data = np.random.default_rng(0).normal(size=(10, 300)).astype(np.float32)
    found = np.empty(300, np.float32)
    lw.build(default_schedule(L, TARGET), [A, L])(data, found)
    expected = np.zeros(300, np.float32)
    for row in data:
        expected = np.where(row > 0, row, expected)
    np.testing.assert_array_equal(found, expected)
