"""Scans: the time loop is serial, all else of the cell is scheduled as other stages are; compared with numpy."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te


def run(s, args, *arrays, exact=True):
    """The arrays after the lowered nest ran in the interpreter; native code must give the same."""
    native = [a.copy() for a in arrays]
    lw.interpret(lw.lower(s, args, target="x86-64-v3"))(*arrays)
    lw.build(s, args)(*native)
    for a, b in zip(arrays, native, strict=True):
        np.testing.assert_allclose(a, b, rtol=0 if exact else 1e-5, atol=0 if exact else 1e-6)
    return arrays


def whole_numbers(*shape):
    return np.random.default_rng(sum(shape)).integers(-9, 9, shape).astype(np.float32)


def prefix_sum(time, columns):
    """Sums of ever more rows, in a cell of two stages."""
    X = te.placeholder((time, columns), name="X")
    state = te.scan_state((time, columns), name="state")
    first = te.compute((1, columns), lambda t, i: X[0, i], name="first")
    twice = te.compute((time, columns), lambda t, i: state[t - 1, i] * 2.0, name="twice")
    step = te.compute((time, columns), lambda t, i: twice[t, i] - state[t - 1, i] + X[t, i], name="step")
    return X, first, twice, step, te.scan(first, step, state, inputs=[X], name="S")


def test_the_nest_before_and_after_scheduling_the_cell():
    _X, _first, twice, step, S = prefix_sum(5, 20)
    s = lw.create_schedule(S)
    assert (
        str(s)
        == """\
for i in range(20):
    S[0, i] = X[0, i]
for t in range(4):
    twice: float32[1, 20] = allocate('local')
    for i_1 in range(20):
        twice[0, i_1] = S[t, i_1] * 2.0
    for i_2 in range(20):
        S[t + 1, i_2] = twice[0, i_2] - S[t, i_2] + X[t + 1, i_2]"""
    )
    _, i = s[step].op.axis
    outer, inner = s[step].split(i, factor=8)
    s[step].parallel(outer)
    s[step].vectorize(inner)
    s[twice].compute_at(s[step], outer)
    assert (
        str(s)
        == """\
for i in range(20):
    S[0, i] = X[0, i]
