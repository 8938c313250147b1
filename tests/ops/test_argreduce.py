"""argmax and argmin: types, misuse, values against numpy, ties and NaN."""

import ml_dtypes
import numpy as np
import pytest

import loopwright as lw
from loopwright.base.errors import TypeInferenceError
from loopwright.graph.types import tensor_type
from loopwright.ops.families.argreduce import argmax, argmin
from loopwright.te import var as dimension

MAKERS = {"argmax": (argmax, np.argmax), "argmin": (argmin, np.argmin)}


def last(oracle, x, axis):
    """The last of equals: the first of the reversed axis."""
    return x.shape[axis] - 1 - oracle(np.flip(x, axis), axis=axis)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("kind", ["float32", "bfloat16", "int32", "bool"])
@pytest.mark.parametrize("native", [False, True], ids=["interpreted", "native"])
def test_positions_are_numpys_with_many_ties(ops, name, kind, native):
    make, oracle = MAKERS[name]
    x = np.random.default_rng(0).integers(0, 4, (2, 5, 70)).astype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind)
    comparable = x.astype(np.float64)
    for axis in (0, 1, -1):
        found = ops.apply(make, x, axis=axis, native=native)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, oracle(comparable, axis=axis))
        found = ops.apply(make, x, axis=axis, keepdims=True, select_last_index=True, native=native)
        np.testing.assert_array_equal(found, np.expand_dims(last(oracle, comparable, axis), axis))


@pytest.mark.parametrize("name", MAKERS)
def test_a_nan_wins_and_the_dtypes_least_value_is_found(ops, name):
    make, oracle = MAKERS[name]
    rows = [[1, np.nan, 5, np.nan, -9], [-np.inf] * 5, [np.inf] * 5, [3, -np.inf, np.inf, np.inf, 2]]
    for width in (5, 73):
        x = np.array([np.resize(row, width) for row in rows], np.float32)
        for native in (False, True):
            np.testing.assert_array_equal(ops.apply(make, x, axis=1, native=native), oracle(x, axis=1))
        found = ops.apply(make, x, axis=1, select_last_index=True, native=native)
        np.testing.assert_array_equal(found, last(oracle, x, 1))
    small = np.array([[-128, -128, 127, 127]], np.int8)
    np.testing.assert_array_equal(ops.apply(make, small, axis=1), oracle(small, axis=1))


@pytest.mark.parametrize("name", MAKERS)
def test_open_rows_behind_an_axis_of_one_are_folded_side_by_side(name):
    """As the scores of one text: that axis is no part of a row's number."""
    make, oracle = MAKERS[name]
    x = lw.var("x", (1, dimension("n"), 54))
    library = lw.compile(lw.Function([x], make(x, 2)))
    assert [f.choices[0].implementation for f in library.functions] == [f"{name}.short_rows"]
    engine = lw.Engine(library)
    for rows in (1, 16, 37):
        data = np.random.default_rng(rows).integers(0, 40, (1, rows, 54)).astype(np.float32)
        np.testing.assert_array_equal(engine([data])[0], oracle(data, axis=2))


def test_types(ops):
    n = dimension("n")
    assert argmax(ops.var((n, 3, 4)), -1).type is tensor_type((n, 3), "int64")
    assert argmin(ops.var((n, 3, 4)), 1, keepdims=True).type is tensor_type((n, 1, 4), "int64")
    x = ops.var((n, 3))
    data = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)
    for native in (False, True):
        np.testing.assert_array_equal(ops.evaluate(argmax(x, 0), {x: data}, native=native), data.argmax(0))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda v: argmax(v((2, 3)), 2), "axis 2 is not one of a tensor of rank 2"),
        (lambda v: argmin(v(()), 0), "axis 0 is not one of a tensor of rank 0"),
    ],
)
def test_misuse_is_a_type_inference_error(ops, make, message):
    with pytest.raises(TypeInferenceError) as caught:
        make(ops.var)
    assert message in str(caught.value)
