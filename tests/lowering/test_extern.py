"""Externs among other stages: as written, on whole inputs, wherever they are placed; compared with numpy."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te


def run(s, args, *arrays):
    """The arrays after the lowered nest ran in the interpreter; native code must give the same."""
    native = [a.copy() for a in arrays]
    lw.interpret(lw.lower(s, args, target="x86-64-v3"))(*arrays)
    lw.build(s, args)(*native)
    for a, b in zip(arrays, native, strict=True):
        np.testing.assert_array_equal(a, b)
    return arrays


def searchsorted(ins, outs):
    """For each query the first place where it could stand in the sorted values."""
    ib = te.IRBuilder()
    values, queries, places = map(ib.buffer_ptr, (*ins, *outs))
    with ib.for_range(0, queries.shape[0], name="k", kind="parallel") as k:
        low, high = ib.allocate("index", (), "low"), ib.allocate("index", (), "high")
        low[()] = 0
        high[()] = values.shape[0]
        with ib.while_loop(low[()] < high[()]):
            middle = ib.let("middle", (low[()] + high[()]) // 2)
            with ib.if_scope(values[middle] < queries[k]):
                low[()] = middle + 1
            with ib.else_scope():
                high[()] = middle
        places[k] = te.cast(low[()], "int64")
    return ib.get()


@pytest.mark.parametrize(("values", "queries"), [(13, 7), (1, 3), (0, 2), (5, 0), (64, 64)])
def test_a_binary_search(values, queries):
    n, m = te.var("n"), te.var("m")
    V, Q = te.placeholder((n,), name="V"), te.placeholder((m,), name="Q")
    P = te.extern((m,), [V, Q], searchsorted, name="P", dtype="int64")
    rng = np.random.default_rng(0)
    v, q = np.sort(rng.random(values, np.float32)), rng.random(queries, np.float32)
    q[: min(values, queries)] = v[: min(values, queries)]
    *_, p = run(lw.create_schedule(P), [V, Q, P], v, q, np.zeros(queries, np.int64))
    np.testing.assert_array_equal(p, np.searchsorted(v, q))


def insertion_sort(ins, outs):
    ib = te.IRBuilder()
    A, B = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
    with ib.for_range(0, A.shape[0], name="i") as i:
        x = ib.let("x", A[i])
        j = ib.allocate("index", (), "j")
        j[()] = i
        with ib.while_loop(te.if_then_else(j[()] > 0, B[j[()] - 1] > x, False)):
            B[j[()]] = B[j[()] - 1]
            j[()] = j[()] - 1
        B[j[()]] = x
    return ib.get()


@pytest.mark.parametrize("size", [0, 1, 2, 17])
def test_a_sort_between_computes(size):
    n = te.var("n")
    A = te.placeholder((n,), "int32", name="A")
    N = te.compute((n,), lambda i: -A[i], name="N")
    S = te.extern((n,), [N], insertion_sort, name="S")
    B = te.compute((n,), lambda i: S[n - 1 - i] * 10, name="B")
    s = lw.create_schedule(B)
    for stage in (N, B):
        outer, inner = s[stage].split(s[stage].op.axis[0], factor=4)
        s[stage].vectorize(inner)
        s[stage].parallel(outer)
    a = np.random.default_rng(1).integers(-50, 50, size, np.int32)
    _, b = run(s, [A, B], a, np.zeros(size, np.int32))
    np.testing.assert_array_equal(b, np.sort(-a)[::-1] * 10)


def minimum_and_maximum(ins, outs):
    ib = te.IRBuilder()
    A, low, high = map(ib.buffer_ptr, (*ins, *outs))
    low[0] = A[0]
    high[()] = A[0]
    with ib.for_range(1, A.shape[0], name="i") as i:
        low[0] = te.minimum(low[0], A[i])
        high[()] = te.maximum(high[()], A[i])
    return ib.get()


def normalized():
    A = te.placeholder((9,), name="A")
    N = te.compute((9,), lambda i: A[i] + 1.0, name="N")
    low, high = te.extern([(1,), ()], [N], minimum_and_maximum, name="E")
    B = te.compute((3, 9), lambda k, i: (N[i] - low[0]) * te.cast(k + 1, "float32") - high[()], name="B")
    return A, N, low, high, B


def check_normalized(s, A, B):
    a = np.random.default_rng(2).integers(0, 64, 9).astype(np.float32)
    _, b = run(s, [A, B], a, np.zeros((3, 9), np.float32))
    np.testing.assert_array_equal(b, (a - a.min()) * np.arange(1, 4)[:, None] - (a.max() + 1))


def test_an_extern_and_what_it_reads_are_computed_whole_at_a_loop():
    A, N, low, _high, B = normalized()
    s = lw.create_schedule(B)
    k, i = s[B].op.axis
    s[low].compute_at(s[B], k)
    s[N].compute_at(s[B], k)
    s[B].vectorize(s[B].split(i, factor=4)[1])
    s[B].parallel(k)
    assert (
        str(s)
        == """\
