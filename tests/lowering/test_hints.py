"""prefetch and annotate: they stand in the nest, reach the code, and change no result."""

import re

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir.stmt import For, PrefetchStmt
from loopwright.ir.visit import walk
from loopwright.lowering.nest import prefetches
from loopwright.lowering.nest.prefetches import _boxes_reached
from loopwright.lowering.rules.invariants import check_invariants


def doubled(n=64):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    return A, B, lw.create_schedule(B)


def assert_right(s, args, reference, *shapes):
    runs = lw.interpret(lw.lower(s, args)), lw.build(s, args)
    for inputs in shapes:
        arrays = [np.random.default_rng(k).standard_normal(shape).astype(np.float32) for k, shape in enumerate(inputs)]
        expected = reference(*arrays)
        for run in runs:
            out = np.full(expected.shape, np.nan, np.float32)
            run(*arrays, out)
            np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


def test_prefetch_before_and_after():
    _A, B, s = doubled()
    assert str(s) == "for i in range(64):\n    B[i] = A[i] * 2.0"
    s[B].prefetch("A", B.op.axis[0], 8)
    assert str(s) == "for i in range(64):\n    prefetch(A[i + 8])\n    B[i] = A[i] * 2.0"
    assert str(s.trace[-1]) == 's["B"].prefetch("A", "B#0", 8)'


def test_what_a_stage_stores_is_fetched_to_be_written():
    A, B, s = doubled(256)
    outer, _ = s[B].split(B.op.axis[0], factor=32)
    s[B].prefetch(B, outer, 1)
    assert "for B_ahead in unrolled(2):\n        prefetch(B[i_outer * 32 + B_ahead * 16 + 32], to_write)" in str(s)
    assert_right(s, [A, B], lambda a: a * 2, [(256,)])
    assert "prefetchw" in lw.build(s, [A, B], target="llvm -mcpu=x86-64-v3 -mattr=+prfchw").assembly


def test_annotate_before_and_after():
    _A, B, s = doubled()
    s[B].annotate(B.op.axis[0], "mine.phase", 2)
    s[B].annotate(B.op.axis[0], "mine.name", "load")
    assert str(s) == "for i in range(64):  # mine.phase = 2  # mine.name = 'load'\n    B[i] = A[i] * 2.0"
    assert str(s.trace[0]) == 's["B"].annotate("B#0", "mine.phase", 2)'


@pytest.mark.parametrize(("target", "instruction"), [("x86-64", "prefetcht0"), ("x86-64-v4", "prefetcht0")])
def test_each_line_ahead_is_one_instruction(target, instruction):
    A, B, s = doubled(te.var("n"))
    outer, inner = s[B].split(B.op.axis[0], factor=32)
    s[B].unroll(inner)
    s[B].prefetch(A, outer, 4)
    assert "for A_ahead in unrolled(2):\n        prefetch(A[i_outer * 32 + A_ahead * 16 + 128])" in str(s)
    kernel = lw.build(s, [A, B], target=target)
    assert "llvm.prefetch" in kernel.llvm_ir
    assert len(re.findall(rf"\t{instruction}", kernel.assembly)) >= 2


@pytest.mark.parametrize("size", [0, 1, 7, 64, 65])
def test_addresses_beyond_the_tensor_do_no_harm(size):
    A, B, s = doubled(te.var("n"))
    outer, inner = s[B].split(B.op.axis[0], factor=8)
    s[B].vectorize(inner)
    s[B].parallel(outer)
    s[B].prefetch(A, outer, 1 << 20)
    assert_right(s, [A, B], lambda a: a * 2, [(size,)])


@pytest.mark.parametrize("tail", ["guard", "mask", "peel", "shift"])
def test_a_prefetch_stands_in_the_loops_of_any_tail(tail):
    A, B, s = doubled(te.var("n"))
    outer, inner = s[B].split(B.op.axis[0], factor=24, tail=tail)
    s[B].prefetch(A, outer, 1)
    _, lane = s[B].split(inner, factor=8)
    s[B].vectorize(lane)
    assert_right(s, [A, B], lambda a: a * 2, [(0,)], [(1,)], [(23,)], [(49,)])


def test_what_a_prefetch_reaches_is_found_once_until_the_bounds_change(monkeypatch):
    found = []

    def counted(code, stage, prefetch, tensor):
        found.append((prefetch.tensor, prefetch.distance))
        return _boxes_reached(code, stage, prefetch, tensor)

    monkeypatch.setattr(prefetches, "_boxes_reached", counted)
    A, B, s = doubled()
    outer, inner = s[B].split(B.op.axis[0], factor=32)
    s[B].prefetch(A, outer, 1)
    s[B].prefetch(B, outer, 2)
    check_invariants(s.state, s.state)
    assert str(s).count("prefetch(") == 2
    assert found == [("A", 1), ("B", 2)]
    s[B].split(inner, factor=8)
    check_invariants(s.state, s.state)
    assert found == [("A", 1), ("B", 2)] * 2