for t in range(4):
    for i_outer in parallel(3):
        twice: float32[1, 8] = allocate('local')
        for i_1 in range(8):
            if i_outer * 8 + i_1 < 20:
                twice[0, i_1] = S[t, i_outer * 8 + i_1] * 2.0
        for i_inner in vectorized(8):
            if i_outer * 8 + i_inner < 20:
                S[t + 1, i_outer * 8 + i_inner] = twice[0, i_inner] - S[t, i_outer * 8 + i_inner] + X[t + 1, i_outer * 8 + i_inner]"""  # noqa: E501
    )


def unscheduled(s, first, twice, step):
    pass


def vector_cell(s, first, twice, step):
    outer, inner = s[step].split(s[step].op.axis[1], factor=8)
    s[step].parallel(outer)
    s[step].vectorize(inner)
    s[twice].compute_at(s[step], outer)
    s[first].vectorize(s[first].split(s[first].op.axis[1], factor=4)[1])


def inlined_cell(s, first, twice, step):
    s[twice].compute_inline()
    fused = s[step].fuse(*s[step].op.axis)
    s[step].vectorize(s[step].split(fused, factor=3)[1])


def cached_cell(s, first, twice, step):
    L = s.cache_write(step, "local")
    X = s[first].op.inputs[0]
    R = s.cache_read(X, "local", [L])
    s[R].compute_at(s[L], s[L].op.axis[0])
    outer, _ = s[step].split(s[step].op.axis[1], factor=4)
    s[L].compute_at(s[step], outer)
    s[twice].compute_at(s[L], s[L].op.axis[1])


def reordered_cell(s, first, twice, step):
    s[step].reorder(*reversed(s[step].op.axis))
    s[twice].reorder(*reversed(s[twice].op.axis))
    s[twice].parallel(s[twice].op.axis[1])


SCHEDULES = [unscheduled, vector_cell, inlined_cell, cached_cell, reordered_cell]
SIZES = [(5, 20), (1, 7), (0, 3), (4, 0), (2, 1), (3, 8)]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("sizes", [(5, 20), (1, 7), (4, 0)])
def test_prefix_sums(schedule, sizes):
    X, first, twice, step, S = prefix_sum(*sizes)
    s = lw.create_schedule(S)
    schedule(s, first, twice, step)
    x, out = whole_numbers(*sizes), np.full(sizes, np.nan, np.float32)
    lw.interpret(lw.lower(s, [X, S], target="x86-64-v3"))(x, out)
    np.testing.assert_array_equal(out, x.cumsum(axis=0))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_prefix_sums_of_any_size(schedule):
    X, first, twice, step, S = prefix_sum(te.var("T"), te.var("n"))
    s = lw.create_schedule(S)
    schedule(s, first, twice, step)
    kernel = lw.build(s, [X, S])
    for run_it in (kernel, lw.interpret(lw.lower(s, [X, S], target="x86-64-v3"))):
        for sizes in SIZES:
            x, out = whole_numbers(*sizes), np.full(sizes, np.nan, np.float32)
            run_it(x, out)
            np.testing.assert_array_equal(out, x.cumsum(axis=0))


def test_the_time_loop_can_be_unrolled():
    X, _first, _twice, _step, S = prefix_sum(4, 5)
    s = lw.create_schedule(S)
    s[S].unroll(S.op.scan_axis)
    assert "for t in unrolled(3):" in str(s)
    x = whole_numbers(4, 5)
    *_, out = run(s, [X, S], x, np.zeros_like(x))
    np.testing.assert_array_equal(out, x.cumsum(axis=0))


@pytest.mark.parametrize("vectorized", [False, True])
def test_a_recurrent_cell_with_a_matrix_product(vectorized):
    T, n = te.var("T"), 16
    X, W = te.placeholder((T, n), name="X"), te.placeholder((n, n), name="W")
    h = te.scan_state((T, n), name="h")
    h0 = te.compute((1, n), lambda t, i: te.tanh(X[t, i]), name="h0")
    r = te.reduce_axis((0, n), name="r")
    product = te.compute((T, n), lambda t, i: te.sum(h[t - 1, r] * W[r, i], axis=r), name="product")
    h1 = te.compute((T, n), lambda t, i: te.tanh(product[t, i] + X[t, i]), name="h1")
    H = te.scan(h0, h1, h, inputs=[X, W], name="H")
    s = lw.create_schedule(H)
    if vectorized:
        t, i = s[product].op.axis
        outer, inner = s[product].split(i, factor=8)
        s[product].reorder(t, outer, s[product].op.reduce_axis[0], inner)
        s[product].vectorize(inner)
        s[product].parallel(outer)
        s[h1].vectorize(s[h1].split(h1.op.axis[1], factor=8)[1])
    rng = np.random.default_rng(5)
    x, w = rng.standard_normal((6, n), np.float32), rng.standard_normal((n, n), np.float32) * 0.2
    *_, out = run(s, [X, W, H], x, w, np.zeros((6, n), np.float32), exact=False)
    expected = np.tanh(x)
    for step in range(1, 6):
        expected[step] = np.tanh(expected[step - 1] @ w + x[step])
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


def test_an_update_may_be_a_reduction():
    T, n = te.var("T"), te.var("n")
    W = te.placeholder((n, n), name="W")
    v = te.scan_state((T, n), name="v")
    v0 = te.compute((1, n), lambda t, i: te.cast(i + 1, "float32"), name="v0")
    r = te.reduce_axis((0, n), name="r")
    v1 = te.compute((T, n), lambda t, i: te.sum(W[i, r] * v[t - 1, r], axis=r), name="v1")
    P = te.scan(v0, v1, v, name="powers")
    s = lw.create_schedule(P)
    outer, inner = s[v1].split(v1.op.axis[1], factor=4)
    s[v1].reorder(outer, v1.op.reduce_axis[0], inner)
    s[v1].vectorize(inner)
    w = np.random.default_rng(6).integers(-1, 2, (5, 5)).astype(np.float32)
    *_, out = run(s, [W, P], w, np.zeros((4, 5), np.float32))
    expected = [np.arange(1, 6, dtype=np.float32)]
    for _ in range(3):
        expected.append(w @ expected[-1])
    np.testing.assert_array_equal(out, expected)


def lstm(T, n):
    """The states c and h; of the gates three are computed at once."""
    X = te.placeholder((T, 4, n), name="X")
    U = te.placeholder((4, n, n), name="U")
    c, h = te.scan_state((T, n), name="c"), te.scan_state((T, n), name="h")
    zero = [te.compute((1, n), lambda t, i: te.const(0.0, "float32"), name=x) for x in ("c0", "h0")]
    r = te.reduce_axis((0, n), name="r")
    product = te.compute((T, 4, n), lambda t, g, i: te.sum(h[t - 1, r] * U[g, r, i], axis=r), name="product")
    gates = te.compute((T, 4, n), lambda t, g, i: te.sigmoid(product[t, g, i] + X[t, g, i]), name="gates")
    c1 = te.compute((T, n), lambda t, i: gates[t, 0, i] * c[t - 1, i] + gates[t, 1, i] * gates[t, 2, i], name="c1")
    h1 = te.compute((T, n), lambda t, i: gates[t, 3, i] * te.tanh(c1[t, i]), name="h1")
    C, H = te.scan(zero, [c1, h1], [c, h], inputs=[X, U], name="lstm")
    return X, U, product, gates, c1, h1, C, H


def lstm_in_numpy(x, u):
    steps, _, n = x.shape
    c, h = np.zeros((steps, n), np.float32), np.zeros((steps, n), np.float32)
    for t in range(1, steps):
        g = 1 / (1 + np.exp(-(np.einsum("r,gri->gi", h[t - 1], u) + x[t])))
        c[t] = g[0] * c[t - 1] + g[1] * g[2]
        h[t] = g[3] * np.tanh(c[t])
    return c, h


@pytest.mark.parametrize(("steps", "fused"), [(4, False), (1, True), (5, True)])
def test_two_states(steps, fused):
    X, U, product, gates, c1, h1, C, H = lstm(te.var("T"), 8)
    s = lw.create_schedule([C, H])
    if fused:
        s[h1].vectorize(s[h1].split(h1.op.axis[1], factor=4)[1])
        s[gates].compute_inline()
        t, g, i = product.op.axis
        s[product].reorder(t, g, product.op.reduce_axis[0], i)
        s[product].vectorize(i)
        s[product].parallel(g)
        s[c1].unroll(c1.op.axis[1])
    rng = np.random.default_rng(7)
    x, u = rng.standard_normal((steps, 4, 8), np.float32), rng.standard_normal((4, 8, 8), np.float32)
    empty = np.zeros((steps, 8), np.float32)
    *_, c, h = run(s, [X, U, C, H], x, u, empty, empty.copy(), exact=False)
    for found, expected in zip((c, h), lstm_in_numpy(x, u), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_more_first_steps_than_time():
    T = te.var("T")
    f = te.scan_state((T,), "int64", name="f")
    first = te.compute((3,), lambda t: te.cast(t, "int64"), name="first")
    update = te.compute((T,), lambda t: f[t - 1] + f[t - 3], name="update")
    F = te.scan(first, update, f, name="F")
    kernel = lw.build(lw.create_schedule(F), [F])
    expected = [0, 1, 2]
    for _ in range(6):
        expected.append(expected[-1] + expected[-3])
    for steps in (0, 1, 2, 3, 9):
        out = np.full(steps, -1)
        kernel(out)
        np.testing.assert_array_equal(out, expected[:steps])


def test_a_scan_and_what_it_reads_are_computed_at_a_loop():
    A = te.placeholder((4, 6), name="A")
    N = te.compute((6,), lambda t: A[0, t] + 1.0, name="N")
    state = te.scan_state((6,), name="state")
    first = te.compute((1,), lambda t: N[t], name="first")
    step = te.compute((6,), lambda t: te.maximum(state[t - 1], N[t]), name="step")
    S = te.scan(first, step, state, name="S")
    B = te.compute((4, 6), lambda k, t: A[k, t] - S[5 - t], name="B")
    s = lw.create_schedule(B)
    s[S].compute_at(s[B], B.op.axis[0])
    s[N].compute_at(s[B], B.op.axis[0])
    s[B].parallel(B.op.axis[0])
    assert (
        str(s)
        == """\
