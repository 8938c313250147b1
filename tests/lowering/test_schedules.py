"""Schedules change how a compute runs, never what it computes: each is compared with the naive one, interpreted."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir.verify import verify


def run(s, args, arrays):
    func = lw.lower(s, args, target="x86-64-v3")
    verify(func)
    lw.interpret(func)(*arrays)


def check(s, args, naive, inputs, outputs):
    got = [np.zeros(shape, kind) for shape, kind in outputs]
    expected = [np.zeros(shape, kind) for shape, kind in outputs]
    run(s, args, [*inputs, *got])
    run(naive, args, [*inputs, *expected])
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def matmul(n, k, m):
    A = te.placeholder((n, k), name="A")
    B = te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    return A, B, C


def tiled(s, C):
    i, j = s[C].op.axis
    (r,) = s[C].op.reduce_axis
    io, jo, ii, ji = s[C].tile(i, j, 4, 8)
    ro, ri = s[C].split(r, factor=4)
    s[C].reorder(jo, ro, io, ri, ii, ji)
    s[C].vectorize(ji)
    s[C].unroll(ii)
    s[C].parallel(jo)


def cached(s, C):
    L = s.cache_write(C, "local")
    i, j = s[C].op.axis
    _io, jo, _ii, _ji = s[C].tile(i, j, 3, 4)
    s[L].compute_at(s[C], jo)
    (r,) = s[L].op.reduce_axis
    ro, ri = s[L].split(r, nparts=2)
    li, lj = s[L].op.axis
    s[L].reorder(ro, ri, li, lj)
    s[L].vectorize(lj)
    A = s[L].op.inputs[0]
    AL = s.cache_read(A, "local", [L])
    s[AL].compute_at(s[L], ro)


def fused(s, C):
    i, j = s[C].op.axis
    f = s[C].fuse(i, j)
    outer, inner = s[C].split(f, factor=8)
    s[C].vectorize(inner)
    s[C].parallel(outer)


@pytest.mark.parametrize("schedule", [tiled, cached, fused])
@pytest.mark.parametrize("shape", [(8, 8, 16), (7, 5, 13), (1, 1, 1), (5, 9, 8), (0, 3, 4), (3, 0, 4)])
def test_matmul(schedule, shape):
    n, k, m = shape
    A, B, C = matmul(n, k, m)
    s = lw.create_schedule(C)
    schedule(s, C)
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal((n, k), np.float32), rng.standard_normal((k, m), np.float32)]
    check(s, [A, B, C], lw.create_schedule(C), inputs, [((n, m), "float32")])


@pytest.mark.parametrize("size", [1, 2, 7, 16, 33])
def test_a_stencil_computed_in_its_readers_tile(size):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    P = te.compute((n + 2,), lambda i: te.if_then_else(te.all(i >= 1, i < n + 1), A[i - 1], 0.0), name="P")
    S = te.compute((n + 2,), lambda i: P[i] * 2.0, name="S")
    B = te.compute((n,), lambda i: S[i] + S[i + 1] + S[i + 2], name="B")
    s = lw.create_schedule(B)
    (i,) = s[B].op.axis
    io, ii = s[B].split(i, factor=8)
    s[B].vectorize(ii)
    s[P].compute_inline()
    s[S].compute_at(s[B], io)
    (k,) = s[S].op.axis
    _ko, ki = s[S].split(k, factor=4)
    s[S].vectorize(ki)
    a = np.random.default_rng(1).standard_normal(size, np.float32)
    check(s, [A, B], lw.create_schedule(B), [a], [((size,), "float32")])


def test_the_box_of_a_tile_is_as_large_as_needed():
    A = te.placeholder((64,), name="A")
    P = te.compute((64,), lambda i: A[i] + 1.0, name="P")
    B = te.compute((31,), lambda i: P[i * 2] + P[i * 2 + 1] + P[i * 2 + 2], name="B")
    s = lw.create_schedule(B)
    io, _ = s[B].split(B.op.axis[0], factor=4)
    s[P].compute_at(s[B], io)
    assert "P: float32[9] = allocate('local')" in str(s)


def test_argmin_does_not_depend_on_the_order_of_outputs():
    A = te.placeholder((5, 9), name="A")
    k = te.reduce_axis((0, 9), name="k")

    def swapped(i):
        value, index = te.argmin(A[i, k], axis=k)
        return index, value

    index, value = te.compute((5,), swapped, name="m")
    s = lw.create_schedule([index, value])
    (i,) = s[value].op.axis
    io, ii = s[value].split(i, factor=4)
    s[value].reorder(io, k, ii)
    s[value].vectorize(ii)
    a = np.random.default_rng(2).integers(0, 4, (5, 9)).astype(np.float32)
    got_index, got_value = np.zeros(5, np.int64), np.zeros(5, np.float32)
    run(s, [A, index, value], [a, got_index, got_value])
    np.testing.assert_array_equal(got_index, a.argmin(axis=1))
    np.testing.assert_array_equal(got_value, a.min(axis=1))


def test_one_reduce_axis_may_serve_two_computes():
    A = te.placeholder((4, 6), name="A")
    k = te.reduce_axis((0, 6), name="k")
    S = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="S")
    M = te.compute((4,), lambda i: te.max(A[i, k] - S[i], axis=k), name="M")
    s = lw.create_schedule(M)
    a = np.random.default_rng(3).standard_normal((4, 6), np.float32)
    out = np.zeros(4, np.float32)
    run(s, [A, M], [a, out])
    np.testing.assert_allclose(out, (a - a.sum(1, keepdims=True)).max(1), rtol=1e-5)


def test_a_condition_chooses_the_terms_of_a_reduction():
    A = te.placeholder((20,), name="A")
    k = te.reduce_axis((0, 20), name="k")
    S = te.compute((1,), lambda i: te.sum(A[k], axis=k, where=A[k] > 0.0), name="S")
    a = np.random.default_rng(4).standard_normal(20).astype(np.float32)
    out = np.zeros(1, np.float32)
    run(lw.create_schedule(S), [A, S], [a, out])
    np.testing.assert_allclose(out[0], a[a > 0].sum(), rtol=1e-5)


@pytest.mark.parametrize("reordered", [False, True])
@pytest.mark.parametrize("place", [None, 0, 1])
@pytest.mark.parametrize("which", ["axis", "input", "stage", "stage at the axis"])
def test_a_condition_leaves_the_identity_where_it_chooses_nothing(which, place, reordered):
    A = te.placeholder((5, 6), name="A")
    P = te.compute((5, 6), lambda i, j: A[i, j] + 1.0, name="P")
    r = te.reduce_axis((0, 6), name="r")
    conditions = {
        "axis": lambda i: i > 2,
        "input": lambda i: A[i, 0] > 0.0,
        "stage": lambda i: P[i, r] > 0.0,
        "stage at the axis": lambda i: P[i, 0] > 0.0,
    }
    S = te.compute((5,), lambda i: te.sum(A[i, r], axis=r, where=conditions[which](i)), name="S")
    s = lw.create_schedule(S)
    if reordered:
        s[S].reorder(r, S.op.axis[0])
    if place is not None and which.startswith("stage"):
        s[P].compute_at(s[S], s[S].loops[place])
    a = np.random.default_rng(6).standard_normal((5, 6), np.float32)
    chosen = {
        "axis": np.arange(5)[:, None] > 2,
        "input": a[:, :1] > 0,
        "stage": a + 1 > 0,
        "stage at the axis": a[:, :1] + 1 > 0,
    }
    out = np.full(5, np.nan, np.float32)
    run(s, [A, S], [a, out])
    np.testing.assert_allclose(out, np.where(chosen[which], a, 0).sum(1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("vectorized", [False, True])
def test_a_condition_that_reads_is_asked_only_inside_the_guards_of_splits(vectorized):
    A = te.placeholder((3, 5), "int32", name="A")
    r = te.reduce_axis((0, 3), name="r")
    S = te.compute((5,), lambda j: te.sum(A[r, j], axis=r, where=A[r, j] > 0), name="S")
    s = lw.create_schedule(S)
    jo, ji = s[S].split(S.op.axis[0], factor=8)
    s[S].reorder(jo, r, ji)
    if vectorized:
        s[S].vectorize(ji)
    a = np.random.default_rng(7).integers(-9, 9, (3, 5), np.int32)
    out = np.zeros(5, np.int32)
    run(s, [A, S], [a, out])
    np.testing.assert_array_equal(out, np.where(a > 0, a, 0).sum(0))


def test_printing_is_possible_after_each_step():
    _A, _B, C = matmul(9, 7, 30)
    s = lw.create_schedule(C)
    texts = [str(s)]
    for step in [("split", C.op.axis[0], 4), ("split", C.op.axis[1], 8)]:
        getattr(s[C], step[0])(step[1], factor=step[2])
        texts.append(str(s))
    assert len(set(texts)) == 3
    assert "if i_outer * 4 + i_inner < 9:" in texts[1]


def test_a_copy_goes_its_own_way():
    _A, _B, C = matmul(9, 7, 30)
    s = lw.create_schedule(C)
    twin = s.copy()
    twin[C].split(C.op.axis[0], factor=3)
    assert len(s.trace) == 0
    assert len(twin.trace) == 1
    assert str(s) != str(twin)


def test_a_tile_with_loops_of_one_iteration_is_initialised_before_all_reductions():
    A, B, C = matmul(4, 8, 6)
    s = lw.create_schedule(C)
    i, j = C.op.axis
    (r,) = C.op.reduce_axis
    io, ii = s[C].split(i, factor=1)
    ro, ri = s[C].split(r, factor=4)
    s[C].reorder(io, j, ro, ii, ri)
    assert "== 0" not in str(s)
    inputs = [np.ones((4, 8), np.float32), np.ones((8, 6), np.float32)]
    check(s, [A, B, C], lw.create_schedule(C), inputs, [((4, 6), "float32")])


@pytest.mark.parametrize("size", [0, 1, 2, 3, 5])
def test_a_box_does_not_rely_on_loops_that_may_not_run(size):
    n = te.var("n")
    A = te.placeholder((n + 1,), name="A")
    P = te.compute((n + 1,), lambda i: A[i] * 2.0, name="P")
    r = te.reduce_axis((0, n - 1), name="r")
    S = te.compute((3, n), lambda k, j: te.sum(P[r], axis=r), name="S")
    Z = te.compute((3, n), lambda k, j: S[k, j] + P[te.maximum(n - 2, 0)], name="Z")
    s = lw.create_schedule(Z)
    s[S].compute_at(s[Z], Z.op.axis[0])
    s[P].compute_at(s[Z], Z.op.axis[0])
    a, out = np.arange(size + 1, dtype=np.float32), np.zeros((3, size), np.float32)
    run(s, [A, Z], [a, out])
    np.testing.assert_array_equal(out, 2 * a[: max(size - 1, 0)].sum() + 2 * a[max(size - 2, 0)])


def test_cache_read_takes_a_single_reader_as_well_as_a_list_of_them():
    A, _, C = matmul(4, 4, 4)
    listed = lw.create_schedule(C)
    listed.cache_read(A, "local", [C])
    for reader in (C, C.op, "C"):
        s = lw.create_schedule(C)
        s.cache_read(A, "local", reader)
        assert str(s) == str(listed)
        assert s.trace == listed.trace
