"""rfactor: a reduction loop becomes an axis of a stage of its own; results stay what numpy says."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te


def interpreted(s, args, arrays):
    lw.interpret(lw.lower(s, args, target="x86-64-v3"))(*arrays)


def row_sums(n, m, kind="float32", **options):
    A = te.placeholder((n, m), kind, name="A")
    r = te.reduce_axis((0, m), name="r")
    C = te.compute((n,), lambda i: te.sum(A[i, r], axis=r, **options), name="C")
    return A, r, C


def whole_numbers(shape, kind="float32", seed=0):
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(kind)


BEFORE = """\
for i in range(3):
    C[i] = 0.0
    for r_outer in range(2):
        for r_inner in range(4):
            C[i] = C[i] + A[i, r_outer * 4 + r_inner]"""

AFTER = """\
C.rf: float32[4, 3] = allocate('local')
for r_inner in range(4):
    for i in range(3):
        C.rf[r_inner, i] = 0.0
        for r_outer in range(2):
            C.rf[r_inner, i] = C.rf[r_inner, i] + A[i, r_outer * 4 + r_inner]
for i_1 in range(3):
    C[i_1] = 0.0
    for r_inner_1 in range(4):
        C[i_1] = C[i_1] + C.rf[r_inner_1, i_1]"""


def test_rfactor_before_and_after():
    _, r, C = row_sums(3, 8)
    s = lw.create_schedule(C)
    _, inner = s[C].split(r, factor=4)
    assert str(s) == BEFORE
    s.rfactor(C, inner)
    assert str(s) == AFTER


def test_partial_sums_of_a_tail_leave_out_what_is_beyond_it():
    _, r, C = row_sums(1, 7)
    s = lw.create_schedule(C)
    outer, _ = s[C].split(r, factor=4)
    s.rfactor(C, outer, factor_axis=-1)
    assert "C.rf: float32[1, 2]" in str(s)
    assert "if r_outer * 4 + r_inner < 7:" in str(s)


@pytest.mark.parametrize("m", [0, 1, 7, 8, 13, 64])
@pytest.mark.parametrize("factored", ["outer", "inner", "whole"])
@pytest.mark.parametrize("symbolic", [False, True])
def test_sums_over_any_part_of_the_loop(m, factored, symbolic):
    A, r, C = row_sums(*((te.var("n"), te.var("m")) if symbolic else (3, m)))
    s = lw.create_schedule(C)
    if factored == "whole":
        C_rf = s.rfactor(C, r)
    else:
        outer, inner = s[C].split(r, factor=8)
        C_rf = s.rfactor(C, outer if factored == "outer" else inner)
    if factored == "inner":
        s[C_rf].vectorize(s[C_rf].op.axis[0])
    else:
        s[C_rf].parallel(s[C_rf].op.axis[0])
    a, c = whole_numbers((3, m)), np.full(3, 77, np.float32)
    interpreted(s, [A, C], [a, c])
    np.testing.assert_array_equal(c, a.sum(axis=1))


@pytest.mark.parametrize("m", [0, 5, 16])
def test_a_spatial_split_before_rfactor(m):
    A, r, C = row_sums(10, m)
    s = lw.create_schedule(C)
    io, ii = s[C].split(C.op.axis[0], factor=4)
    s[C].parallel(io)
    _, ri = s[C].split(r, factor=4)
    C_rf = s.rfactor(C, ri)
    assert [loop.name for loop in s[C].loops] == ["i_outer", "i_inner", "r_inner"]
    lane, i = s[C_rf].op.axis
    s[C_rf].reorder(i, *s[C_rf].op.reduce_axis, lane)
    s[C_rf].vectorize(lane)
    s[C_rf].compute_at(s[C], ii)
    a, c = whole_numbers((10, m)), np.full(10, 77, np.float32)
    interpreted(s, [A, C], [a, c])
    np.testing.assert_array_equal(c, a.sum(axis=1))


def test_fused_and_reordered_loops_of_several_axes_which_begin_anywhere():
    A = te.placeholder((6, 9, 11), "int32", name="A")
    p, q = te.reduce_axis((2, 9), name="p"), te.reduce_axis((3, 11), name="q")
    C = te.compute((6,), lambda i: te.sum(A[i, p, q], axis=[p, q], where=(p.var + q) % 3 != 0), name="C")
    s = lw.create_schedule(C)
    fused = s[C].fuse(p, q)
    _, inner = s[C].split(fused, nparts=5)
    io, ii = s[C].split(inner, factor=4)
    s[C].reorder(ii, io)
    C_rf = s.rfactor(C, ii, factor_axis=1)
    s[C_rf].vectorize(s[C_rf].op.axis[1])
    a, c = whole_numbers((6, 9, 11), "int32"), np.zeros(6, np.int32)
    interpreted(s, [A, C], [a, c])
    counts = np.add.outer(np.arange(2, 9), np.arange(3, 11)) % 3 != 0
    np.testing.assert_array_equal(c, (a[:, 2:, 3:] * counts).sum(axis=(1, 2)))


def test_a_condition_that_reads_memory_is_not_evaluated_beyond_the_tail():
    A = te.placeholder((13,), name="A")
    r = te.reduce_axis((0, 13), name="r")
    C = te.compute((), lambda: te.sum(A[r], axis=r, where=A[r] > 0.0), name="C")
    s = lw.create_schedule(C)
    _, inner = s[C].split(r, factor=4)
    C_rf = s.rfactor(C, inner)
    a, c = whole_numbers(13), np.zeros((), np.float32)
    interpreted(s, [A, C], [a, c])
    assert c == a[a > 0].sum()
    s[C_rf].vectorize(s[C_rf].op.axis[0])
    interpreted(s, [A, C], [a, c])
    assert c == a[a > 0].sum()


def test_where_no_loop_is_left_the_stage_holds_the_terms_or_the_identity():
    A, r, C = row_sums(2, 5, where=None)
    s = lw.create_schedule(C)
    C_rf = s.rfactor(C, r)
    assert "C.rf[r, i] = A[i, r]" in str(s)
    s[C_rf].compute_inline()
    a, c = whole_numbers((2, 5)), np.zeros(2, np.float32)
    interpreted(s, [A, C], [a, c])
    np.testing.assert_array_equal(c, a.sum(axis=1))
    B = te.compute((2,), lambda i: te.max(A[i, r], axis=r, where=A[i, r] < 0.0), name="B")
    s = lw.create_schedule(B)
    s.rfactor(B, r)
    interpreted(s, [A, B], [a, c])
    np.testing.assert_array_equal(c, np.where(a < 0, a, -np.inf).max(axis=1))


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("m", [0, 1, 13])
def test_argmax_with_its_outputs_in_either_order(swapped, m):
    A = te.placeholder((4, m), name="A")
    r = te.reduce_axis((0, m), name="r")
    outputs = te.compute((4,), lambda i: te.argmax(A[i, r], axis=r)[:: -1 if swapped else 1], name="C")
    s = lw.create_schedule(list(outputs))
    _, inner = s[outputs[0]].split(r, factor=4)
    partial = s.rfactor(outputs[1], inner)
    assert partial is partial.op.outputs[1]
    assert [t.dtype for t in partial.op.outputs] == [t.dtype for t in outputs]
    s[partial].vectorize(s[partial].op.axis[0])
    a = whole_numbers((4, m)) // 4  # many equal values: the first wins
    found = [np.zeros(4, t.dtype.to_numpy()) for t in outputs]
    interpreted(s, [A, *outputs], [a, *found])
    value, index = found[::-1] if swapped else found
    if m:
        np.testing.assert_array_equal(index, a.argmax(axis=1))
        np.testing.assert_array_equal(value, a.max(axis=1))
    else:
        assert (value == -np.inf).all()


def test_rfactor_of_both_stages_again():
    A, r, C = row_sums(3, 100, "int32")
    s = lw.create_schedule(C)
    _, inner = s[C].split(r, factor=32)
    lanes = s.rfactor(C, inner)
    _, half = s[C].split(s[C].op.reduce_axis[0], factor=4)
    tree = s.rfactor(C, half)
    deep = s.rfactor(lanes, s[lanes].op.reduce_axis[0])
    assert [s[t].name for t in (lanes, tree, deep)] == ["C.rf", "C.rf_1", "C.rf.rf"]
    a, c = whole_numbers((3, 100), "int32"), np.zeros(3, np.int32)
    interpreted(s, [A, C], [a, c])
    np.testing.assert_array_equal(c, a.sum(axis=1))


def test_annotations_of_other_loops_go_along():
    A, r, C = row_sums(3, 24)
    s = lw.create_schedule(C)
    outer, inner = s[C].split(r, factor=4)
    s[C].unroll(inner)
    s[C].vectorize(C.op.axis[0])
    s.rfactor(C, outer)
    assert "for r_inner in unrolled(4)" in str(s)
    assert "for i_1 in vectorized(3)" in str(s)
    a, c = whole_numbers((3, 24)), np.zeros(3, np.float32)
    interpreted(s, [A, C], [a, c])
    np.testing.assert_array_equal(c, a.sum(axis=1))


def test_partial_results_are_computed_where_the_reduction_is():
    n = te.var("n")
    A = te.placeholder((n, 12), "int32", name="A")
    B = te.compute((n, 12), lambda i, j: A[i, j] * 2, name="B")
    r = te.reduce_axis((0, 12), name="r")
    C = te.compute((n,), lambda i: te.sum(B[i, r], axis=r), name="C")
    D = te.compute((n,), lambda i: C[i] + 1, name="D")
    s = lw.create_schedule(D)
    outer, _ = s[D].split(D.op.axis[0], factor=4)
    s[C].compute_at(s[D], outer)
    s[B].compute_at(s[D], outer)
    C_rf = s.rfactor(C, s[C].split(r, factor=4)[1])
    s[C_rf].vectorize(s[C_rf].op.axis[0])
    assert "C.rf: int32[4, 4]" in str(s)
    for size in (0, 1, 7):
        a, d = whole_numbers((size, 12), "int32"), np.zeros(size, np.int32)
        interpreted(s, [A, D], [a, d])
        np.testing.assert_array_equal(d, a.sum(axis=1) * 2 + 1)
    lane, row = s[C_rf].op.axis
    s[C_rf].reorder(row, lane)
    s[C_rf].compute_at(s[C], s[C].op.axis[0])
    s[B].compute_at(s[C_rf], row)
    interpreted(s, [A, D], [a, d])
    np.testing.assert_array_equal(d, a.sum(axis=1) * 2 + 1)


def test_one_reduce_axis_shared_by_two_computes():
    A = te.placeholder((4, 10), "int32", name="A")
    r = te.reduce_axis((0, 10), name="r")
    low = te.compute((4,), lambda i: te.min(A[i, r], axis=r), name="low")
    C = te.compute((4,), lambda i: te.sum(A[i, r] - low[i], axis=r), name="C")
    a = whole_numbers((4, 10), "int32")
    expected = (a - a.min(axis=1, keepdims=True)).sum(axis=1)
    for scheduled in (False, True):
        s = lw.create_schedule(C)
        if scheduled:
            s[low].split(r, factor=4)
            _, inner = s[C].split(r, factor=3)
            partial = s.rfactor(C, inner)
            s[low].compute_at(s[partial], s[partial].op.axis[1])
        c = np.zeros(4, np.int32)
        interpreted(s, [A, C], [a, c])
        np.testing.assert_array_equal(c, expected)


def test_native_code_of_a_vectorized_sum_holds_its_lanes_in_a_register():
    A, r, C = row_sums(4, 4096)
    s = lw.create_schedule(C)
    _, inner = s[C].split(r, factor=8)
    C_rf = s.rfactor(C, inner, factor_axis=-1)
    s[C_rf].compute_at(s[C], C.op.axis[0])
    i, lane = s[C_rf].op.axis
    s[C_rf].reorder(i, *s[C_rf].op.reduce_axis, lane)
    s[C_rf].vectorize(lane)
    kernel = lw.build(s, [A, C], target="x86-64-v3")
    loop = kernel.loop_ir[kernel.loop_ir.index("for r_outer") :].splitlines()[1]
    assert loop.strip() == "C.rf_reg[0] = C.rf_reg[0] + A[ramp(i * 4096 + r_outer * 8, 1, 8)]"
    a, c = whole_numbers((4, 4096)), np.zeros(4, np.float32)
    kernel(a, c)
    np.testing.assert_array_equal(c, a.sum(axis=1))
