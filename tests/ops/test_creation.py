"""full, arange and one_hot against numpy."""

import numpy as np
import pytest

from loopwright import TypeInferenceError
from loopwright.ops.families.creation import arange, full, one_hot


@pytest.mark.parametrize(("kind", "value"), [("float32", 0.5), ("int64", -(2**60) - 1), ("bool", True), ("uint8", 7)])
def test_full(ops, kind, value):
    found = ops.evaluate(full((2, 3), value, kind))
    np.testing.assert_array_equal(found, np.full((2, 3), value, kind))
    assert found.dtype == kind
    assert ops.evaluate(full((), value, kind)).shape == ()


@pytest.mark.parametrize("arguments", [(0, 5, 1), (10, -3, -4), (3, 3, 1), (5, 0, 1)])
def test_arange(ops, arguments):
    np.testing.assert_array_equal(ops.evaluate(arange(*arguments)), np.arange(*arguments))


def test_arange_of_floats(ops):
    np.testing.assert_allclose(ops.evaluate(arange(0.5, 2, 0.25, "float32")), np.arange(0.5, 2, 0.25), rtol=1e-6)


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.float32])
def test_one_hot(ops, axis, kind):
    indices = np.array([[0, 3, 4], [7, 2, 1]]).astype(kind)
    hot = (np.arange(5) == indices[..., None].astype(np.int64)).astype(np.float32) * 2 - 1
    off, on = np.float32(-1), np.float32(1)
    wanted = np.moveaxis(hot, -1, axis)
    np.testing.assert_array_equal(ops.apply(one_hot, indices, off, on, depth=5, axis=axis), wanted)


def test_negative_indices_count_from_the_end(ops):
    found = ops.apply(one_hot, np.array([-1, -5, -6]), np.int32(0), np.int32(1), depth=5)
    np.testing.assert_array_equal(found, [[0, 0, 0, 0, 1], [1, 0, 0, 0, 0], [0] * 5])


def test_misuse_is_refused(ops):
    indices, off, on = ops.var((3,), "int64"), ops.var(()), ops.var(())
    with pytest.raises(TypeInferenceError, match="shape must be integers of 0 or more"):
        full((-1,), 0)
    with pytest.raises(TypeInferenceError, match="step other than 0"):
        arange(0, 5, 0)
    with pytest.raises(TypeInferenceError, match="depth must be a positive integer"):
        one_hot(indices, off, on, 0)
    with pytest.raises(TypeInferenceError, match="axis 2 is not one"):
        one_hot(indices, off, on, 4, 2)
    with pytest.raises(TypeInferenceError, match="off and on must be of rank 0"):
        one_hot(indices, off, ops.var((1,)), 4)
    with pytest.raises(TypeInferenceError, match="off is float32, but on is int32"):
        one_hot(indices, off, ops.var((), "int32"), 4)
