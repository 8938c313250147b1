"""Running folds: a stage that folds each element from the one before it, by accumulate, against numpy."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te

n, m = te.var("n"), te.var("m")
WAYS = [(False, False), (True, False), (False, True), (True, True)]


def both(s, args):
    """The lowered nest in the interpreter, and native code."""
    return lw.interpret(lw.lower(s, args, target="x86-64-v3")), lw.build(s, args)


def running(rows, columns, exclusive=False, reverse=False, fold=te.sum):
    A = te.placeholder((rows, columns), name="A")

    def element(i, k):
        end = (columns - k if reverse else k + 1) - int(exclusive)
        j = te.reduce_axis((0, end), name="j")
        return fold(A[i, columns - 1 - j if reverse else j], axis=j)

    return A, te.compute((rows, columns), element, name="B")


def numpys(x, exclusive, reverse):
    x = np.flip(x, 1) if reverse else x
    sums = np.cumsum(x, 1, dtype=x.dtype)
    sums = np.concatenate([np.zeros_like(sums[:, :1]), sums[:, :-1]], 1) if exclusive else sums
    return np.flip(sums, 1) if reverse else sums


def test_accumulate_before_and_after():
    _, B = running(4, 8)
    s = lw.create_schedule(B)
    assert (
        str(s)
        == """\
for i in range(4):
    for k in range(8):
        B[i, k] = 0.0
        for j in range(k + 1):
            B[i, k] = B[i, k] + A[i, j]"""
    )
    s[B].accumulate("k")
    assert (
        str(s)
        == """\
for i in range(4):
    B.fold: float32[] = allocate('local')
    B.fold[()] = 0.0
    for k in range(8):
        B.fold[()] = B.fold[()] + A[i, k]
        B[i, k] = B.fold[()]"""
    )


def test_a_fold_from_the_end_that_leaves_out_its_own_element_and_one_of_vectors():
    _, B = running(4, 8, exclusive=True, reverse=True)
    s = lw.create_schedule(B)
    s[B].accumulate("k")
    s[B].reorder("k", "i")
    s[B].vectorize("i")
    assert (
        str(s)
        == """\
B.fold: float32[4] = allocate('local')
for i_init in vectorized(4):
    B.fold[i_init] = 0.0