def test_a_producer_with_a_layout_is_prefetched_where_it_lies():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    P = te.compute((n, m), lambda i, j: A[i, j] + 1.0, name="P")
    B = te.compute((n, m), lambda i, j: P[i, j] * 2.0, name="B")
    s = lw.create_schedule(B)
    s[P].transform_layout(lambda i, j: (j // 8, i, j % 8))
    s[P].storage_align(1, 16)
    outer, inner = s[B].split(B.op.axis[1], factor=8)
    s[B].vectorize(inner)
    s[B].prefetch(P, outer, 2)
    s[B].prefetch(P, B.op.axis[0], 1)
    assert "prefetch(P[j_outer + 2, i_1, 0])" in str(s)
    assert "for P_ahead in range((m + 7) // 8):\n        prefetch(P[P_ahead, i_1 + 1, 0])" in str(s)
    assert_right(s, [A, B], lambda a: (a + 1) * 2, [(3, 20)], [(0, 5)], [(5, 0)], [(1, 1)])


def test_rows_of_different_lengths_are_fetched_as_long_as_they_will_be():
    A = te.placeholder((40, 40), name="A")

    def row(i):
        r = te.reduce_axis((0, i * 2 + 1), name="r")
        return te.sum(A[i, r], axis=r)

    S = te.compute((20,), row, name="S")
    s = lw.create_schedule(S)
    outer, _ = s[S].split(S.op.axis[0], factor=4)
    s[S].prefetch(A, outer, 1)
    s[S].prefetch(A, S.op.reduce_axis[0], 2)
    assert "prefetch(A[i_outer * 4 + A_ahead + 4, A_ahead_1 * 16])" in str(s)
    lengths = np.arange(20) * 2 + 1
    assert_right(s, [A, S], lambda a: np.array([row[:n].sum() for row, n in zip(a, lengths, strict=False)]), [(40, 40)])


def test_reads_a_constant_apart_are_fetched_together():
    A = te.placeholder((66, 100), name="A")
    B = te.compute((64, 100), lambda i, j: A[i, j] + A[i + 1, j] + A[i + 2, 99 - j], name="B")
    s = lw.create_schedule(B)
    outer, _ = s[B].split(B.op.axis[1], factor=4)
    s[B].prefetch(A, outer, 1)
    fetched = [node for node in walk(lw.lower(s, [A, B]).body) if isinstance(node, PrefetchStmt)]
    assert len(fetched) == 3  # rows i and i + 1, and the mirrored read
    assert "for A_ahead in unrolled(2):\n            prefetch(A[i + A_ahead, j_outer * 4 + 4])" in str(s)
    assert_right(s, [A, B], lambda a: a[:-2] + a[1:-1] + a[2:, ::-1], [(66, 100)])


def test_memory_shared_by_stages_of_the_tile_around_may_be_prefetched():
    A = te.placeholder((32, 32), name="A")
    P = te.compute((32, 32), lambda i, j: A[i, j] + 1.0, name="P")
    r = te.reduce_axis((0, 32), name="r")
    B = te.compute((32, 32), lambda i, j: te.sum(P[i, r] * P[j, r], axis=r), name="B")
    s = lw.create_schedule(B)
    s[P].compute_at(s[B], B.op.axis[0])
    s[B].prefetch(P, B.op.axis[1], 1)
    assert_right(s, [A, B], lambda a: (a + 1) @ (a + 1).T, [(32, 32)])


def test_notes_reach_the_lowered_function_and_its_text():
    A, B, s = doubled(te.var("n"))
    outer, inner = s[B].split(B.op.axis[0], factor=4)
    s[B].vectorize(inner)
    s[B].annotate(outer, "mine.hot", True)
    func = lw.lower(s, [A, B])
    loops = [node for node in walk(func.body) if isinstance(node, For)]
    assert loops
    assert all(loop.notes == (("mine.hot", True),) for loop in loops)
    assert "# mine.hot = True" in str(func)


def test_a_loop_that_is_kept_whole_is_not_partitioned():
    texts = []
    for whole in (False, True):
        A, B, s = doubled(te.var("n"))
        outer, inner = s[B].split(B.op.axis[0], factor=4)
        s[B].vectorize(inner)
        if whole:
            s[B].annotate(outer, "partition", False)
        texts.append(str(lw.lower(s, [A, B])))
        assert_right(s, [A, B], lambda a: a * 2, [(0,)], [(3,)], [(16,)], [(17,)])
    assert [text.count("for i_outer") for text in texts] == [2, 1]
    assert texts[1].count("where") == 2  # the one loop is masked
