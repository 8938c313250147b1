"""A consumer in its producer's nest computes the same, whatever the sizes, the tails and the chain of stages after it.

Results are compared with numpy; the interpreter also finds reads of what an iteration has not finished.
"""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.lowering.pipeline import realized_function

TAILS = ["guard", "mask", "peel", "shift"]


def dense(n, m, k=3):
    """``max(A B + bias, 0)`` in three stages."""
    A, B = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    bias = te.placeholder((m,), name="bias")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    D = te.compute((n, m), lambda i, j: C[i, j] + bias[j], name="D")
    E = te.compute((n, m), lambda i, j: te.maximum(D[i, j], 0.0), name="E")
    return [A, B, bias], C, D, E


def run_dense(s, args, *sizes, k=3, lowered=True):
    """What the outputs are at each of the sizes, one after the other, and what they should be.

    Before it is lowered a nest has new memory in each iteration, so that the interpreter sees what is left from others.
    """
    func = lw.lower(s, args, target="x86-64-v3") if lowered else realized_function(s, args)
    found, expected = [], []
    rng = np.random.default_rng(5)
    for n, m in sizes:
        a, b, bias = (rng.standard_normal(shape, np.float32) for shape in ((n, k), (k, m), (m,)))
        outputs = [np.full((n, m), np.nan, np.float32) for _ in args[3:]]
        lw.interpret(func)(a, b, bias, *outputs)
        found += outputs
        expected += [a @ b, a @ b + bias, np.maximum(a @ b + bias, 0)][-len(outputs) :]
    return found, expected


def assert_all_close(found, expected):
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("shape", [(60, 16), (61, 7), (te.var("n"), te.var("m"))], ids=["60x16", "61x7", "symbolic"])
def test_a_tile_of_a_product_gets_its_epilogue_in_the_tile(shape, tail):
    inputs, C, D, E = dense(*shape)
    s = lw.create_schedule(E)
    _, jo, _, ji = s[C].tile(*C.op.axis, 8, 8, tail=tail)
    s[C].vectorize(ji)
    s[D].reverse_compute_at(s[C], jo)
    s[E].reverse_compute_at(s[D], D.op.axis[0])
    s[E].vectorize(s[E].split(E.op.axis[1], factor=8, tail=tail)[1])
    sizes = [shape] if isinstance(shape[0], int) else [(60, 16), (8, 8), (1, 1), (7, 61), (0, 5), (5, 0)]
    assert_all_close(*run_dense(s, [*inputs, E], *sizes))


def test_what_only_the_loop_reads_needs_memory_for_one_tile():
    inputs, C, D, E = dense(64, 32)
    s = lw.create_schedule(E)
    io, jo, *_ = s[C].tile(*C.op.axis, 8, 16)
    s[D].reverse_compute_at(s[C], jo)
    assert "C: float32[8, 16]" in str(s)
    assert "D: float32[64, 32]" in str(s)
    s[E].reverse_compute_at(s[C], io)
    assert "D: float32[8, 32]" in str(s)
    s[E].reverse_compute_at(s[C], jo)
    assert "D: float32[8, 16]" in str(s)
    s[E].reverse_compute_at(s[D], D.op.axis[0])
    assert "D: float32[1, 16]" in str(s)
    assert_all_close(*run_dense(s, [*inputs, E], (64, 32)))


def test_several_outputs_are_written_whole():
    inputs, C, D, E = dense(13, 11)
    s = lw.create_schedule([C, D, E])
    _, jo, *_ = s[C].tile(*C.op.axis, 4, 4)
    s[D].reverse_compute_at(s[C], jo)
    s[E].reverse_compute_at(s[C], jo)
    assert "allocate" not in str(s)
    assert_all_close(*run_dense(s, [*inputs, C, D, E], (13, 11)))


