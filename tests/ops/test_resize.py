"""resize and repeat: forms, dtypes, misuse. The values of resize are tested with the converters of ONNX."""

import numpy as np
import pytest

from loopwright import TypeInferenceError, te
from loopwright.ops.repeat import repeat
from loopwright.ops.resize import Interpolation, Resized, resize


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_repeat(ops, axis):
    x = np.arange(24, dtype=np.int64).reshape(2, 3, 4)
    np.testing.assert_array_equal(ops.apply(repeat, x, times=3, axis=axis), np.repeat(x, 3, axis))


def test_repeat_of_a_symbolic_axis(ops):
    x = ops.var((te.var("n"), 3))
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(ops.evaluate(repeat(x, 2, 0), {x: data}), np.repeat(data, 2, 0))
    with pytest.raises(TypeInferenceError, match="known extents after axis 0"):
        repeat(ops.var((2, te.var("n"))), 2, 0)


def test_whole_factors_repeat_without_a_table(ops):
    made = resize(ops.var((1, 2, 3, 4)), [Resized(2, 6, 2.0)], Interpolation(coordinates="asymmetric", nearest="floor"))
    assert made.op.name == "reshape"
    assert resize(ops.var((1, 2, 3, 4)), [Resized(2, 3, 1.0)], Interpolation()).name == "x"


def test_integers_are_truncated(ops):
    x = np.array([[0, 10, 20]], np.int32)
    found = ops.apply(resize, x, axes=[Resized(1, 5, 5 / 3)], how=Interpolation("linear", "align_corners"))
    np.testing.assert_array_equal(found, [[0, 5, 10, 15, 20]])


def test_misuse_is_refused(ops):
    x = ops.var((1, 1, 3, 4))
    for how, message in (
        (Interpolation("bilinear"), "no mode 'bilinear'"),
        (Interpolation(coordinates="corners"), "no coordinate transformation 'corners'"),
        (Interpolation(nearest="round"), "no rounding 'round'"),
    ):
        with pytest.raises(TypeInferenceError, match=message):
            resize(x, [Resized(2, 5, 5 / 3)], how)
    with pytest.raises(TypeInferenceError, match="needs known extents"):
        resize(ops.var((te.var("n"),)), [Resized(0, 5, 2.0)], Interpolation())
    with pytest.raises(TypeInferenceError, match="is empty"):
        resize(ops.var((0,)), [Resized(0, 5, 2.0)], Interpolation())
