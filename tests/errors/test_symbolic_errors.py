"""Misuse of models with symbolic dimensions: shapes that contradict each other, dimensions that nothing tells."""

from dataclasses import replace

import numpy as np
import pytest

import loopwright as lw
from loopwright import te

N = te.var("N")


def zeros(*shape):
    return np.zeros(shape, np.float32)


@pytest.fixture(scope="module")
def pair():
    a, b = lw.var("a", (N, 3)), lw.var("b", (N, 3))
    return lw.Engine(lw.compile(lw.Function([a, b], lw.nn.add(a, b)), jobs=1))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            (zeros(2, 3), zeros(4, 3)),
            r"input b: float32\[N, 3\] should have extent 2 in dimension 0, found 4 \(N = 2 from dimension 0 of",
        ),
        ((zeros(2, 4), zeros(2, 4)), r"input a should have shape \(N, 3\), found \(2, 4\)"),
        ((zeros(2), zeros(2, 3)), r"input a should have shape \(N, 3\), found \(2,\)"),
    ],
)
def test_shapes_that_contradict_each_other(pair, arrays, message):
    with pytest.raises(lw.RuntimeArgumentError, match=message):
        pair(list(arrays))
    assert pair([zeros(2, 3), zeros(2, 3)])[0].shape == (2, 3)


def test_a_dimension_that_no_input_tells():
    x = lw.var("x", (N + 1,))
    with pytest.raises(lw.ModelError, match=r"input x: float32\[N \+ 1\] does not tell the value of N"):
        lw.compile(lw.Function([x], lw.nn.relu(x)), jobs=1)


def test_an_extent_that_comes_out_negative():
    x = lw.var("x", (1, 1, N))
    weight = lw.const(np.ones((1, 1, 5), np.float32))
    engine = lw.Engine(lw.compile(lw.Function([x], lw.nn.conv(x, weight)), jobs=1))
    assert engine([zeros(1, 1, 5)])[0].shape == (1, 1, 1)
    with pytest.raises(lw.RuntimeArgumentError, match=r"model: N should be at least 5 for nn.conv.*, found 4"):
        engine([zeros(1, 1, 4)])


def test_an_extent_that_several_dimensions_make_negative():
    from loopwright.artifact.block import RunBlock
    from loopwright.artifact.extents import Formula
    from loopwright.runtime.dimensions import make_plan

    a, b = lw.var("a", (N,)), lw.var("b", (te.var("M"),))
    model = lw.compile(lw.Function([a, b], lw.nn.concatenate([a, b])), jobs=1).model
    stage = replace(model.first_stage, extents=(Formula("-", "N", "M"),))
    narrow = replace(model, body=RunBlock((stage,)))
    assert make_plan(narrow, [(3,), (3,)]).outputs == ((6,),)
    with pytest.raises(lw.RuntimeArgumentError, match=r"model: N - M, for N = 2, M = 3, gives a tensor the extent -1"):
        make_plan(narrow, [(2,), (3,)])


def test_a_dimension_that_must_not_be_0():
    x, at = lw.var("x", (N,)), lw.const(np.zeros(2, np.int64))
    engine = lw.Engine(lw.compile(lw.Function([x], lw.nn.take(x, at)), jobs=1))
    assert engine([zeros(1)])[0].shape == (2,)
    with pytest.raises(lw.RuntimeArgumentError, match=r"model: N - 1, for N = 0, gives a tensor the extent -1"):
        engine([zeros(0)])


def test_a_formula_that_has_to_be_a_number_is_checked_by_each_run():
    x = lw.var("x", (1, N, N))
    y = lw.nn.matmul(lw.nn.flatten(x), lw.const(zeros(16, 3)))
    engine = lw.Engine(lw.compile(lw.Function([x], y), jobs=1))
    np.testing.assert_array_equal(engine([np.ones((1, 4, 4), np.float32)])[0], np.zeros((1, 3), np.float32))
    with pytest.raises(lw.RuntimeArgumentError, match=r"N \* N should be 16, found N = 5"):
        engine([np.ones((1, 5, 5), np.float32)])