# N is computed 3 times: 27 elements in all iterations of k of B, of a tensor of 9
# E is computed 3 times: 3 elements in all iterations of k of B, of a tensor of 1
for k in parallel(3):
    N: float32[9] = allocate('local')
    for i in range(9):
        N[i] = A[i] + 1.0
    E.v0: float32[1] = allocate('local')
    E.v1: float32[] = allocate('local')
    E.v0[0] = N[0]
    E.v1[()] = N[0]
    for i_1 in range(1, 9):
        E.v0[0] = min(E.v0[0], N[i_1])
        E.v1[()] = max(E.v1[()], N[i_1])
    for i_outer in range(3):
        for i_inner in vectorized(4):
            if i_outer * 4 + i_inner < 9:
                B[k, i_outer * 4 + i_inner] = (N[i_outer * 4 + i_inner] - E.v0[0]) * float32(k + 1) - E.v1[()]"""
    )
    check_normalized(s, A, B)


def test_caches_before_and_behind_an_extern():
    A, N, low, high, B = normalized()
    s = lw.create_schedule([B, high])
    C = s.cache_read(N, "local", [low])
    R = s.cache_read(A, "global", [N])
    s[R].compute_at(s[N], s[N].op.axis[0])
    s[C].vectorize(s[C].split(s[C].op.axis[0], factor=3)[1])
    assert C in s[low].op.inputs
    a = np.random.default_rng(3).integers(0, 64, 9).astype(np.float32)
    _, b, _l, h = run(s, [A, B, low, high], a, np.zeros((3, 9), "f"), np.zeros(1, "f"), np.zeros((), "f"))
    np.testing.assert_array_equal(b, (a - a.min()) * np.arange(1, 4)[:, None] - (a.max() + 1))
    assert h == a.max() + 1


def test_cache_write_computes_an_extern_in_memory_of_its_own():
    A = te.placeholder((7,), "int32", name="A")
    S = te.extern((7,), [A], insertion_sort, name="S")
    s = lw.create_schedule(S)
    L = s.cache_write(S, "local")
    (i,) = s[S].op.axis
    s[S].vectorize(s[S].split(i, factor=4)[1])
    assert s[L].op.name == "S.local"
    a = np.array([3, -1, 2, 9, 0, 0, -7], np.int32)
    _, out = run(s, [A, S], a, np.zeros(7, np.int32))
    np.testing.assert_array_equal(out, np.sort(a))


def test_the_default_schedule_leaves_externs_as_they_are():
    A, _N, _low, _high, B = normalized()
    check_normalized(lw.default_schedule(B), A, B)


def test_the_trace_of_a_schedule_with_an_extern_replays():
    _A, N, low, _high, B = normalized()
    s = lw.create_schedule(B)
    s[low].compute_at(s[B], s[B].op.axis[0])
    s.cache_read(N, "local", [low])
    again = lw.create_schedule(B)
    for step in s.trace:
        again.apply(step)
    assert str(again) == str(s)


BOUNDS = {}


def program(body):
    BOUNDS[body.__name__] = body
    return body


@program
def counts_down_its_own_bound(ib, A, B):
    n = ib.allocate("index", (), "n")
    n[()] = 5
    with ib.for_range(0, n[()], name="i") as i:
        n[()] = n[()] - 1
        with ib.if_scope(i < n[()]):
            B[1] = B[1] + 1
    B[2] = te.cast(n[()], "int32")


@program
def moves_its_bound_under_a_condition(ib, A, B):
    n = ib.allocate("index", (1,), "n")
    with ib.for_range(0, 8, name="o") as o:
        n[0] = te.cast(A[o], "index")
        with ib.for_range(0, n[0], name="i") as i, ib.if_scope((i < n[0]) & (i + o < 8)):
            B[i + o] = B[i + o] + 1
            n[0] = n[0] - 1


@program
def changes_its_bound_in_the_main_part_of_the_loop(ib, A, B):
    n = ib.allocate("index", (), "n")
    n[()] = 8
    with ib.for_range(0, n[()], name="k") as k:
        with ib.if_scope(k < 3):
            B[k] = A[k] + B[7]
            n[()] = k
        B[n[()]] = B[n[()]] + 1


@program
def asks_a_condition_again_after_a_store(ib, A, B):
    n = ib.allocate("index", (), "n")
    n[()] = te.cast(A[0], "index")
    with ib.for_range(0, 8, name="k") as k, ib.if_scope(k < n[()]):
        n[()] = n[()] - 2
        with ib.if_scope(k < n[()]):
            B[k] = 1


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_and_conditions_that_stores_change(name):
    def fcompute(ins, outs):
        ib = te.IRBuilder()
        A, B = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 8, name="z") as z:
            B[z] = 0
        BOUNDS[name](ib, A, B)
        return ib.get()

    A = te.placeholder((8,), "int32", name="A")
    B = te.extern((8,), [A], fcompute, name="B")
    for seed in range(4):
        a = np.random.default_rng(seed).integers(0, 8, 8).astype(np.int32)
        as_written = np.zeros(8, np.int32)
        lw.interpret(B.op.func)(a, as_written)
        _, b = run(lw.create_schedule(B), [A, B], a, np.zeros(8, np.int32))
        np.testing.assert_array_equal(b, as_written)
