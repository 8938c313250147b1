"""Schedules and computes that classic TVM accepted and then computed wrongly: refused here, or right.

docs/from-tvm.md lists them in this order. The tensor of more than 2³² elements has a test among the slow ones.
"""

import re

import numpy as np
import pytest

import loopwright as lw
from loopwright import te


def refused(message):
    return pytest.raises(lw.ScheduleError, match=message)


@pytest.fixture
def rows():
    A = te.placeholder((16, 60), "float32", name="A")
    r = te.reduce_axis((0, 60), name="r")
    S = te.compute((16,), lambda i: te.sum(A[i, r], axis=r), name="S")
    return A, S, lw.create_schedule(S)


def test_a_parallel_reduction_is_refused_and_rfactor_named(rows):
    _, S, s = rows
    with refused(r"reduction axis(.|\n)*rfactor"):
        s[S].parallel(S.op.reduce_axis[0])


def test_an_output_is_not_inlined(rows):
    _, S, s = rows
    with refused("is an output"):
        s[S].compute_inline()


def test_a_negative_factor_is_refused(rows):
    _, S, s = rows
    with refused("positive integer, found -4"):
        s[S].split(S.op.axis[0], factor=-4)


def test_no_guard_drops_iterations():
    """TVM let the user set a store predicate. Here guards come from steps alone, and each element is written."""
    A = te.placeholder((61,), "int32", name="A")
    B = te.compute((61,), lambda i: A[i] + 1, name="B")
    s = lw.create_schedule(B)
    assert not hasattr(s[B], "set_store_predicate")
    outer, _ = s[B].split(B.op.axis[0], factor=8)
    s[B].split(outer, nparts=3)
    a, b = np.arange(61, dtype=np.int32), np.full(61, -1, np.int32)
    lw.build(s, [A, B])(a, b)
    np.testing.assert_array_equal(b, a + 1)


def test_an_annotation_is_not_replaced_by_another(rows):
    _, S, s = rows
    s[S].parallel(S.op.axis[0])
    with refused("it is parallel already"):
        s[S].vectorize(S.op.axis[0])


def test_a_read_out_of_bounds_is_refused_when_the_compute_is_made():
    A = te.placeholder((8,), "float32", name="A")
    with pytest.raises(lw.ExpressionError, match=r"out of bounds: index 0 is .*1000"):
        te.compute((8,), lambda i: A[i + 1000], name="B")


def test_one_array_as_input_and_output_is_refused():
    A = te.placeholder((8,), "float32", name="A")
    B = te.compute((8,), lambda i: A[7 - i] + 1.0, name="B")
    kernel = lw.build(lw.create_schedule(B), [A, B])
    a = np.zeros(8, np.float32)
    with pytest.raises(lw.RuntimeArgumentError, match=r"overlap|shares memory"):
        kernel(a, a)


@pytest.mark.parametrize("tail", ["mask", "peel", "shift"])
def test_a_vectorized_tail_is_no_scalar_loop(tail):
    A = te.placeholder((60,), "float32", name="A")
    B = te.compute((60,), lambda i: A[i] * 2.0, name="B")
    s = lw.create_schedule(B)
    _, inner = s[B].split(B.op.axis[0], factor=8, tail=tail)
    s[B].vectorize(inner)
    kernel = lw.build(s, [A, B], target="x86-64-v4", name="twice")
    assert not re.search(r"(load|store) float[ ,]", kernel.llvm_ir), kernel.llvm_ir


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["value-index", "index-value"])
def test_the_order_of_the_outputs_of_argmax_is_free(order):
    A = te.placeholder((64, 37), "float32", name="A")
    k = te.reduce_axis((0, 37), name="k")

    def element(i):
        pair = te.argmax(A[i, k], axis=k, index_dtype="int32")
        return tuple(pair[o] for o in order)

    outputs = te.compute((64,), element, name="M")
    a = np.random.default_rng(0).permutation(64 * 37).reshape(64, 37).astype(np.float32)
    results = [np.empty(64, t.dtype.to_numpy()) for t in outputs]
    lw.build(lw.create_schedule(list(outputs)), [A, *outputs])(a, *results)
    expected = [a.max(axis=1), a.argmax(axis=1)]
    for o, found in zip(order, results, strict=True):
        np.testing.assert_array_equal(found, expected[o])


def test_a_reduction_whose_spatial_axis_was_split_can_be_factored(rows):
    A, S, s = rows
    s[S].split(S.op.axis[0], factor=5)
    _, lane = s[S].split(S.op.reduce_axis[0], factor=8)
    s.rfactor(S, lane)
    a, found = np.arange(16 * 60, dtype=np.float32).reshape(16, 60) % 7, np.empty(16, np.float32)
    lw.build(s, [A, S])(a, found)
    np.testing.assert_array_equal(found, a.sum(axis=1))


def test_one_reduction_axis_in_two_computes_is_right():
    A, B = (te.placeholder((6, 9), "int32", name=x) for x in "AB")
    r = te.reduce_axis((0, 9), name="r")
    S = te.compute((6,), lambda i: te.sum(A[i, r], axis=r), name="S")
    T = te.compute((6,), lambda i: te.max(B[i, r] + S[i], axis=r), name="T")
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 9, (2, 6, 9), dtype=np.int32)
    found = np.empty(6, np.int32)
    lw.build(lw.create_schedule(T), [A, B, T])(a, b, found)
    np.testing.assert_array_equal(found, (b + a.sum(axis=1, keepdims=True)).max(axis=1))
