"""The default schedule of chains of elementwise stages: reads are judged after inlining, so that none is a gather."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir.constants import const_int
from loopwright.ir.expr import Load, Ramp
from loopwright.ir.visit import walk

TARGET = "x86-64-v3"


def affine(x, scale, offset, read):
    """``relu(x * scale + offset)`` as three stages, two of which are inlined; ``read`` indexes scale and offset."""
    product = te.compute(x.shape, lambda *i: x[i] * scale[read(*i)], name="product")
    shifted = te.compute(x.shape, lambda *i: product[i] + offset[read(*i)], name="shifted")
    return te.compute(x.shape, lambda *i: te.maximum(shifted[i], 0.0), name="relu")


CASES = {
    "a scale a channel, NCHW": ((1, 128, 14, 14), (128, 1, 1), lambda n, c, i, j: (c, 0, 0)),
    "a scale a channel, few channels": ((2, 5, 14, 14), (5,), lambda n, c, i, j: (c,)),
    "a scale a channel, NHWC": ((1, 14, 14, 128), (128,), lambda n, i, j, c: (c,)),
    "a scale a row": ((64, 100), (64,), lambda i, j: (i,)),
    "a scale a column": ((64, 100), (100,), lambda i, j: (j,)),
    "a scalar": ((64, 100), (1,), lambda i, j: (0,)),
    "a scale a sample": ((6, 8, 9, 10), (6, 1), lambda n, c, i, j: (n, 0)),
    "a scale a column of an image": ((3, 8, 9, 16), (16,), lambda n, c, i, j: (j,)),
}


def gathers(func):
    """The loads of a lowered function whose lanes are neither neighbours nor one element."""
    vectors = [load for load in walk(func.body) if isinstance(load, Load) and load.indices[-1].dtype.lanes > 1]
    return [
        load for load in vectors if not (isinstance(load.indices[-1], Ramp) and const_int(load.indices[-1].stride) == 1)
    ]


def lowered(output, inputs):
    return lw.lower(lw.default_schedule(output, target=TARGET), [*inputs, output], target=TARGET)


@pytest.mark.parametrize("case", CASES)
def test_a_relu_behind_a_broadcast_gathers_nothing(case):
    shape, small, read = CASES[case]
    x, scale, offset = te.placeholder(shape, name="x"), te.placeholder(small, name="s"), te.placeholder(small, name="o")
    output = affine(x, scale, offset, read)
    kernel = lw.build(lw.default_schedule(output, target=TARGET), [x, scale, offset, output], target=TARGET)
    assert not gathers(lowered(output, [x, scale, offset]))
    assert not [cost for cost in kernel.vector_report().costs if "gather" in cost]
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(s, dtype=np.float32) for s in (shape, small, small)]
    result = np.empty(shape, np.float32)
    kernel(*values, result)
    at = np.indices(shape)
    index = tuple(np.broadcast_to(i, shape) for i in read(*at))
    expected = np.maximum(values[0].astype(np.float64) * values[1][index] + values[2][index], 0)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def relu(t, name="relu"):
    return te.compute(t.shape, lambda *i: te.maximum(t[i], 0.0), name=name)


def chain(middle):
    """``relu(middle(x * scale))`` of an image with a scale a channel; ``middle`` maps the tensor between."""
    x, scale = te.placeholder((4, 24, 6, 10), name="x"), te.placeholder((24,), name="s")
    scaled = te.compute(x.shape, lambda n, c, i, j: x[n, c, i, j] * scale[c], name="scaled")
    return [x, scale], relu(middle(scaled))


def flattened(t):
    return te.compute((4, 24, 60), lambda n, c, k: t[n, c, k // 10, k % 10], name="flattened")


def sliced(t):
    return te.compute((4, 20, 6, 8), lambda n, c, i, j: t[n, c + 2, i, j + 1], name="sliced")


def joined(t):
    shape = (4, 48, 6, 10)
    return te.compute(
        shape, lambda n, c, i, j: te.if_then_else(c < 24, t[n, c, i, j], t[n, c - 24, i, j]), name="joined"
    )


def reordered(t):
    return te.compute((24, 4, 6, 10), lambda c, n, i, j: t[n, c, i, j], name="reordered")


MIDDLES = {
    flattened: lambda v: v.reshape(4, 24, 60),
    sliced: lambda v: v[:, 2:22, :, 1:9],
    joined: lambda v: np.concatenate([v, v], 1),
    reordered: lambda v: v.transpose(1, 0, 2, 3),
}


@pytest.mark.parametrize("middle", MIDDLES)
def test_what_stands_between_the_stages_makes_no_gathers(middle):
    inputs, output = chain(middle)
    assert not gathers(lowered(output, inputs))
    kernel = lw.build(lw.default_schedule(output, target=TARGET), [*inputs, output], target=TARGET)
    rng = np.random.default_rng(1)
    x, scale = rng.standard_normal((4, 24, 6, 10), np.float32), rng.standard_normal(24, np.float32)
    expected = np.maximum(MIDDLES[middle](x * scale[:, None, None]), 0)
    result = np.empty(expected.shape, np.float32)
    kernel(x, scale, result)
    np.testing.assert_array_equal(result, expected)


def test_a_scale_a_channel_of_open_extents_gathers_nothing():
    n, c, h, w = (te.var(name) for name in "nchw")
    x, scale, offset = (
        te.placeholder((n, c, h, w), name="x"),
        te.placeholder((c,), name="s"),
        te.placeholder((c,), name="o"),
    )
    output = affine(x, scale, offset, lambda n, c, i, j: (c,))
    assert not gathers(lowered(output, [x, scale, offset]))


def test_only_the_transposed_operand_is_read_at_a_stride():
    x, y = te.placeholder((48, 48), name="x"), te.placeholder((48, 48), name="y")
    total = te.compute(x.shape, lambda i, j: x[i, j] + y[j, i], name="total")
    assert {load.buffer.name for load in gathers(lowered(relu(total), [x, y]))} == {"y"}


@pytest.mark.parametrize("axis", [0, 1], ids=["columns", "rows"])
def test_a_sum_of_a_broadcast_product_gathers_nothing(axis):
    x, scale = te.placeholder((64, 96), name="x"), te.placeholder((96,), name="s")
    product = te.compute(x.shape, lambda i, j: x[i, j] * scale[j], name="product")
    k = te.reduce_axis((0, x.shape[axis]), name="k")
    index = (lambda j: (k, j)) if axis == 0 else (lambda i: (i, k))
    output = te.compute((x.shape[1 - axis],), lambda i: te.sum(product[index(i)], axis=k), name="output")
    assert not {load.buffer.name for load in gathers(lowered(output, [x, scale]))} & {"x", "s"}
