"""softmax and log_softmax: types, misuse, and values against numpy, by the interpreter and by the native schedules."""

import re

import ml_dtypes
import numpy as np
import pytest

import loopwright as lw
from loopwright.base.errors import TypeInferenceError
from loopwright.graph.types import tensor_type
from loopwright.ops.definition.registry import OpPattern, get_op
from loopwright.ops.families.binary import multiply
from loopwright.ops.families.softmax import log_softmax, softmax, trailing_axes
from loopwright.te import var as dimension


def oracle(x, axis, logarithm):
    x = x.astype(np.float64)
    shifted = x - x.max(axis=axis, keepdims=True)
    result = shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))
    return result if logarithm else np.exp(result)


def check(ops, make, x, axis, native, tolerance=1e-6, kind=None):
    """``kind`` of implementation: that of short rows or the generic one, as the axis says, if it is not given."""
    if kind is None:
        is_short = make is log_softmax and axis in (-1, x.ndim - 1) and x.shape[axis] >= 5
        kind = "short_rows" if is_short else "generic"
    call = make(ops.var(x.shape, x.dtype.name), axis)
    assert ops.implement(call)[0].name == f"{make.__name__}.{kind}"
    found = ops.apply(make, x, axis=axis, native=native)
    assert found.dtype == x.dtype
    wanted = oracle(x, axis, make is log_softmax)
    np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=tolerance, atol=tolerance)


def data(shape, seed=0):
    return (np.random.default_rng(seed).normal(size=shape) * 3).astype(np.float32)


@pytest.mark.parametrize("make", [softmax, log_softmax])
@pytest.mark.parametrize("native", [False, True], ids=["interpreted", "native"])
def test_values_over_each_axis_are_numpys(ops, make, native):
    for shape, axes in (((5,), [0]), ((3, 10), [0, 1]), ((2, 3, 7), [0, 1, -1]), ((2, 5, 3, 19), [1])):
        for axis in axes:
            check(ops, make, data(shape), axis, native)


@pytest.mark.parametrize("make", [softmax, log_softmax])
@pytest.mark.parametrize("native", [False, True], ids=["interpreted", "native"])
def test_long_rows_are_folded_in_lanes_and_give_numpys_values(ops, make, native):
    for shape in ((3, 64), (2, 3, 77), (100,), (2, 100, 1, 1)):
        check(ops, make, data(shape), 1 if len(shape) == 4 else -1, native, 2e-6, "rows")


@pytest.mark.parametrize("make", [softmax, log_softmax])
def test_several_axes_count_as_one_as_before_opset_13(ops, make):
    x = data((2, 3, 4, 5))
    for axis in (1, 2, -1):
        axes = trailing_axes(ops.var(x.shape), axis)
        flat = x.reshape(int(np.prod(x.shape[:axis])), -1)
        for native in (False, True):
            found = ops.apply(make, x, axis=axes, native=native)
            np.testing.assert_allclose(
                found, oracle(flat, 1, make is log_softmax).reshape(x.shape), rtol=2e-6, atol=1e-6
            )
    check(ops, make, data((2, 3, 70)), (1, 2), True, 2e-6, "rows")
    assert trailing_axes(ops.var((2, 3)), 0) == (0, 1)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float64"])
def test_other_floats(ops, kind):
    tolerance = {"float16": 2e-3, "bfloat16": 2e-2, "float64": 1e-13}[kind]
    x = data((3, 70)).astype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind)
    for make in (softmax, log_softmax):
        check(ops, make, x, 1, True, tolerance, "rows")
        check(ops, make, x[:, :9].copy(), 1, True, tolerance)


def test_large_numbers_do_not_overflow_and_infinities_are_as_in_numpy(ops):
    rows = [[1e4, 1e4 - 1, -1e4], [-np.inf, 0, 1], [np.nan, 0, 1], [np.inf, 0, 1], [-np.inf] * 3]
    for width in (3, 99):
        x = np.array([np.resize(row, width) for row in rows], np.float32)
        for make in (softmax, log_softmax):
            for native in (False, True):
                with np.errstate(all="ignore"):
                    wanted = oracle(x, 1, make is log_softmax)
                np.testing.assert_allclose(ops.apply(make, x, axis=1, native=native), wanted, rtol=1e-6, atol=1e-6)


def test_symbolic_dimensions(ops):
    n, m = dimension("n"), dimension("m")
    for shape, given in (((n, m), (3, 21)), ((n, 70), (3, 70)), ((4, m), (4, 5))):
        x = ops.var(shape)
        assert softmax(x).type is x.type
        for axis in (0, 1):
            found = ops.evaluate(softmax(x, axis), {x: data(given)}, native=True)
            np.testing.assert_allclose(found, oracle(data(given), axis, False), rtol=2e-6)


