"""Transposed convolutions by constants become convolutions, with the same results; which ones do not."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import loopwright as lw
from loopwright.compiler.passes.convolve_transposed import convolve_transposed
from loopwright.graph import Call, Function
from loopwright.graph.visit import post_order
from loopwright.ops.families.conv.transpose import conv_transpose

CASES = {
    "phases beside each other": ((1, 4, 3, 5), (4, 3, 2, 2), {"strides": 2}),
    "several taps a phase, cut": ((2, 2, 4, 3), (2, 5, 4, 6), {"strides": 2, "padding": (1, 2, 0, 3)}),
    "more than the windows reach": ((1, 2, 3, 3), (2, 3, 3, 3), {"strides": 3, "output_padding": (2, 1)}),
    "groups": ((1, 4, 3, 4), (4, 3, 3, 3), {"padding": 1, "groups": 2}),
    "no stride": ((1, 3, 5, 6), (3, 4, 3, 2), {"padding": (1, 1, 2, 0)}),
    "dilated": ((1, 3, 5, 6), (3, 4, 3, 2), {"padding": 1, "dilation": (2, 3)}),
    "one axis": ((2, 3, 7), (3, 4, 5), {"padding": (2, 1)}),
    "three axes": ((1, 2, 3, 4, 3), (2, 3, 3, 1, 2), {"groups": 2}),
}


def transposed(x, w, attributes):
    values = np.random.default_rng(0).standard_normal(w).astype(np.float32)
    return conv_transpose(lw.var("x", x), lw.const(values), **attributes), values


def operators(function):
    return [node.op.name for node in post_order(function.body) if isinstance(node, Call)]


def scattered(x, w, a, shape):
    """By the definition: each input adds its copy of the window."""
    rank = x.ndim - 2
    reach = [
        (n - 1) * s + (r - 1) * d + 1
        for n, s, r, d in zip(x.shape[2:], a.strides, w.shape[2:], a.dilation, strict=True)
    ]
    y = np.zeros((*shape[:2], *(max(e, p + o) for e, p, o in zip(reach, a.padding, shape[2:], strict=False))))
    parts = zip(np.split(x, a.groups, 1), np.split(w, a.groups), np.split(y, a.groups, 1), strict=True)
    for part, weights, sums in parts:
        for q, r in itertools.product(np.ndindex(x.shape[2:]), np.ndindex(w.shape[2:])):
            at = tuple(i * s + j * d for i, s, j, d in zip(q, a.strides, r, a.dilation, strict=True))
            sums[(..., *at)] += part[(..., *q)] @ weights[(..., *r)]
    return y[(..., *(slice(a.padding[d], a.padding[d] + shape[2 + d]) for d in range(rank)))]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_convolution_gives_the_same(case):
    call, w = transposed(*case)
    x = np.random.default_rng(1).standard_normal(case[0]).astype(np.float32)
    function = Function((call.args[0],), call)
    made = convolve_transposed(function)
    assert operators(made)[0] == f"nn.conv{x.ndim - 2}d"
    assert made.body.type is call.type
    got = np.asarray(lw.Engine(lw.compile(function, jobs=1))([x])[0])
    wanted = scattered(x, w, call.attrs, got.shape)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("x", "w", "attributes"),
    [
        pytest.param((1, 2, 4, 4), (2, 3, 3, 3), {"strides": 2}, id="phases with fewer taps"),
        pytest.param((1, 2, 4, 4), (2, 3, 2, 2), {"strides": 2, "dilation": 2}, id="phases without taps"),
        pytest.param((1, 2, 4, 4), (2, 3, 2, 2), {"padding": 2}, id="inputs that are cut off"),
        pytest.param((1, 2, 4, 4), (2, 3, 2, 1), {"strides": (2, 1)}, id="strides of two sizes"),
        pytest.param((1, 2, 4, 4), (2, 3, 2, 2), {"strides": 2, "groups": 2}, id="phases of groups"),
        pytest.param((1, 2, 4), (2, 3, 2), {"strides": 2}, id="a stride along one axis"),
    ],
)
def test_other_transposed_convolutions_stay(x, w, attributes):
    call, _ = transposed(x, w, attributes)
    function = Function((call.args[0],), call)
    assert convolve_transposed(function) is function


@pytest.mark.parametrize("case", [case for case in CASES.values() if len(case[0]) == 4])
def test_batch_and_images_may_be_open(case):
    (_, channels, *_), w, attributes = case
    call, w = transposed((lw.te.var("N"), channels, lw.te.var("h"), lw.te.var("w")), w, attributes)
    function = Function((call.args[0],), call)
    assert operators(convolve_transposed(function))[0] == "nn.conv2d"
    engine = lw.Engine(lw.compile(function, target="x86-64-v3", jobs=1))
    for shape in ((2, channels, 5, 3), (1, channels, 4, 9)):
        x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        got = np.asarray(engine([x])[0])
        np.testing.assert_allclose(got, scattered(x, w, call.attrs, got.shape), rtol=1e-4, atol=1e-5)


PHASED = {
    "phases with fewer taps": ((1, 4, 5, 6), (4, 3, 3, 3), {"strides": 2, "padding": 1, "output_padding": 1}),
    "five taps": ((1, 2, 4, 5), (2, 3, 5, 5), {"strides": 2, "padding": 2}),
    "strides of two sizes": ((2, 3, 4, 5), (3, 2, 3, 4), {"strides": (1, 3), "padding": (1, 0)}),
    "groups": ((1, 4, 3, 4), (4, 3, 4, 4), {"strides": 2, "groups": 2, "padding": 1}),
    "one axis": ((2, 3, 7), (3, 4, 16), {"strides": 8, "padding": 4}),
    "one axis, uneven": ((1, 3, 7), (3, 4, 7), {"strides": 3, "output_padding": 1}),
    "three axes": ((1, 2, 3, 4, 3), (2, 3, 3, 2, 3), {"strides": (2, 1, 2), "padding": (1, 0, 1)}),
}


@pytest.mark.parametrize("case", PHASED.values(), ids=PHASED)
def test_phases_have_convolutions_of_their_own_where_extents_are_open(case):
    (_, channels, *spatial), w, attributes = case
    rank = len(spatial)
    call, w = transposed((lw.te.var("N"), channels, *(lw.te.var(f"d{k}") for k in range(rank))), w, attributes)
    function = Function((call.args[0],), call)
    made = convolve_transposed(function)
    assert f"nn.conv{rank}d" in operators(made)
    assert not [name for name in operators(made) if "transpose" in name]
    engine = lw.Engine(lw.compile(function, target="x86-64-v3", jobs=1))
    for batch, more in ((1, 0), (2, 3)):
        shape = (batch, channels, *(extent + more for extent in spatial))
        x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        got = np.asarray(engine([x])[0])
        np.testing.assert_allclose(got, scattered(x, w, call.attrs, got.shape), rtol=1e-4, atol=1e-5)


def test_a_convolution_stands_for_it_at_its_origin():
    call, _ = transposed((1, 2, 3, 3), (2, 2, 4, 4), {"strides": 2, "padding": 1})
    call = replace(call, origin=("upsample",))
    made = convolve_transposed(Function((call.args[0],), call)).body
    assert [node.origin for node in post_order(made) if isinstance(node, Call)] == [("upsample",)] * 3


def test_strict_precision_keeps_the_order_of_the_sums():
    call, _ = transposed((1, 2, 3, 3), (2, 2, 2, 2), {"strides": 2})
    library = lw.compile(Function((call.args[0],), call), precision="strict", jobs=1)
    assert any("conv2d_transpose" in choice.op for function in library.functions for choice in function.choices)
