"""Convolutions of one channel and open length become products of frames, with the same results; which ones do not."""

import numpy as np
import pytest
import windows

import loopwright as lw
from loopwright import te
from loopwright.compiler.passes.frame_signals import frame_signals
from loopwright.graph import Call, Function
from loopwright.graph.visit import post_order

V3 = "x86-64-v3"


def signals(batch, length, weight, channels=1, **attributes):
    w = np.random.default_rng(0).standard_normal(weight).astype(np.float32)
    x = lw.var("x", (batch, channels, length))
    return Function([x], lw.nn.conv(x, lw.const(w), **attributes)), w


def operators(function):
    return [node.op.name for node in post_order(function.body) if isinstance(node, Call)]


@pytest.mark.parametrize("batch", [1, 3, "N"])
@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (7, (20, 5)), (16, 24), (50, 0)])
def test_a_product_gives_the_same(batch, stride, padding):
    function, w = signals(
        te.var("N") if batch == "N" else batch, te.var("n"), (10, 1, 40), strides=stride, padding=padding
    )
    made = frame_signals(function)
    assert "nn.frames" in operators(made)
    assert made.body.type is function.body.type
    engine = lw.Engine(lw.compile(function, target=V3, jobs=1))
    before, after = (padding, padding) if isinstance(padding, int) else padding
    for count, length in ((1, 40), (1, 173), (3, 64)):
        x = np.random.default_rng(1).standard_normal((count if batch == "N" else batch, 1, length)).astype(np.float32)
        wanted = windows.conv(x.astype(np.float64), w, (stride,), (before, after), (1,), 1)
        np.testing.assert_allclose(np.asarray(engine([x])[0]), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("length", "weight", "attributes"),
    [
        pytest.param(200, (10, 1, 40), {}, id="a known length"),
        pytest.param(None, (10, 1, 5), {}, id="a short window"),
        pytest.param(None, (10, 2, 40), {"channels": 2}, id="two channels"),
        pytest.param(None, (10, 1, 40), {"dilation": 2}, id="a dilated window"),
    ],
)
def test_other_convolutions_stay(length, weight, attributes):
    function, _ = signals(1, te.var("n") if length is None else length, weight, **attributes)
    assert frame_signals(function) is function


def test_weights_in_blocks_stay():
    x, w = lw.var("x", (1, 1, te.var("n"))), np.zeros((2, 1, 40, 8), np.float32)
    function = Function([x], lw.nn.conv1d(x, lw.const(w), kernel_layout="OIW8o"))
    assert frame_signals(function) is function
    assert lw.Engine(lw.compile(function, jobs=1))([np.ones((1, 1, 50), np.float32)])[0].shape == (1, 16, 11)


def test_strict_precision_keeps_the_order_of_the_sums():
    function, _ = signals(1, te.var("n"), (10, 1, 40))
    library = lw.compile(function, target=V3, precision="strict", jobs=1)
    assert any(choice.op == "nn.conv1d" for f in library.functions for choice in f.choices)
