"""strided_slice and split against numpy's slices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwright import TypeInferenceError, te
from loopwright.graph.node import Var
from loopwright.graph.types import tensor_type
from loopwright.ops.families.slicing import END, split, strided_slice

INDEX = st.one_of(st.integers(-9, 9), st.sampled_from([END, -END, 2**47, -(2**60), 2**63 - 1, -(2**63)]))
STEP = st.one_of(st.integers(-4, -1), st.integers(1, 4), st.just(2**63 - 1))


@given(st.integers(0, 7), INDEX, INDEX, STEP)
@settings(max_examples=40)
def test_a_slice_is_numpys(ops, extent, start, end, step):
    x = np.arange(2 * extent, dtype=np.float32).reshape(2, extent)
    wanted = x[:, start:end:step]
    if end <= -END and step < 0:
        wanted = x[:, start::step]
    found = ops.apply(strided_slice, x, starts=[start], ends=[end], axes=[-1], steps=[step])
    np.testing.assert_array_equal(found, wanted)


@given(st.integers(0, 7), INDEX, INDEX, st.sampled_from([1, 2, -1, -3]))
@settings(max_examples=25)
def test_a_slice_of_a_symbolic_axis_is_numpys(ops, extent, start, end, step):
    x = Var("x", tensor_type((te.var("n"),), "float32"))
    data = np.arange(extent, dtype=np.float32)
    wanted = data[start::step] if end <= -END and step < 0 else data[start:end:step]
    found = ops.evaluate(strided_slice(x, [start], [end], [0], [step]), {x: data})
    np.testing.assert_array_equal(found, wanted)


def test_parts_of_an_open_axis_have_simple_extents(ops):
    """Parts that have as many elements have one extent, however they are written."""
    x = ops.var((te.var("n"),))
    for (start, end, step), extent in {
        (1, END, 1): "max(n - 1, 0)",
        (0, -1, 1): "max(n - 1, 0)",
        (0, -1, 2): "n // 2",
        (1, END, 2): "n // 2",
        (1, -2, 4): "n // 4",
    }.items():
        assert str(strided_slice(x, [start], [end], [0], [step]).type) == f"float32[{extent}]"


def test_slices_of_several_axes(ops):
    x = np.arange(4 * 5 * 6, dtype=np.int32).reshape(4, 5, 6)
    for native in (False, True):
        found = ops.apply(strided_slice, x, starts=[1, 5], ends=[3, -5], axes=[0, 2], steps=[1, -2], native=native)
        np.testing.assert_array_equal(found, x[1:3, :, 5:-5:-2])
    n = te.var("n")
    assert strided_slice(ops.var((n, 8)), [2], [END], [1]).type is tensor_type((n, 6), "float32")


def test_slices_that_do_not_fit_are_refused(ops):
    x = ops.var((3, 4))
    with pytest.raises(TypeInferenceError, match="steps must be integers other than 0"):
        strided_slice(x, [0], [1], [0], [0])
    with pytest.raises(TypeInferenceError, match="name an axis twice"):
        strided_slice(x, [0, 0], [1, 1], [1, -1])
    with pytest.raises(TypeInferenceError, match="must be of one length"):
        strided_slice(x, [0, 0], [1], [0])
    with pytest.raises(TypeInferenceError, match="axis 2 is not one"):
        strided_slice(x, [0], [1], [2])


def test_split(ops):
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    for k, wanted in enumerate(np.split(x, [1, 4], 1)):
        found = ops.apply(lambda v, k=k: split(v, (1, 3, 2), 1)[k], x)
        np.testing.assert_array_equal(found, wanted)
    with pytest.raises(TypeInferenceError, match=r"sections \(1, 2\) do not add up to axis 1"):
        split(ops.var((2, 6)), (1, 2), 1)


def test_a_dimension_is_known_not_to_be_negative(ops):
    time = te.var("T")
    x = ops.var((time + 1, 4))
    assert str(strided_slice(x, [-1], [END], [0]).type) == "float32[1, 4]"
    assert str(strided_slice(x, [1], [END], [0]).type) == "float32[T, 4]"