@pytest.mark.parametrize("parallel", [False, True])
def test_two_consumers_in_one_loop(parallel):
    inputs, C, D, _ = dense(13, 11)
    F = te.compute(C.shape, lambda i, j: C[i, j] * 2.0, name="F")
    G = te.compute(C.shape[::-1], lambda j, i: D[i, j] - C[i, j], name="G")
    s = lw.create_schedule([F, G])
    io, jo, *_ = s[C].tile(*C.op.axis, 4, 4)
    if parallel:
        s[C].parallel(io)
    s[D].compute_inline()
    s[G].reverse_compute_at(s[C], jo)
    s[F].reverse_compute_at(s[C], jo)
    rng = np.random.default_rng(5)
    a, b, bias = (rng.standard_normal(shape, np.float32) for shape in ((13, 3), (3, 11), (11,)))
    f, g = np.empty((13, 11), np.float32), np.empty((11, 13), np.float32)
    lw.interpret(lw.lower(s, [*inputs, F, G]))(a, b, bias, f, g)
    np.testing.assert_allclose(f, a @ b * 2, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(g, np.broadcast_to(bias[:, None], g.shape), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rows", [12, 13, 1])
def test_rows_of_softmax_after_the_rows_of_a_product(rows):
    """The dimension that each iteration finishes as a whole may be reduced over, and read at any place."""
    n, m = te.var("n"), 9
    inputs, C, _, _ = dense(n, m)
    k, q = te.reduce_axis((0, m), name="k"), te.reduce_axis((0, m), name="q")
    peak = te.compute((n,), lambda i: te.max(C[i, k], axis=k), name="peak")
    e = te.compute((n, m), lambda i, j: te.exp(C[i, m - 1 - j] - peak[i]), name="e")
    total = te.compute((n,), lambda i: te.sum(e[i, q], axis=q), name="total")
    Y = te.compute((n, m), lambda i, j: e[i, j] / total[i], name="Y")
    s = lw.create_schedule(Y)
    io, _ = s[C].split(C.op.axis[0], factor=4)
    for tensor in (peak, e, total, Y):
        s[tensor].reverse_compute_at(s[C], io)
    for buffer in ("C: float32[4, 9]", "peak: float32[4]", "e: float32[4, 9]", "total: float32[4]"):
        assert f"{buffer} = allocate('local')" in str(s)
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((rows, 3), np.float32), rng.standard_normal((3, m), np.float32)
    y = np.full((rows, m), np.nan, np.float32)
    lw.interpret(lw.lower(s, [*inputs[:2], Y]))(a, b, y)
    x = np.exp(a @ b)[:, ::-1]
    np.testing.assert_allclose(y, x / x.sum(1, keepdims=True), rtol=1e-4)


@pytest.mark.parametrize("order", ["forward", "inner split", "fused"])
def test_tiles_of_tiles_end_where_the_outer_tile_ends(order):
    """16 rows in tiles of 5: the fourth tile has one row, and the next rows are not finished yet."""
    inputs, C, D, E = dense(60, 4)
    s = lw.create_schedule(E)
    i, j = C.op.axis
    io, ii = s[C].split(i, factor=16)
    tile, row = s[C].split(ii, factor=5)
    if order == "inner split":
        s[C].split(row, factor=2)
    if order == "fused":
        s[C].fuse(io, tile)
        s[C].fuse(row, j)
        tile = s[C].loops[0]
    s[D].reverse_compute_at(s[C], tile)
    s[E].reverse_compute_at(s[C], tile)
    s[E].fuse(*E.op.axis)
    assert "C: float32[5, 4]" in str(s)
    assert_all_close(*run_dense(s, [*inputs, E], (60, 4), lowered=False))


def test_a_tile_ends_where_a_larger_factor_is_cut_off():
    """Of the 8 iterations that 5 rows are made of, 5 count: the second tile of 3 has two rows."""
    inputs, C, D, E = dense(20, 4)
    s = lw.create_schedule(E)
    _, rows = s[C].split(C.op.axis[0], factor=5)
    _, padded = s[C].split(rows, factor=8)
    tile, _ = s[C].split(padded, factor=3)
    s[D].compute_inline()
    s[E].reverse_compute_at(s[C], tile)
    assert "C: float32[3, 4]" in str(s)
    assert_all_close(*run_dense(s, [*inputs, E], (20, 4), lowered=False))


def test_a_stage_with_more_axes_is_computed_whole_along_them():
    A = te.placeholder((10,), "int32", name="A")
    P = te.compute((10,), lambda i: A[i] * 3, name="P")
    B = te.compute((4, 8), lambda b, i: P[i + 2] + te.cast(b, "int32"), name="B")
    s = lw.create_schedule(B)
    outer, _ = s[P].split(P.op.axis[0], factor=4)
    s[B].reverse_compute_at(s[P], outer)
    s[P].parallel(outer)
    a, b = np.arange(10, dtype=np.int32), np.zeros((4, 8), np.int32)
    lw.interpret(lw.lower(s, [A, B]))(a, b)
    np.testing.assert_array_equal(b, a[2:] * 3 + np.arange(4)[:, None])


def test_stages_may_be_computed_on_demand_in_the_consumers_loops():
    inputs, C, D, E = dense(13, 11)
    s = lw.create_schedule(E)
    _, jo, *_ = s[C].tile(*C.op.axis, 4, 4)
    copy = s.cache_read(inputs[2], "local", [D])
    s[D].compute_inline()
    s[E].reverse_compute_at(s[C], jo)
    s[copy].compute_at(s[E], E.op.axis[0])
    assert "bias.local: float32[4] = allocate('local')" in str(s)
    assert_all_close(*run_dense(s, [*inputs, E], (13, 11)))


def test_what_a_stage_reads_besides_runs_before_the_nest_that_it_goes_into():
    """``W`` comes later in the order of computation than the product, and has to be ready when its first tile is."""
    inputs, C, _, _ = dense(13, 11)
    V = te.placeholder((11,), name="V")
    W = te.compute((11,), lambda j: V[j] * V[j], name="W")
    D = te.compute(C.shape, lambda i, j: C[i, j] + W[j], name="D")
    s = lw.create_schedule(D)
    _, jo, *_ = s[C].tile(*C.op.axis, 4, 4)
    s[D].reverse_compute_at(s[C], jo)
    rng = np.random.default_rng(5)
    a, b, v = (rng.standard_normal(shape, np.float32) for shape in ((13, 3), (3, 11), (11,)))
    d = np.full((13, 11), np.nan, np.float32)
    lw.interpret(lw.lower(s, [*inputs[:2], V, D]))(a, b, v, d)
    np.testing.assert_allclose(d, a @ b + v * v, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("again", ["compute_root", "compute_at"])
def test_a_placement_is_taken_back(again):
    inputs, C, D, E = dense(13, 11)
    s = lw.create_schedule(E)
    _, jo, *_ = s[C].tile(*C.op.axis, 4, 4)
    before = str(s)
    s[D].reverse_compute_at(s[C], jo)
    if again == "compute_root":
        s[D].compute_root()
        assert str(s) == before
    else:
        s[D].compute_at(s[E], E.op.axis[0])
    assert_all_close(*run_dense(s, [*inputs, E], (13, 11)))


def test_epilogues_in_native_code():
    inputs, C, D, E = dense(61, 37, 5)
    s = lw.create_schedule(E)
    io, jo, ii, ji = s[C].tile(*C.op.axis, 4, 8)
    s[C].reorder(io, jo, *s[C].op.reduce_axis, ii, ji)
    s[C].vectorize(ji)
    s[C].unroll(ii)
    s[C].parallel(io)
    s[D].compute_inline()
    s[E].reverse_compute_at(s[C], jo)
    s[E].vectorize(E.op.axis[1])
    s[E].unroll(E.op.axis[0])
    kernel = lw.build(s, [*inputs, E])
    rng = np.random.default_rng(5)
    a, b, bias = (rng.standard_normal(shape, np.float32) for shape in ((61, 5), (5, 37), (37,)))
    e = np.full((61, 37), np.nan, np.float32)
    kernel(a, b, bias, e)
    np.testing.assert_allclose(e, np.maximum(a @ b + bias, 0), rtol=1e-5, atol=1e-5)
