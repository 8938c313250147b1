"""Average pools go before pointwise convolutions, with the same results; which ones do not."""

import numpy as np
import pytest

import loopwright as lw
from loopwright.compiler.passes.average_first import average_first
from loopwright.graph import Call, Function, Tuple
from loopwright.graph.visit import post_order
from loopwright.ops.families.binary import add
from loopwright.ops.families.conv.conv import conv
from loopwright.ops.families.pool import avg_pool, max_pool

rng = np.random.default_rng(3)
X = lw.var("x", (2, 4, 5, 7))


def constant(*shape):
    return lw.const(rng.standard_normal(shape).astype(np.float32))


def pointwise(x=X, filters=6, **attributes):
    return conv(x, constant(filters, 4 // attributes.get("groups", 1), 1, 1), **attributes)


def shifted(shape=(6, 1, 1)):
    return add(pointwise(), constant(*shape))


def operators(function):
    return [node.op.name for node in post_order(function.body) if isinstance(node, Call)]


def turned():
    yield "a quarter is left", avg_pool(pointwise(), 2, strides=2)
    yield "groups", avg_pool(pointwise(groups=2), 2, strides=2)
    yield "padding that does not count", avg_pool(shifted(), 3, strides=2, padding=1)
    yield "padding that counts as zeros", avg_pool(pointwise(), 3, strides=2, padding=1, count_include_pad=True)
    yield "windows beyond the end", avg_pool(shifted((1, 6, 1, 1)), (2, 3), strides=(2, 3), ceil_mode=True)
    yield "the whole image", avg_pool(shifted(), (5, 7))
    yield "twice", avg_pool(avg_pool(pointwise(), 2, strides=2), 2, strides=2)


@pytest.mark.parametrize("pool", [case[1] for case in turned()], ids=[case[0] for case in turned()])
def test_a_pool_before_the_convolution_gives_the_same(pool):
    function = Function([X], pool)
    made = average_first(function)
    names = operators(made)
    assert names.index("nn.avg_pool") < names.index("nn.conv2d")
    assert made.body.type is pool.type
    data = rng.standard_normal((2, 4, 5, 7)).astype(np.float32)
    wanted, got = (
        lw.Engine(lw.compile(f, jobs=1, precision=p))([data])[0] for f, p in ((function, "strict"), (made, "standard"))
    )
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def kept():
    plain = pointwise()
    yield "as many elements", avg_pool(pointwise(), 3, padding=1)
    yield "another reads the convolution", Tuple((avg_pool(plain, 2, strides=2), plain))
    yield "a maximum", max_pool(pointwise(), 2, strides=2)
    yield "a wider window", avg_pool(conv(X, constant(6, 4, 3, 3), padding=1), 2, strides=2)
    yield "strides", avg_pool(pointwise(strides=2), 2, strides=2)
    yield "a border", avg_pool(pointwise(padding=1), 2, strides=2)
    yield "a shift drawn to zero", avg_pool(shifted(), 3, strides=2, padding=1, count_include_pad=True)
    yield "a shift per element", avg_pool(shifted((6, 5, 7)), 2, strides=2)


@pytest.mark.parametrize("body", [case[1] for case in kept()], ids=[case[0] for case in kept()])
def test_other_pools_stay(body):
    function = Function([X], body)
    assert average_first(function) is function


def test_strict_precision_keeps_the_order():
    function = Function([X], avg_pool(pointwise(), 2, strides=2))
    kinds = {
        p: [f.name for f in lw.compile(function, jobs=1, precision=p).model.functions] for p in ("strict", "standard")
    }
    assert "avg_pool" in kinds["strict"][-1]
    assert "conv2d" in kinds["standard"][-1]
