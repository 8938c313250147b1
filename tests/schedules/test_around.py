"""What is fused behind an operator and costs too much to be computed for each of its readers is a stage of its own: all
implementations have to do with that."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import nn


def floats(*shape):
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def constant(*shape):
    return lw.const(floats(*shape))


ANCHORS = {
    "packed_matmul": ((1, 32), lambda x: nn.matmul(x, constant(32, 3))),
    "many_rows": ((33, 40), lambda x: nn.matmul(x, constant(40, 24))),
    "by_a_value": ((3, 40), lambda x: nn.matmul(x, nn.transpose(x, (1, 0)))),
    "batch_matmul": ((2, 5, 24), lambda x: nn.matmul(x, nn.transpose(x, (0, 2, 1)))),
    "dots": ((2, 512), lambda x: nn.matmul(x, nn.transpose(x, (1, 0)))),
    "conv2d": ((1, 8, 9, 9), lambda x: nn.conv2d(x, constant(16, 8, 3, 3), padding=1)),
    "winograd": ((1, 16, 24, 24), lambda x: nn.conv2d(x, constant(32, 16, 3, 3), padding=1)),
    "pointwise": ((1, 16, 7, 7), lambda x: nn.conv2d(x, constant(24, 16, 1, 1))),
    "depthwise": ((1, 16, 12, 12), lambda x: nn.conv2d(x, constant(16, 1, 3, 3), padding=1, groups=16)),
    "conv2d_transpose": ((1, 8, 6, 6), lambda x: nn.conv2d_transpose(x, constant(8, 8, 2, 2), strides=2)),
    "short_rows": ((40, 17), lambda x: x.sum(axis=1)),
    "long_rows": ((40, 200), lambda x: x.sum(axis=1)),
    "transpose": ((40, 33), lambda x: nn.transpose(x, (1, 0))),
    "pool": ((1, 8, 20, 20), lambda x: nn.avg_pool(x, (3, 3))),
}


@pytest.mark.parametrize("target", ["x86-64", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("anchor", ANCHORS)
def test_what_costs_much_and_is_read_twice_stands_between_an_operator_and_its_output(anchor, target):
    shape, made = ANCHORS[anchor]
    x = lw.var("x", shape, "float32")
    value = made(x)
    costly = nn.softsign(value)
    function = lw.Function([x], nn.maximum(costly, value * 0.5) * costly)
    library = lw.compile(function, target, jobs=1)  # a warning, of an implementation that is refused, fails the test
    array = floats(*shape)
    (before,) = lw.Engine(lw.compile(lw.Function([x], value), "native", jobs=1))([array])
    expected = before / (1 + np.abs(before))
    expected = np.maximum(expected, before * 0.5) * expected
    if target != "x86-64-v4":
        (found,) = lw.Engine(library)([array])
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
