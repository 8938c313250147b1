"""pad, in all its modes, against numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import loopwright as lw
from loopwright import TypeInferenceError, te
from loopwright.graph.node import Var
from loopwright.graph.types import tensor_type
from loopwright.ops.families.pad import pad, pad_by_extents

MODES = ["constant", "edge", "reflect", "wrap"]


@given(st.sampled_from(MODES), st.integers(1, 4), st.integers(0, 7), st.integers(0, 7))
@settings(max_examples=40)
def test_padding_is_numpys(ops, mode, extent, before, after):
    x = np.arange(1, 2 * extent + 1, dtype=np.float32).reshape(extent, 2)
    wanted = np.pad(x, ((before, after), (0, 1)), mode)
    np.testing.assert_array_equal(ops.apply(pad, x, before=(before, 0), after=(after, 1), mode=mode), wanted)
    v = Var("x", tensor_type((te.var("n"), 2), "float32"))
    np.testing.assert_array_equal(ops.evaluate(pad(v, (before, 0), (after, 1), mode), {v: x}), wanted)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 17, 40])
def test_open_rows_are_mirrored_once_where_less_is_added_than_there_is(width):
    x = lw.var("x", (te.var("n"), te.var("m")))
    library = lw.compile(lw.Function([x], lw.nn.pad(x, (1, 3), (0, 2), "reflect")), target="native", jobs=1)
    (function,) = library.functions
    assert [choice.implementation for choice in function.choices] == ["pad.by_less", "pad.generic"]
    assert "%" not in function.loop_ir.split("else")[0].split("in parallel")[1].split("range")[1], function.loop_ir
    for rows in (1, 2, 5):
        data = np.random.default_rng([rows, width]).standard_normal((rows, width), np.float32)
        np.testing.assert_array_equal(lw.Engine(library)(data)[0], np.pad(data, ((1, 0), (3, 2)), "reflect"))


@pytest.mark.parametrize("width", [1, 2, 3, 4, 8, 20])
def test_rows_are_mirrored_to_the_next_multiple_of_an_open_width(width):
    m = te.var("m")
    x = lw.var("x", (2, m))
    library = lw.compile(lw.Function([x], pad_by_extents(x, [0, 0], [0, -m % 7], [x], "reflect")), jobs=1)
    data = np.random.default_rng(width).standard_normal((2, width), np.float32)
    np.testing.assert_array_equal(lw.Engine(library)(data)[0], np.pad(data, ((0, 0), (0, -width % 7)), "reflect"))


@pytest.mark.parametrize("mode", MODES)
def test_native_padding(ops, mode):
    x = np.random.default_rng(0).standard_normal((2, 3, 5, 7), dtype=np.float32)
    found = ops.apply(pad, x, before=(0, 0, 1, 2), after=(0, 0, 3, 4), mode=mode, native=True)
    np.testing.assert_array_equal(found, np.pad(x, ((0, 0), (0, 0), (1, 3), (2, 4)), mode))


def test_values_of_other_dtypes(ops):
    for kind, value in ((np.int64, -7), (np.bool_, True), (np.float64, -np.inf)):
        x = np.ones((2,), kind)
        wanted = np.pad(x, ((1, 2),), constant_values=value)
        np.testing.assert_array_equal(ops.apply(pad, x, before=(1,), after=(2,), value=value), wanted)


def test_negative_counts_take_elements_away(ops):
    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    found = ops.apply(pad, x, before=(-1, 2), after=(1, -2))
    np.testing.assert_array_equal(found, np.pad(x[1:, :-2], ((0, 1), (2, 0))))


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
def test_an_empty_axis_is_not_padded_by_open_counts(ops, mode):
    n = te.var("n")
    x, of = Var("x", tensor_type((0, 3), "float32")), Var("of", tensor_type((n,), "bool"))
    with pytest.raises(TypeInferenceError, match="axis 0 is empty: there is nothing to pad it with"):
        pad_by_extents(x, [n, 0], [0, 0], [of], mode)


def test_padding_that_does_not_fit_is_refused(ops):
    with pytest.raises(TypeInferenceError, match="padding is given for 1 and 2 axes"):
        pad(ops.var((2, 3)), (1,), (1, 1))
    with pytest.raises(TypeInferenceError, match="nothing to pad it with by 'edge'"):
        pad(ops.var((0, 3)), (1, 0), (0, 0), "edge")
    with pytest.raises(TypeInferenceError, match="mode must be one of"):
        pad(ops.var((2,)), (1,), (0,), "mirror")
