"""Places of stages together, for every size that a symbolic dimension may have."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te

SIZES = [(0, 3, 4), (3, 0, 4), (1, 1, 1), (7, 5, 13), (8, 4, 16), (2, 9, 31)]


def interpreted(s, args, *arrays):
    lw.interpret(lw.lower(s, args, target="x86-64-v3"))(*arrays)
    return arrays[-1]


def all_at_once(s, A, C, D, E):
    """The product in a tile of its own, rows of A beside it, the epilogue behind it."""
    L = s.cache_write(C, "local")
    _, jo, *_ = s[C].tile(*C.op.axis, 3, 4)
    s[L].compute_at(s[C], jo)
    ro, ri = s[L].split(s[L].op.reduce_axis[0], factor=2)
    s[L].reorder(ro, ri, *s[L].op.axis)
    copy = s.cache_read(A, "local", [L])
    s[copy].compute_at(s[L], ro)
    s[D].compute_inline()
    s[E].reverse_compute_at(s[C], jo)


def chain_of_tiles(s, A, C, D, E):
    """Each stage in the loops of the one that reads it."""
    io, _ = s[E].split(E.op.axis[0], factor=3)
    s[D].compute_at(s[E], io)
    s[C].compute_at(s[D], D.op.axis[0])
    copy = s.cache_read(A, "local", [C])
    s[copy].compute_at(s[C], C.op.axis[0])


def there_and_back(s, A, C, D, E):
    """Placements are taken back, and other ones take their place."""
    s[D].compute_inline()
    s[C].compute_at(s[E], E.op.axis[1])
    s[C].compute_root()
    s[D].compute_root()
    s[D].reverse_compute_at(s[C], C.op.axis[0])
    s[E].reverse_compute_at(s[C], C.op.axis[0])
    s[D].compute_at(s[E], E.op.axis[0])


@pytest.mark.parametrize("schedule", [all_at_once, chain_of_tiles, there_and_back])
def test_symbolic_sizes(schedule):
    n, k, m = te.var("n"), te.var("k"), te.var("m")
    A, B, bias = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B"), te.placeholder((m,), name="bias")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    D = te.compute((n, m), lambda i, j: C[i, j] + bias[j], name="D")
    E = te.compute((n, m), lambda i, j: te.maximum(D[i, j], 0.0), name="E")
    s = lw.create_schedule(E)
    schedule(s, A, C, D, E)
    rng = np.random.default_rng(0)
    for rows, terms, columns in SIZES:
        a, b, c = (rng.standard_normal(x, np.float32) for x in ((rows, terms), (terms, columns), (columns,)))
        e = interpreted(s, [A, B, bias, E], a, b, c, np.full((rows, columns), np.nan, np.float32))
        np.testing.assert_allclose(e, np.maximum(a @ b + c, 0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("place", ["inline", "at", "after", "cache"])
def test_stages_of_several_outputs(place):
    n = te.var("n")
    A = te.placeholder((n,), "int32", name="A")
    P, Q = te.compute((n,), lambda i: (A[i] + 1, A[i] * 2), name="PQ")
    B = te.compute((n,), lambda i: P[i] - Q[i], name="B")
    s = lw.create_schedule(B)
    match place:
        case "inline":
            s[P].compute_inline()
        case "at":
            s[Q].compute_at(s[B], s[B].split(B.op.axis[0], factor=4)[0])
        case "after":
            s[B].reverse_compute_at(s[P], s[P].split(P.op.axis[0], factor=4)[0])
        case "cache":
            assert s.cache_write(Q, "local").index == 1
            s["PQ.local"].compute_at(s[Q], s[Q].op.axis[0])
    for size in (0, 1, 4, 7):
        a = np.arange(size, dtype=np.int32)
        np.testing.assert_array_equal(interpreted(s, [A, B], a, np.zeros_like(a)), 1 - a)


def test_rows_of_argmax_feed_a_stage_in_their_loop():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    value, index = te.compute((n,), lambda i: te.argmax(A[i, k], axis=k), name="best")
    Y = te.compute((n,), lambda i: value[i] + te.cast(index[i], "float32"), name="Y")
    s = lw.create_schedule(Y)
    s[Y].reverse_compute_at(s[value], s[value].split(value.op.axis[0], factor=4)[0])
    a = np.random.default_rng(1).standard_normal((7, 5), np.float32)
    y = interpreted(s, [A, Y], a, np.full(7, np.nan, np.float32))
    np.testing.assert_allclose(y, a.max(1) + a.argmax(1), rtol=1e-6)


def test_a_copy_may_be_made_for_a_reader_that_is_placed_already():
    A = te.placeholder((6, 8), "int32", name="A")
    B = te.compute((6, 8), lambda i, j: A[i, j] + 1, name="B")
    C = te.compute((6, 8), lambda i, j: B[i, j] * A[i, j], name="C")
    s = lw.create_schedule(C)
    s[B].compute_at(s[C], C.op.axis[0])
    copy = s.cache_read(A, "local", [B])
    s[copy].compute_at(s[B], B.op.axis[1])
    a = np.arange(48, dtype=np.int32).reshape(6, 8)
    np.testing.assert_array_equal(interpreted(s, [A, C], a, np.zeros_like(a)), (a + 1) * a)
