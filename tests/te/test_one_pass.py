"""The reducers of several outputs against numpy in float64: as they stand, and with rfactor, tails and vectors."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te

SIZES = (0, 1, 2, 7, 33)


def run(reduce, rows, scheduled, kind="float64", masked=False, native=False):
    """The outputs of ``reduce`` along the rows of an array; ``masked`` leaves out every third column."""
    n, m = rows.shape
    A = te.placeholder((n, m), kind, name="A")
    r = te.reduce_axis((0, m), name="r")
    where = (r.var % 3 != 1) if masked else None
    outputs = te.compute((n,), lambda i: reduce(A[i, r], axis=r, where=where), name="C")
    s = lw.create_schedule(list(outputs))
    if scheduled:
        _, lane = s[outputs[0]].split(r, factor=4)
        partial = s.rfactor(outputs[0], lane)
        s[partial].reorder(s[partial].op.axis[1], s[partial].op.reduce_axis[0], s[partial].op.axis[0])
        s[partial].vectorize(s[partial].op.axis[0])
    arrays = [rows.astype(kind), *(np.zeros(n, t.dtype.to_numpy()) for t in outputs)]
    if native:
        lw.build(s, [A, *outputs], target="x86-64-v3")(*arrays)
    else:
        lw.interpret(lw.lower(s, [A, *outputs], target="x86-64-v3"))(*arrays)
    return arrays[1:]


def used_columns(rows, masked):
    return np.delete(rows, np.s_[1::3], axis=1) if masked else rows


@pytest.fixture(params=[False, True], ids=["naive", "rfactor"])
def scheduled(request):
    return request.param


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("m", SIZES)
def test_max_and_sum_exp(m, masked, scheduled):
    rows = np.random.default_rng(m).standard_normal((5, m)) * 20
    top, total = run(te.max_and_sum_exp, rows, scheduled, masked=masked)
    kept = used_columns(rows, masked)
    expected = kept.max(axis=1, initial=-np.inf)
    np.testing.assert_array_equal(top, expected)
    np.testing.assert_allclose(total, np.exp(kept - expected[:, None]).sum(axis=1), rtol=1e-14)


@pytest.mark.parametrize("native", [False, True])
def test_max_and_sum_exp_of_special_values(scheduled, native):
    inf, nan = np.inf, np.nan
    rows = np.array(
        [[1, nan, 2, 0, 1, 1], [-inf, 0, -inf, 0, 0, 0], [-inf] * 6, [inf, 3, inf, -inf, 0, 1], [nan] * 6], float
    )
    top, total = run(te.max_and_sum_exp, rows, scheduled, native=native)
    np.testing.assert_array_equal(top, [nan, 0, -inf, inf, nan])
    np.testing.assert_array_equal(total, [nan, 4, 6, 2, nan])
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(top + np.log(total), np.logaddexp.reduce(rows, axis=1), rtol=1e-15)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("m", SIZES)
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_welford(m, masked, offset, scheduled):
    rows = np.random.default_rng(m).standard_normal((5, m)) + offset
    mean, m2, count = run(te.welford, rows, scheduled, masked=masked)
    kept = used_columns(rows, masked)
    np.testing.assert_array_equal(count, kept.shape[1])
    if kept.shape[1] == 0:
        assert not mean.any()
        assert not m2.any()
        return
    np.testing.assert_allclose(mean, kept.mean(axis=1), rtol=1e-14)
    exact = ((kept - offset) ** 2).sum(axis=1) - (kept - offset).sum(axis=1) ** 2 / kept.shape[1]
    np.testing.assert_allclose(m2, exact, rtol=1e-12 if offset == 0 else 1e-6, atol=1e-14)


@pytest.mark.parametrize("native", [False, True])
def test_welford_of_special_values(scheduled, native):
    inf, nan = np.inf, np.nan
    rows = np.array([[1, nan, 2, 0, 1], [inf, 1, 2, 3, 4], [1, 2, -inf, 3, 4], [inf, 1, -inf, 0, 0], [inf] * 5], float)
    mean, m2, count = run(te.welford, rows, scheduled, native=native)
    np.testing.assert_array_equal(mean, [nan, inf, -inf, nan, inf])
    np.testing.assert_array_equal(m2, [nan] * 5)
    np.testing.assert_array_equal(count, 5)


def test_welford_of_floats_keeps_what_the_textbook_formula_loses():
    rows = (np.random.default_rng(0).standard_normal((3, 100)) + 4096).astype(np.float32)
    mean, m2, _ = run(te.welford, rows, True, "float32")
    np.testing.assert_allclose(mean, rows.astype(float).mean(axis=1), rtol=1e-6)
    np.testing.assert_allclose(m2 / 100, rows.astype(float).var(axis=1), rtol=1e-2)
    textbook = (rows**2).mean(axis=1) - rows.mean(axis=1) ** 2
    assert np.abs(textbook - rows.astype(float).var(axis=1)).min() > 0.1


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("reduce", [te.max_and_sum_exp, te.welford])
def test_they_run_as_vector_code_in_every_float_dtype(kind, reduce):
    rows = np.random.default_rng(0).integers(-2, 3, (4, 19)).astype(float)
    found = run(reduce, rows, True, kind, native=True)
    expected = run(reduce, rows, False)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.astype(float), b, rtol=1e-5 if kind == "float32" else 0.05, atol=0.05)


@pytest.mark.parametrize("reduce", [te.max_and_sum_exp, te.welford])
def test_they_reduce_floats(reduce):
    A = te.placeholder((8,), "int32", name="A")
    r = te.reduce_axis((0, 8), name="r")
    with pytest.raises(lw.ExpressionError, match="reduces floats, found int32; "):
        reduce(A[r], axis=r)


def test_counts_and_positions_fit_their_dtype():
    A = te.placeholder((128,), name="A")
    r = te.reduce_axis((0, 128), name="r")
    te.argmax(A[r], axis=r, index_dtype="int8")
    with pytest.raises(lw.ExpressionError, match="up to 128 do not fit int8: give a wider count_dtype"):
        te.welford(A[r], axis=r, count_dtype="int8")
    with pytest.raises(lw.ExpressionError, match="count_dtype must be an integer dtype, found float32"):
        te.welford(A[r], axis=r, count_dtype="float32")
