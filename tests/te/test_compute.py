"""Tensor expressions: shapes, dtypes, bodies, reducers."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.base.errors import ExpressionError
from loopwright.ir.expr import Reduce


def test_a_compute_takes_its_axis_names_from_the_function():
    A = te.placeholder((4, 5), name="A")
    B = te.compute((4, 5), lambda row, column: A[row, column] + 1.0, name="B")
    assert [axis.name for axis in B.op.axis] == ["row", "column"]
    assert str(B.op.body[0]) == "A[row, column] + 1.0"


def test_what_a_function_keeps_from_a_loop_is_no_axis():
    A = te.placeholder((4, 5), name="A")
    made = [te.compute((4, 5), lambda *i, n=n: A[i] + n, name="B") for n in (1.0, 2.0)]
    assert [str(B.op.body[0]) for B in made] == ["A[i0, i1] + 1.0", "A[i0, i1] + 2.0"]
    assert [axis.name for axis in te.compute((4,), lambda i, *, n=3: A[i, n], name="C").op.axis] == ["i"]
    with pytest.raises(ExpressionError, match="D has 1 dimensions, but its function takes 2 indices"):
        te.compute((4,), lambda i, *, n: A[i, n], name="D")


def test_a_python_number_takes_the_dtype_it_meets():
    A = te.placeholder((4,), "int8", name="A")
    assert str(te.compute((4,), lambda i: A[i] + 1).op.body[0].dtype) == "int8"
    H = te.placeholder((4,), "float16", name="H")
    assert str(te.compute((4,), lambda i: 2 * H[i]).op.body[0].dtype) == "float16"


def test_an_integer_tensor_may_index_another():
    A = te.placeholder((10,), "float32", name="A")
    I = te.placeholder((4,), "int32", name="I")
    G = te.compute((4,), lambda i: A[I[i]], name="G")
    assert str(G.op.body[0]) == "A[index(I[i])]"


def test_a_reduction_may_have_several_outputs():
    A = te.placeholder((3, 8), "float32", name="A")
    k = te.reduce_axis((0, 8), name="k")
    value, index = te.compute((3,), lambda i: te.argmin(A[i, k], axis=k), name="m")
    assert (str(value.dtype), str(index.dtype)) == ("float32", "int64")
    assert value.op is index.op
    assert all(isinstance(body, Reduce) for body in value.op.body)


def test_a_reduce_axis_may_begin_anywhere():
    r = te.reduce_axis((2, 7), name="r")
    assert int(r.min) == 2
    assert int(r.extent) == 5


def test_scalar_tensors_have_no_axes():
    A = te.placeholder((8,), "float32", name="A")
    r = te.reduce_axis((0, 8))
    S = te.compute((), lambda: te.sum(A[r], axis=r))
    assert S.ndim == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda A, r: te.compute((4,), lambda i: A[i, 0] if i == 0 else A[i, 1]), "te.select"),
        (lambda A, r: te.compute((4,), lambda i: A[i]), "2 dimensions, but is read with 1"),
        (lambda A, r: te.compute((4,), lambda i, j: A[i, j]), "takes 2 indices"),
        (lambda A, r: te.compute((4,), lambda i: A[i + 1, 0]), r"out of bounds.*1 … 4.*extent 4"),
        (lambda A, r: te.compute((4,), lambda i: A[i - 1, 0]), "out of bounds"),
        (lambda A, r: te.compute((4,), lambda i: A[i + 1000, 0]), "out of bounds"),
        (lambda A, r: te.compute((4,), lambda i: te.if_then_else(i < 2, A[i + 4, 0], 0.0)), "out of bounds"),
        (lambda A, r: te.compute((4,), lambda i: te.sum(A[i, r], axis=r) + 1.0), "inside another expression"),
        (lambda A, r: te.compute((4,), lambda i: te.sum(A[i, 0], axis=i)), "te.reduce_axis"),
        (lambda A, r: te.compute((4,), lambda i: A[i, 0] + te.const(1, "int32")), "one dtype"),
        (lambda A, r: te.compute((4,), lambda i: te.exp(te.cast(A[i, 0], "int32"))), "exp takes float"),
        (lambda A, r: te.compute((4,), lambda i: None), "returned nothing"),
        (lambda A, r: te.compute((-4,), lambda i: A[0, 0]), "negative"),
        (lambda A, r: te.compute((1 << 48,), lambda i: A[0, 0]), "too large"),
        (lambda A, r: te.compute((1 << 30, 1 << 30), lambda i, j: A[0, 0]), "too large"),
        (lambda A, r: te.placeholder((3,), "float31"), "no such dtype: float31"),
        (lambda A, r: te.placeholder((3,), "float32x4"), "scalars"),
        (lambda A, r: te.placeholder(3), "sequence"),
        (lambda A, r: A[0:1, 0], "slices"),
        (lambda A, r: list(A), "iterated"),
        (lambda A, r: te.reduce_axis((3, 1)), "not a range"),
        (lambda A, r: te.compute((4,), lambda i: te.max(A[i, 0], 0.0)), "te.maximum give"),
        (lambda A, r: A[0, 0] % 2.0, "does not apply"),
        (lambda A, r: A[0, 0] & True, "dtype"),
    ],
)
def test_mistakes_are_told(make, message):
    A = te.placeholder((4, 8), "float32", name="A")
    r = te.reduce_axis((0, 8), name="r")
    with pytest.raises(ExpressionError, match=message):
        make(A, r)


@pytest.mark.parametrize(
    "make",
    [
        lambda A, n: te.compute((6,), lambda i: te.if_then_else(te.all(i >= 1, i < 5), A[i - 1], 0.0)),
        lambda A, n: te.compute((3,), lambda i: A[i // 2 + i % 2]),
        lambda A, n: te.compute((4,), lambda i: A[3 - i]),
        lambda A, n: te.compute((n,), lambda i: te.if_then_else(i < 4, A[i], 0.0)),
    ],
)
def test_guarded_reads_are_accepted(make):
    make(te.placeholder((4,), "float32", name="A"), te.var("n"))


def test_a_symbolic_read_past_the_end_is_refused():
    n = te.var("n")
    A = te.placeholder((n,), "float32", name="A")
    te.compute((n - 1,), lambda i: A[i + 1])
    with pytest.raises(ExpressionError, match="out of bounds"):
        te.compute((n,), lambda i: A[i + 1])


@pytest.mark.parametrize("extent", [1, 2, 5])
def test_ranges_that_are_empty_for_all_elements_read_nothing(extent):
    A = te.placeholder((extent,), name="A", dtype="int32")

    def largest(i):
        r = te.reduce_axis((te.minimum(i, extent), te.minimum(i * 2, extent)), name="r")
        return te.max(A[r], axis=r)

    C = te.compute((7,), largest, name="C")
    data, found = np.arange(extent, dtype=np.int32) + 5, np.zeros(7, np.int32)
    lw.build(lw.default_schedule(C), [A, C])(data, found)
    lowest = np.iinfo(np.int32).min
    wanted = [data[min(i, extent) : min(i * 2, extent)].max(initial=lowest) for i in range(7)]
    np.testing.assert_array_equal(found, wanted)


def test_constants_keep_their_value():
    assert float(te.const(0.1, "float32")) == np.float32(0.1)
    with pytest.raises(ExpressionError, match="does not fit"):
        te.const(300, "uint8")


def test_what_is_never_read_is_not_out_of_bounds():
    empty = te.placeholder((3, 0), name="empty")
    r = te.reduce_axis((0, 0), name="r")
    te.compute((3, 0), lambda i, j: empty[i, j], name="copied")
    te.compute((3,), lambda i: te.sum(empty[i, r], axis=r), name="summed")
    padding = te.const(0.0)
    te.compute((3, 2), lambda i, j: te.if_then_else(te.all(j >= 1, j < 1), empty[i, j - 1], padding), name="padded")
    with pytest.raises(ExpressionError, match="out of bounds"):
        te.compute((3, 2), lambda i, j: te.if_then_else(j >= 1, empty[i, j - 1], padding), name="misread")


def test_a_function_may_take_the_last_axes_as_a_rest():
    A = te.placeholder((2, 3, 4), name="A")
    B = te.compute((2, 3, 4), lambda n, *rest: A[(n, *rest)], name="B")
    assert [axis.name for axis in B.op.axis] == ["n", "i1", "i2"]
    with pytest.raises(ExpressionError, match="B has 1 dimensions, but its function takes 3 indices"):
        te.compute((2,), lambda i, j, *rest: A[i, j, 0], name="B")


def test_a_shape_of_numbers_is_one_for_numpy_and_a_symbolic_one_is_refused():
    assert np.zeros(te.placeholder((2, 3), name="A").shape).shape == (2, 3)
    with pytest.raises(ExpressionError, match="`n` has no value"):
        np.zeros(te.placeholder((te.var("n"), 3), name="A").shape)