for k in range(8):
    for i in vectorized(4):
        if k >= 1:
            B.fold[i] = B.fold[i] + A[i, 8 - k]
        B[i, 7 - k] = B.fold[i]"""
    )


@pytest.mark.parametrize(("exclusive", "reverse"), WAYS)
@pytest.mark.parametrize(("rows", "columns"), [(6, 9), (n, 9), (6, m), (n, m)], ids=str)
@pytest.mark.parametrize("tail", ["guard", "peel", "mask"])
def test_tiles_of_rows_and_what_reads_them(exclusive, reverse, rows, columns, tail):
    A, B = running(rows, columns, exclusive, reverse)
    C = te.compute((rows, columns), lambda i, k: B[i, k] * 2.0 + A[i, k], name="C")
    s = lw.create_schedule(C)
    s[B].accumulate("k")
    block, row = s[B].split("i", 4, tail=tail)
    s[B].reorder(block, "k", row)
    s[B].vectorize(row)
    s[B].parallel(block)
    s[C].reverse_compute_at(s[B], "k")
    x = np.random.default_rng(0).integers(-9, 9, (6, 9)).astype(np.float32)
    for run in both(s, [A, C]):
        found = np.full_like(x, np.nan)
        run(x, found)
        np.testing.assert_array_equal(found, numpys(x, exclusive, reverse) * 2 + x)


@pytest.mark.parametrize("columns", [0, 1])
def test_no_elements_and_one(columns):
    A, B = running(3, m, exclusive=True)
    s = lw.create_schedule(B)
    s[B].accumulate("k")
    for run in both(s, [A, B]):
        found = np.full((3, columns), 7, np.float32)
        run(np.ones((3, columns), np.float32), found)
        np.testing.assert_array_equal(found, np.zeros((3, columns)))


def test_a_producer_is_computed_as_the_fold_reaches_it():
    A = te.placeholder((5, 7), name="A")
    P = te.compute((5, 7), lambda i, k: A[i, k] * A[i, k], name="P")

    def element(i, k):
        j = te.reduce_axis((0, k + 1), name="j")
        return te.sum(P[i, j], axis=j)

    B = te.compute((5, 7), element, name="B")
    s = lw.create_schedule(B)
    s[B].accumulate("k")
    s[P].compute_at(s[B], "k")
    assert "P: float32[1, 1] = allocate('local')" in str(s)
    x = np.arange(35, dtype=np.float32).reshape(5, 7)
    for run in both(s, [A, B]):
        found = np.zeros_like(x)
        run(x, found)
        np.testing.assert_array_equal(found, np.cumsum(x * x, 1))


def test_a_fold_of_several_values_inside_of_a_readers_loop():
    A = te.placeholder((5, 7), name="A")

    def element(i, k):
        j = te.reduce_axis((0, k + 1), name="j")
        return te.argmax(A[i, j], axis=j, index_dtype="int32")

    most, at = te.compute((5, 7), element, name="B")
    C = te.compute((5, 7), lambda i, k: te.cast(at[i, k], "float32") + most[i, k], name="C")
    s = lw.create_schedule(C)
    s[at].accumulate("k")
    s[at].compute_at(s[C], "i")
    x = np.random.default_rng(1).permutation(35).astype(np.float32).reshape(5, 7)
    positions = np.array([[row[: k + 1].argmax() for k in range(7)] for row in x])
    for run in both(s, [A, C]):
        found = np.zeros_like(x)
        run(x, found)
        np.testing.assert_array_equal(found, positions + np.maximum.accumulate(x, 1))


def test_terms_that_a_condition_leaves_out_leave_the_element_as_the_one_before():
    _, B = running(3, 8, fold=lambda value, axis: te.sum(value, axis=axis, where=value > 0))
    A = B.op.inputs[0]
    s = lw.create_schedule(B)
    s[B].accumulate("k")
    x = np.random.default_rng(2).integers(-9, 9, (3, 8)).astype(np.float32)
    for run in both(s, [A, B]):
        found = np.full_like(x, np.nan)
        run(x, found)
        np.testing.assert_array_equal(found, np.cumsum(np.maximum(x, 0), 1))


def test_it_folds_in_the_order_of_the_definition_so_that_strict_builds_take_it():
    A, B = running(2, 1000)
    x = np.random.default_rng(3).standard_normal((2, 1000)).astype(np.float32)
    s = lw.create_schedule(B)
    s[B].accumulate("k")
    found = np.zeros_like(x)
    lw.build(s, [A, B], precision="strict")(x, found)
    np.testing.assert_array_equal(found, np.cumsum(x, 1))  # numpy's goes from element to element, too


def test_a_trace_with_it_is_replayed_from_json():
    _, B = running(4, 8)
    s = lw.create_schedule(B)
    s[B].accumulate("k")
    again = lw.create_schedule(B)
    again.replay(lw.Trace.from_json(s.trace.to_json()))
    assert str(again) == str(s)
    assert str(s.trace).endswith('s["B"].accumulate(k)')


def test_the_default_schedule_accumulates_where_it_can():
    A, B = running(64, 5000)
    s = lw.default_schedule([B], "x86-64-v3")
    assert "accumulate" in [step.primitive for step in s.trace]
    x = np.random.default_rng(4).integers(-9, 9, (64, 5000)).astype(np.float32)
    found = np.zeros_like(x)
    lw.build(s, [A, B])(x, found)
    np.testing.assert_array_equal(found, np.cumsum(x, 1))
