"""A value that several places read is one value: no reader takes its product into an fma, however it is scheduled."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir.makers import as_index

ROWS, COLUMNS = 5, 37
TARGET = "x86-64-v3"  # with fma
PRECISIONS = ("standard", "fast", "strict")

OF_COLUMNS = {
    "product in some columns": lambda a, row, i, j: te.select(as_index(j) < 19, a * 1.1, a * 1.3),
    "sum of one in some columns": lambda a, row, i, j: te.select(as_index(j) < 19, a * 1.1, a) + row * 1.3,
    "product with a column's number": lambda a, row, i, j: a * te.cast(j, "float32") + row * 0.7,
    "column's number": lambda a, row, i, j: te.cast(j, "float32") * 1.1e9 + row,
}
VALUES = {
    "product": lambda a, row, i, j: a * 1.1,
    "negative product": lambda a, row, i, j: -(a * 1.1),
    "product after one of the row": lambda a, row, i, j: row * 1.3 + a * 1.1,
    "product before one of the row": lambda a, row, i, j: a * 1.1 + row * 1.3,
    "two products": lambda a, row, i, j: a * row * 1e-10 - a * a * 1e-10,
    "quotient": lambda a, row, i, j: a / row,
    "multiple of a quotient": lambda a, row, i, j: a / row * 1e10,
    **OF_COLUMNS,
}


def columns_in_vectors(s, M, P, D):
    s[M].compute_inline()
    _, j = s[D].op.axis
    s[D].vectorize(s[D].split(j, factor=8)[1])


def columns_in_vectors_with_a_scalar_tail(s, M, P, D):
    s[M].compute_inline()
    _, j = s[D].op.axis
    s[D].vectorize(s[D].split(j, factor=8, tail="peel")[1])


def rows_in_vectors(s, M, P, D):
    s[M].compute_inline()
    (i,), (k,) = s[P].op.axis, s[P].op.reduce_axis
    outer, lanes = s[P].split(i, factor=4)
    s[P].reorder(outer, k, lanes)
    s[P].vectorize(lanes)
    s[D].unroll(s[D].op.axis[1])


def maximum_in_lanes(s, M, P, D):
    s[M].compute_inline()
    lane = s[P].split(s[P].op.reduce_axis[0], factor=8)[1]
    partial = s.rfactor(P, lane)
    partial = partial[0] if isinstance(partial, tuple) else partial
    s[partial].vectorize(s[partial].op.axis[0])


def all_unrolled(s, M, P, D):
    s[M].compute_inline()
    s[P].unroll(s[P].op.reduce_axis[0])
    s[D].unroll(s[D].op.axis[1])


def computed_beside_the_difference(s, M, P, D):
    i, j = s[D].op.axis
    _, inner = s[D].split(j, factor=8)
    s[P].compute_at(s[D], i)
    s[M].compute_at(s[D], i)
    s[M].vectorize(s[M].split(s[M].op.axis[1], factor=8)[1])
    s[D].unroll(inner)


SCHEDULES = (
    columns_in_vectors,
    columns_in_vectors_with_a_scalar_tail,
    rows_in_vectors,
    maximum_in_lanes,
    all_unrolled,
    computed_beside_the_difference,
)


def difference_from_maximum(value, kind="float32"):
    A = te.placeholder((ROWS, COLUMNS), kind, name="A")
    R = te.placeholder((ROWS,), kind, name="R")
    M = te.compute((ROWS, COLUMNS), lambda i, j: value(A[i, j], R[i], i, j), name="M")
    k = te.reduce_axis((0, COLUMNS), name="k")
    P = te.compute((ROWS,), lambda i: te.max(M[i, k], axis=k), name="P")
    D = te.compute((ROWS, COLUMNS), lambda i, j: M[i, j] - P[i], name="D")
    return A, R, M, P, D


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: s.__name__)
@pytest.mark.parametrize("value", VALUES)
def test_a_value_less_its_maximum_is_at_most_0(value, schedule, precision):
    A, R, M, P, D = difference_from_maximum(VALUES[value])
    s = lw.create_schedule(D)
    schedule(s, M, P, D)
    given = [tensor for tensor in (A, R) if tensor in M.op.inputs]
    kernel = lw.build(s, [*given, D], target=TARGET, precision=precision, name="difference")
    rng = np.random.default_rng(0)
    a, r = (rng.standard_normal(shape).astype(np.float32) * np.float32(1e10) for shape in ((ROWS, COLUMNS), ROWS))
    a[0] = a[0, 0]
    d = np.empty((ROWS, COLUMNS), np.float32)
    kernel(*({A: a, R: r}[tensor] for tensor in given), d)
    np.testing.assert_array_equal(d.max(axis=1), np.zeros(ROWS))
    if value not in OF_COLUMNS:  # equal numbers in a row: vectors and tails are rounded alike
        np.testing.assert_array_equal(d[0], np.zeros(COLUMNS))


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_reducers_that_read_a_term_more_than_once_see_one_number(kind):
    """The logarithm of a sum of exponentials, as a reducer with one output, and softmax in one pass."""
    large = {"float32": 1.1e10, "float64": 1.1e40}[kind]
    A = te.placeholder((COLUMNS,), kind, name="A")
    k, r = (te.reduce_axis((0, COLUMNS), name=name) for name in "kr")

    def merge(a, b):
        peak = te.maximum(a[0], b[0])
        return [peak + te.log(te.exp(a[0] - peak) + te.exp(b[0] - peak))]

    log_sum = te.reducer("log_sum_exp", merge, lambda kinds: [te.const(-3e38, kinds[0])])
    M = te.compute((COLUMNS,), lambda i: A[i] * te.const(large, kind), name="M")
    L = te.compute((), lambda: log_sum([A[k] * te.const(large, kind)], axis=k)[0], name="L")
    P, S = te.compute((), lambda: te.max_and_sum_exp(M[r], axis=r), name="P")
    W = te.compute((COLUMNS,), lambda i: te.exp(M[i] - P[()]) / S[()], name="W")
    s = lw.create_schedule([L, W])
    s[M].compute_inline()
    a = np.random.default_rng(0).standard_normal(COLUMNS).astype(kind)
    found, weights = np.empty((), kind), np.empty(COLUMNS, kind)
    lw.build(s, [A, L, W], target=TARGET)(a, found, weights)
    products = a * np.dtype(kind).type(large)
    assert found == products.max()
    np.testing.assert_array_equal(weights, products == products.max())


def test_the_fraction_of_a_product_is_not_negative():
    A = te.placeholder((64,), name="A")
    F = te.compute((64,), lambda i: A[i] * 0.1 - te.floor(A[i] * 0.1), name="F")
    s = lw.create_schedule(F)
    s[F].vectorize(s[F].split(s[F].op.axis[0], factor=8)[1])
    a, fraction = np.arange(64, dtype=np.float32), np.empty(64, np.float32)
    lw.build(s, [A, F], target=TARGET)(a, fraction)
    products = a * np.float32(0.1)
    np.testing.assert_array_equal(fraction, products - np.floor(products))


def test_a_fence_of_the_users_own_keeps_a_product_out_of_a_sum():
    A = te.placeholder((64,), name="A")
    E = te.compute((64,), lambda i: A[i] * A[i] - te.arithmetic_fence(A[i] * A[i]), name="E")
    R = te.compute((64,), lambda i: te.arithmetic_fence(A[i] * 1.1) - 1.0, name="R")
    s = lw.create_schedule([E, R])
    a, e, r = np.random.default_rng(0).random(64, np.float32), np.empty(64, np.float32), np.empty(64, np.float32)
    lw.build(s, [A, E, R], target=TARGET)(a, e, r)
    np.testing.assert_array_equal(e, np.zeros(64))
    np.testing.assert_array_equal(r, a * np.float32(1.1) - np.float32(1))
