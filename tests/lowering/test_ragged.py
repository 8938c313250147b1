"""Reductions whose bounds depend on the element, or are read from memory: sparse rows, segments, triangles."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te

n, m, nnz = te.var("n"), te.var("m"), te.var("nnz")


def both(s, args):
    """The lowered nest in the interpreter, and native code."""
    return lw.interpret(lw.lower(s, args, target="x86-64-v3")), lw.build(s, args)


def sparse(rows, columns, density, seed=0):
    """A matrix of small whole numbers, and its rows in compressed form: where they begin, columns, values."""
    rng = np.random.default_rng(seed)
    A = (rng.integers(1, 9, (rows, columns)) * (rng.random((rows, columns)) < density)).astype(np.float32)
    at, columns_of = np.nonzero(A)
    begins = np.searchsorted(at, np.arange(rows + 1)).astype(np.int32)
    return A, begins, columns_of.astype(np.int32), A[at, columns_of]


MATRICES = [sparse(7, 9, 0.5), sparse(1, 30, 0.9), sparse(5, 3, 0.0), sparse(0, 4, 1.0), sparse(20, 20, 0.1)]


def matvec():
    P = te.placeholder((n + 1,), "int32", name="P")
    J = te.placeholder((nnz,), "int32", name="J")
    V, X = te.placeholder((nnz,), name="V"), te.placeholder((m,), name="X")

    def row(i):
        r = te.reduce_axis((P[i], P[i + 1]), name="r")
        return te.sum(V[r] * X[J[r]], axis=r)

    return P, J, V, X, te.compute((n,), row, name="Y")


def test_the_nest_of_a_sparse_product_before_and_after_a_split():
    *_, Y = matvec()
    s = lw.create_schedule(Y)
    assert (
        str(s)
        == """\
for i in range(n):
    Y[i] = 0.0
    for r in range(index(P[i + 1]) - index(P[i])):
        Y[i] = Y[i] + V[index(P[i]) + r] * X[index(J[index(P[i]) + r])]"""
    )
    s[Y].split(s[Y].op.reduce_axis[0], factor=4)
    s[Y].parallel(s[Y].op.axis[0])
    assert (
        str(s)
        == """\