@pytest.mark.parametrize("target", ["native", "x86-64-v3"])
@pytest.mark.parametrize("make", [softmax, log_softmax])
@pytest.mark.parametrize("axes", [0, 1, (0, 2)])
def test_vectors_of_an_open_axis_are_finished_one_by_one(make, axes, target):
    """The innermost axis is not among those that are reduced: what is between is as large as a vector's row."""
    x = lw.var("x", (dimension("n"), 5, dimension("h"), dimension("w")))
    library = lw.compile(lw.Function([x], make(x, axes)), target, jobs=1)
    if axes == 1:
        assert "allocate('global')" not in library.functions[0].loop_ir
    engine = lw.Engine(library)
    for width in (1, 7, 8, 15, 16, 17, 31, 33):
        given = data((2, 5, 3, width), width)
        wanted = oracle(given, axes, make is log_softmax)
        np.testing.assert_allclose(engine([given])[0], wanted, rtol=2e-6, atol=2e-6)


def test_each_row_is_finished_by_the_thread_that_began_it(ops):
    call = softmax(ops.var((6, 128)))
    chosen, _, outputs = ops.implement(call)
    text = str(chosen.schedule(call.attrs, outputs, outputs, lw.resolve_target("native")))
    assert text.startswith("for i0 in parallel(6):")
    assert sum(not line.startswith(" ") for line in text.splitlines()) == 1


def test_empty_tensors(ops):
    for shape, axis in (((0, 5), 1), ((3, 0), 1), ((3, 0), 0)):
        assert ops.apply(softmax, np.zeros(shape, np.float32), axis=axis, native=True).shape == shape


def test_types_and_pattern(ops):
    assert get_op("softmax").pattern is get_op("log_softmax").pattern is OpPattern.COMM_REDUCE
    assert log_softmax(multiply(ops.var((2, 3)), ops.var((3,)))).type is tensor_type((2, 3), "float32")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda v: softmax(v((2, 3)), 2), "axis 2 is not one of a tensor of rank 2"),
        (lambda v: softmax(v((2, 3)), (1, -1)), "name an axis twice"),
        (lambda v: softmax(v((2, 3), "int32")), "x must be of float, bfloat, found int32"),
        (lambda v: trailing_axes(v((2, 3)), 3), "axis 3 is not one of a tensor of rank 2"),
    ],
)
def test_misuse_is_a_type_inference_error(ops, make, message):
    with pytest.raises(TypeInferenceError) as caught:
        make(ops.var)
    assert message in str(caught.value)


@pytest.mark.parametrize("make", [softmax, log_softmax])
@pytest.mark.parametrize("length", [5, 80])
def test_rows_of_nothing_but_infinity_or_with_nan_are_nan_as_in_numpy(ops, make, length):
    x = data((5, length))
    x[1], x[2, 3], x[3, 1:] = -np.inf, np.nan, -np.inf
    with np.errstate(all="ignore"):
        wanted = oracle(x, 1, make is log_softmax)
    np.testing.assert_allclose(ops.apply(make, x, axis=1, native=True), wanted, rtol=1e-6, atol=1e-6)


def test_short_rows_of_an_open_number_have_exponentials_of_one_vector():
    """Of 64 lanes, most would be of nothing."""
    x = lw.var("x", (dimension("n"), dimension("m")))
    library = lw.compile(lw.Function([x], softmax(x, 1)), target="x86-64-v4", jobs=1)
    (function,) = library.functions
    long, short = function.loop_ir.split("\n    else:")
    assert ", 64)] = exp(" in long
    assert ", 16)] = exp(" in short
    assert ", 64)" not in short


@pytest.mark.parametrize("length", [3, 5, 10, 13, 16])
@pytest.mark.parametrize("make", [softmax, log_softmax])
def test_short_rows_are_whole_vectors(make, length):
    """A vector of 10 lanes would be stored as one of 8 and one of 2, and be read as one."""
    x = lw.var("x", (100, length))
    graph = lw.Function([x], make(lw.nn.tanh(x), 1))
    (nest,) = lw.dump(graph, "loop", target="x86-64-v4")
    assert {int(lanes) & (int(lanes) - 1) for lanes in re.findall(r"ramp\([^()]*, 1, (\d+)\)", nest.text)} == {0}
    given = np.random.default_rng(0).normal(size=(100, length)).astype(np.float32)
    (found,) = lw.Engine(lw.compile(graph, jobs=1))([given])
    np.testing.assert_allclose(found, oracle(np.tanh(given), 1, make is log_softmax), rtol=1e-5, atol=1e-6)