# N is computed 4 times: 24 elements in all iterations of k of B, of a tensor of 6
# S is computed 4 times: 24 elements in all iterations of k of B, of a tensor of 6
for k in parallel(4):
    N: float32[6] = allocate('local')
    for t in range(6):
        N[t] = A[0, t] + 1.0
    S: float32[6] = allocate('local')
    S[0] = N[0]
    for t_1 in range(5):
        S[t_1 + 1] = max(S[t_1], N[t_1 + 1])
    for t_2 in range(6):
        B[k, t_2] = A[k, t_2] - S[5 - t_2]"""
    )
    a = whole_numbers(4, 6)
    _, b = run(s, [A, B], a, np.zeros_like(a))
    np.testing.assert_array_equal(b, a - np.maximum.accumulate(a[0] + 1)[::-1])


def test_two_scans_follow_each_other():
    X, *_, S = prefix_sum(4, 3)
    state = te.scan_state((4, 3), name="other")
    first = te.compute((2, 3), lambda t, i: S[t, i], name="other_first")
    step = te.compute((4, 3), lambda t, i: state[t - 2, i] + S[t, i], name="other_step")
    R = te.scan(first, step, state, name="R")
    x = whole_numbers(4, 3)
    *_, out = run(lw.default_schedule(R), [X, R], x, np.zeros_like(x))
    s = x.cumsum(axis=0)
    np.testing.assert_array_equal(out, [s[0], s[1], s[0] + s[2], s[1] + s[3]])


@pytest.mark.parametrize("columns", [1, 12])
def test_the_default_schedule_of_a_scan(columns):
    X, *_, S = prefix_sum(te.var("T"), columns)
    x = whole_numbers(5, columns)
    *_, out = run(lw.default_schedule(S), [X, S], x, np.zeros_like(x))
    np.testing.assert_array_equal(out, x.cumsum(axis=0))


def test_the_default_schedule_of_a_cell_with_products():
    X, U, *_, C, H = lstm(te.var("T"), 24)
    s = lw.default_schedule([C, H])
    rng = np.random.default_rng(9)
    x, u = rng.standard_normal((3, 4, 24), np.float32), rng.standard_normal((4, 24, 24), np.float32) * 0.2
    *_, c, h = run(s, [X, U, C, H], x, u, np.zeros((3, 24), np.float32), np.zeros((3, 24), np.float32), exact=False)
    for found, expected in zip((c, h), lstm_in_numpy(x, u), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_an_update_that_is_a_reduction_can_be_factored():
    W = te.placeholder((6, 8), name="W")
    v = te.scan_state((4, 8), name="v")
    v0 = te.compute((1, 8), lambda t, i: te.cast(i + 1, "float32"), name="v0")
    r = te.reduce_axis((0, 6), name="r")
    v1 = te.compute((4, 8), lambda t, i: te.sum(W[r, i] * v[t - 1, r], axis=r), name="v1")
    P = te.scan(v0, v1, v, name="P")
    s = lw.create_schedule(P)
    _, inner = s[v1].split(r, factor=3)
    F = s.rfactor(v1, inner)
    s[F].vectorize(s[F].loops[-2])
    assert "v1.rf: float32[3, 1, 8]" in str(s)
    w = np.random.default_rng(8).integers(-1, 2, (6, 8)).astype(np.float32)
    *_, out = run(s, [W, P], w, np.zeros((4, 8), np.float32))
    expected = [np.arange(1, 9, dtype=np.float32)]
    for _ in range(3):
        expected.append(expected[-1][:6] @ w)
    np.testing.assert_array_equal(out, expected)


def test_the_trace_of_a_scheduled_scan_replays():
    _X, first, twice, step, S = prefix_sum(5, 20)
    s = lw.create_schedule(S)
    cached_cell(s, first, twice, step)
    again = lw.create_schedule(S)
    for done in s.trace:
        again.apply(done)
    assert str(again) == str(s)


def test_each_operation_has_the_loops_of_its_stage_as_axes():
    X, first, _twice, step, S = prefix_sum(5, 20)
    s = lw.create_schedule(S)
    for tensor in (X, first, step, S):
        axes = (*tensor.op.axis, *tensor.op.reduce_axis)
        assert [axis.name for axis in axes] == [loop.name for loop in s[tensor].loops]
    assert S.op.axis == (S.op.scan_axis,)
    assert X.op.axis == ()


def test_the_steps_that_there_are_so_far_are_not_copied_with_the_nearest_one_behind_them():
    v = te.scan_state((6, 4), name="v")
    first = te.compute((1, 4), lambda t, i: te.cast(i, "float32"), name="first")
    twice = te.compute((6, 4), lambda t, i: v[t - 1, i] * 2, name="twice")
    step = te.compute((6, 4), lambda t, i: twice[t, i] + 1, name="step")
    s = lw.create_schedule(te.scan(first, step, v, name="grown"))
    with pytest.raises(lw.ScheduleError, match=r"cannot cache_read twice with pad='edge': it depends on the state"):
        s.cache_read(twice, "local", [step], pad="edge")
    s.cache_read(twice, "local", [step], pad=0)
