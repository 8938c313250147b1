"""unique: values, places, numbers and counts against numpy, of all dtypes, axes and orders."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import TypeInferenceError, te
from loopwright.graph.node import Tuple
from loopwright.ops import nn

RNG = np.random.default_rng(0)


def run(x, *options):
    v = lw.var("x", x.shape, x.dtype.name)
    return lw.Engine(lw.compile(lw.Function([v], Tuple(nn.unique(v, *options)))))([x])


def as_met(x, axis):
    """numpy's results in the order in which elements are met."""
    values, first, which, times = np.unique(x, True, True, True, axis=axis)
    order = np.argsort(first)
    return np.take(values, order, axis or 0), first[order], np.argsort(order)[which.ravel()], times[order]


def check(x, axis=None):
    values, first, which, times = np.unique(x, True, True, True, axis=axis)
    for ascending, wanted in ((True, (values, first, which.ravel(), times)), (False, as_met(x, axis))):
        for found, expected in zip(run(x, axis, ascending), wanted, strict=True):
            assert found.shape == expected.shape
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", ["bool", "int8", "uint8", "int32", "int64", "uint64", "float16", "float32", "float64"])
def test_values_of_all_types(kind):
    check(RNG.integers(0, 9, 50).astype(kind))


@pytest.mark.parametrize("shape", [(1,), (2,), (7, 5), (3, 4, 2), (0,), (0, 3)])
def test_elements_of_all_axes_together(shape):
    check(RNG.integers(0, 4, shape).astype(np.float32))


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_parts_along_an_axis(axis):
    check(RNG.integers(0, 2, (5, 3, 2)), axis)


def test_long_runs_in_all_orders():
    for x in (np.arange(1000), np.arange(1000)[::-1], np.zeros(1000), RNG.permutation(1000), RNG.integers(0, 30, 1025)):
        check(np.ascontiguousarray(x, np.float32))


def test_nan_is_like_itself_and_the_zeros_are_one():
    values, first, which, times = run(np.array([np.nan, 1, np.nan, -0.0, np.inf, 0.0, -np.inf], np.float32))
    np.testing.assert_array_equal(values, [-np.inf, 0, 1, np.inf, np.nan])
    np.testing.assert_array_equal(first, [6, 3, 1, 4, 0])
    np.testing.assert_array_equal(which, [4, 2, 4, 1, 3, 1, 0])
    np.testing.assert_array_equal(times, [1, 2, 1, 1, 2])


def test_a_number_is_the_only_one():
    assert [array.tolist() for array in run(np.array(3.0, np.float32))] == [[3.0], [0], [0], [1]]


def test_extents_may_be_open():
    x = lw.var("x", (te.var("n"), 3))
    engine = lw.Engine(lw.compile(lw.Function([x], Tuple(nn.unique(x, 0)))))
    for n in (1, 0, 9, 40):
        value = RNG.integers(0, 2, (n, 3)).astype(np.float32)
        found = engine([value])
        wanted = np.unique(value, True, True, True, axis=0)
        for ours, theirs in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(ours, theirs.reshape(ours.shape))


def test_misuse_is_refused(ops):
    with pytest.raises(TypeInferenceError, match="axis 2 is not one"):
        nn.unique(ops.var((3, 4)), 2)