for i in parallel(n):
    Y[i] = 0.0
    for r_outer in range((index(P[i + 1]) - index(P[i]) + 3) // 4):
        for r_inner in range(4):
            if r_outer * 4 + r_inner + index(P[i]) < index(P[i + 1]):
                Y[i] = Y[i] + V[index(P[i]) + r_outer * 4 + r_inner] * X[index(J[index(P[i]) + r_outer * 4 + r_inner])]"""  # noqa: E501
    )


def plain(s, Y):
    pass


def tiles(s, Y):
    outer, inner = s[Y].split(Y.op.axis[0], factor=4)
    s[Y].unroll(inner)
    s[Y].parallel(outer)
    s[Y].unroll(s[Y].split(Y.op.reduce_axis[0], factor=4)[1])


def parts(s, Y):
    r_outer, r_inner = s[Y].split(Y.op.reduce_axis[0], nparts=3)
    s[Y].reorder(r_outer, Y.op.axis[0], r_inner)


def caches(s, Y):
    P, V = sorted((t for t in Y.op.inputs if t.name in "PV"), key=lambda t: t.name)
    L = s.cache_write(Y, "local")
    outer, inner = s[Y].split(s[Y].op.axis[0], factor=4)
    s[Y].vectorize(inner)
    s[L].compute_at(s[Y], outer)
    C = s.cache_read(P, "local", [L])
    s[C].compute_at(s[L], s[L].op.axis[0])
    D = s.cache_read(V, "local", [L])
    s[D].compute_at(s[L], s[L].op.reduce_axis[0])


def tails(s, Y):
    s[Y].split(Y.op.axis[0], factor=4, tail="peel")
    s[Y].split(Y.op.reduce_axis[0], factor=2, tail="mask")


def peeled_rows(s, Y):
    s[Y].split(Y.op.axis[0], factor=4, tail="shift")
    s[Y].split(Y.op.reduce_axis[0], factor=2, tail="peel")


def lanes(s, Y):
    partial = s.rfactor(Y, s[Y].split(Y.op.reduce_axis[0], factor=4)[1])
    lane, row = s[partial].op.axis
    s[partial].reorder(row, *s[partial].op.reduce_axis, lane)
    s[partial].vectorize(lane)
    s[partial].compute_at(s[Y], Y.op.axis[0])


def groups(s, Y):
    partial = s.rfactor(Y, s[Y].split(Y.op.reduce_axis[0], nparts=3)[0], factor_axis=1)
    s[partial].parallel(partial.op.axis[1])


@pytest.mark.parametrize("schedule", [plain, tiles, parts, caches, tails, peeled_rows, lanes, groups])
def test_a_sparse_matrix_times_a_vector(schedule):
    P, J, V, X, Y = matvec()
    s = lw.create_schedule(Y)
    schedule(s, Y)
    for kernel in both(s, [P, J, V, X, Y]):
        for A, begins, columns, values in MATRICES:
            x = np.arange(1, A.shape[1] + 1, dtype=np.float32)
            y = np.full(A.shape[0], np.nan, np.float32)
            kernel(begins, columns, values, x, y)
            np.testing.assert_array_equal(y, A @ x)


def test_the_default_schedule_of_a_sparse_product():
    P, J, V, X, Y = matvec()
    A, begins, columns, values = MATRICES[0]
    x, y = np.arange(1, 10, dtype=np.float32), np.zeros(7, np.float32)
    lw.build(lw.default_schedule(Y), [P, J, V, X, Y])(begins, columns, values, x, y)
    np.testing.assert_array_equal(y, A @ x)


def test_a_sparse_matrix_times_a_matrix_is_vectorized_over_its_columns():
    P, J = te.placeholder((n + 1,), "int32", name="P"), te.placeholder((nnz,), "int32", name="J")
    V, B = te.placeholder((nnz,), name="V"), te.placeholder((m, 12), name="B")

    def element(i, j):
        r = te.reduce_axis((P[i], P[i + 1]), name="r")
        return te.sum(V[r] * B[J[r], j], axis=r)

    C = te.compute((n, 12), element, name="C")
    s = lw.create_schedule(C)
    i, j = C.op.axis
    outer, inner = s[C].split(j, factor=8)
    s[C].reorder(i, outer, C.op.reduce_axis[0], inner)
    s[C].vectorize(inner)
    s[C].parallel(i)
    for kernel in both(s, [P, J, V, B, C]):
        for A, begins, columns, values in MATRICES:
            b = np.arange(A.shape[1] * 12, dtype=np.float32).reshape(-1, 12)
            c = np.full((A.shape[0], 12), np.nan, np.float32)
            kernel(begins, columns, values, b, c)
            np.testing.assert_array_equal(c, A @ b)


@pytest.mark.parametrize("place", ["root", "inline", "loop"])
def test_bounds_may_be_computed(place):
    """Sums over segments, of which the lengths are given."""
    L = te.placeholder((n,), "int32", name="L")
    X = te.placeholder((n, 8), name="X")
    T = te.compute((n,), lambda i: te.minimum(L[i] * 2, 8), name="T")
    N = te.compute((n, 8), lambda i, k: -X[i, k], name="N")

    def segment(i):
        r = te.reduce_axis((0, T[i]), name="r")
        return te.sum(N[i, r], axis=r)

    S = te.compute((n,), segment, name="S")
    s = lw.create_schedule(S)
    if place == "inline":
        s[T].compute_inline()
        s[N].compute_inline()
    elif place == "loop":
        outer, inner = s[S].split(S.op.axis[0], factor=4)
        s[T].compute_at(s[S], outer)
        s[N].compute_at(s[S], inner)
    lengths, x = np.array([0, 1, 4, 3, 2, 9], np.int32), np.arange(48, dtype=np.float32).reshape(6, 8)
    for kernel in both(s, [L, X, S]):
        out = np.full(6, np.nan, np.float32)
        kernel(lengths, x, out)
        np.testing.assert_array_equal(out, [-x[i, : min(2 * l, 8)].sum() for i, l in enumerate(lengths)])


def test_what_is_read_by_a_ragged_loop_is_computed_as_far_as_all_of_them_go():
    A = te.placeholder((12,), name="A")
    N = te.compute((12,), lambda k: A[k] * 2.0, name="N")
    S = te.compute((6,), lambda i: te.sum(N[r := te.reduce_axis((i, 2 * i), name="r")], axis=r), name="S")
    s = lw.create_schedule(S)
    s[N].compute_at(s[S], S.op.axis[0])
    assert "N: float32[" in str(s)
    a = np.arange(12, dtype=np.float32) + 1
    for kernel in both(s, [A, S]):
        out = np.full(6, np.nan, np.float32)
        kernel(a, out)
        np.testing.assert_array_equal(out, [2 * a[i : 2 * i].sum() for i in range(6)])


@pytest.mark.parametrize("tail", ["guard", "peel"])
def test_a_triangle(tail):
    A = te.placeholder((n, n), name="A")
    N = te.compute((n, n), lambda i, j: A[i, j] + 1.0, name="N")

    def below(i, j):
        r = te.reduce_axis((0, i + 1), name="r")
        return te.sum(N[i, r] * A[r, j], axis=r)

    S = te.compute((n, n), below, name="S")
    s = lw.create_schedule(S)
    i, j = S.op.axis
    outer, inner = s[S].split(j, factor=8)
    s[S].reorder(i, outer, S.op.reduce_axis[0], inner)
    s[S].vectorize(inner)
    s[S].unroll(s[S].split(S.op.reduce_axis[0], factor=4, tail=tail)[1])
    s[N].compute_at(s[S], i)
    for kernel in both(s, [A, S]):
        for size in (0, 1, 2, 13):
            a = np.random.default_rng(1).integers(-9, 9, (size, size)).astype(np.float32)
            out = np.full((size, size), np.nan, np.float32)
            kernel(a, out)
            np.testing.assert_array_equal(out, np.tril(a + 1) @ a)


def test_the_largest_of_each_segment_and_its_place():
    P, X = te.placeholder((n + 1,), "int64", name="P"), te.placeholder((nnz,), name="X")

    def segment(i):
        r = te.reduce_axis((P[i], P[i + 1]), name="r")
        return te.argmax(X[r], axis=r)

    value, index = te.compute((n,), segment, name="best")
    s = lw.create_schedule([value, index])
    s[value].parallel(value.op.axis[0])
    s[value].split(value.op.reduce_axis[0], factor=2)
    begins, x = np.array([0, 3, 4, 9]), np.array([1, 7, 7, -2, 0, 5, 3, 5, 4], np.float32)
    for kernel in both(s, [P, X, value, index]):
        best, at = np.zeros(3, np.float32), np.zeros(3, np.int64)
        kernel(begins, x, best, at)
        np.testing.assert_array_equal(best, [7, -2, 5])
        np.testing.assert_array_equal(at, [1, 0, 1])


@pytest.mark.parametrize("factored", [False, True])
def test_windows_that_begin_anywhere_have_one_extent(factored):
    P, X = te.placeholder((n,), "int32", name="P"), te.placeholder((nnz,), name="X")

    def window(i):
        begin = te.cast(P[i], "index")
        r = te.reduce_axis((begin, begin + 4), name="r")
        return te.sum(X[r], axis=r)

    S = te.compute((n,), window, name="S")
    s = lw.create_schedule(S)
    outer, inner = s[S].split(S.op.axis[0], factor=8)
    if factored:
        F = s.rfactor(S, S.op.reduce_axis[0])
        s[F].vectorize(F.op.axis[0])
    else:
        s[S].reorder(outer, S.op.reduce_axis[0], inner)
        s[S].vectorize(inner)
    starts, x = np.array([5, 0, 3, 3, 1], np.int32), np.arange(9, dtype=np.float32)
    for kernel in both(s, [P, X, S]):
        out = np.zeros(5, np.float32)
        kernel(starts, x, out)
        np.testing.assert_array_equal(out, [x[p : p + 4].sum() for p in starts])


def refused(message):
    return pytest.raises(lw.ScheduleError, match=message)


def test_a_ragged_loop_stays_inside_the_loops_it_depends_on():
    *_, Y = matvec()
    s = lw.create_schedule(Y)
    (i,), (r,) = Y.op.axis, Y.op.reduce_axis
    with refused("loop r of Y cannot stand outside loop i, which its extent") as caught:
        s[Y].reorder(r, i)
    assert "Reorder so that i stays outside r" in str(caught.value)
    outer, inner = s[Y].split(i, factor=4)
    with refused("cannot stand outside loop i_inner"):
        s[Y].reorder(outer, r, inner)
    s[Y].reorder(inner, outer)


def test_rows_of_different_lengths_are_not_vectorized():
    *_, Y = matvec()
    s = lw.create_schedule(Y)
    outer, inner = s[Y].split(Y.op.axis[0], factor=4)
    with refused("cannot vectorize loop i_inner of Y: loop r inside it has another extent in each iteration"):
        s[Y].vectorize(inner)
    s[Y].split(Y.op.reduce_axis[0], factor=4)
    with refused("loop r_outer inside it has another extent"):
        s[Y].vectorize(inner)
    s[Y].parallel(outer)


def test_ragged_loops_are_not_fused_unrolled_or_factored():
    *_, Y = matvec()
    s = lw.create_schedule(Y)
    (r,) = Y.op.reduce_axis
    with refused("expected a constant of at most 4096"):
        s[Y].unroll(r)
    with refused("cannot rfactor loop r of Y: its extent, .*, is not the same for all elements"):
        s.rfactor(Y, r)
    outer, inner = s[Y].split(r, factor=4)
    with refused("cannot fuse loop r_outer of Y: its extent"):
        s[Y].fuse(outer, inner)
    with refused("cannot rfactor loop r_outer of Y"):
        s.rfactor(Y, outer)
    s.rfactor(Y, inner)


def test_what_an_extent_reads_is_not_computed_inside_its_loop():
    L = te.placeholder((n,), "int32", name="L")
    T = te.compute((n,), lambda i: L[i] + 1, name="T")
    X = te.placeholder((n, 8), name="X")
    S = te.compute((n,), lambda i: te.sum(X[i, (r := te.reduce_axis((0, T[i]), name="r"))], axis=r), name="S")
    s = lw.create_schedule(S)
    with refused("cannot compute T at loop r of S: the extent of loop r reads it"):
        s[T].compute_at(s[S], S.op.reduce_axis[0])
    s[T].compute_at(s[S], S.op.axis[0])


def test_bounds_depend_on_the_axes_of_the_compute_only():
    X = te.placeholder((8, 8), name="X")
    q = te.reduce_axis((0, 8), name="q")
    r = te.reduce_axis((0, q), name="r")
    with pytest.raises(lw.ExpressionError, match="the bounds of the reduction axis r depend on a reduction axis"):
        te.compute((), lambda: te.sum(X[q, r], axis=[q, r]), name="S")


def test_reads_of_bounds_are_checked():
    P, X = te.placeholder((8,), "int32", name="P"), te.placeholder((30,), name="X")
    with pytest.raises(lw.ExpressionError, match=r"S reads P\[i \+ 1\] out of bounds"):
        te.compute((8,), lambda i: te.sum(X[r := te.reduce_axis((P[i], P[i + 1]), name="r")], axis=r), name="S")
