"""Attention made of products and softmax becomes one operator, and what the model computes stays."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import nn
from loopwright.compiler.passes.fuse_attention import fuse_attention
from loopwright.graph import Tuple
from loopwright.graph.visit import post_order

HEADS = (2, 3, 5, 8)
rng = np.random.default_rng(0)


def heads(name, shape=HEADS):
    return lw.var(name, shape, "float32")


def scalar(value):
    return lw.const(np.float32(value))


def turned(x):
    return nn.transpose(x, (0, 1, 3, 2))


def swapped(x):
    return nn.transpose(x, (0, 2, 1, 3))


def fused(body, *params):
    function = lw.Function(params, body)
    made = fuse_attention(function)
    return made, [node for node in post_order(made.body) if hasattr(node, "op")]


def names(calls):
    return [call.op.name for call in calls]


Q, K, V = heads("q"), heads("k"), heads("v")
KEYS = nn.transpose(K, (0, 1, 3, 2))
MASK = lw.var("mask", (2, 1, 1, 5), "float32")

PATTERNS = {
    "a divisor of the product": (nn.divide(nn.matmul(Q, KEYS), scalar(4)), 0.25),
    "a factor of the product": (nn.multiply(scalar(0.5), nn.matmul(Q, KEYS)), 0.5),
    "a factor of queries": (nn.matmul(nn.multiply(Q, scalar(0.5)), KEYS), 0.5),
    "factors of queries and keys": (nn.matmul(nn.multiply(Q, scalar(0.5)), nn.multiply(KEYS, scalar(0.5))), 0.25),
    "no scale": (nn.matmul(Q, KEYS), 1.0),
}


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", PATTERNS)
def test_scales_and_masks_are_taken_in(name, masked):
    scores, scale = PATTERNS[name]
    scores = nn.add(MASK, scores) if masked else scores
    _, (call,) = fused(nn.matmul(nn.softmax(scores, -1), V), Q, K, V, MASK)
    assert call.op.name == ("nn.masked_attention" if masked else "nn.attention")
    assert call.attrs.scale == scale
    assert call.args == (Q, K, V, MASK)[: 3 + masked]


def test_heads_split_off_by_transposes_are_read_where_they_are():
    q, k, v = (heads(name, (2, 5, 3, 8)) for name in "qkv")
    scores = nn.matmul(swapped(q), nn.transpose(k, (0, 2, 3, 1)))
    body = swapped(nn.matmul(nn.softmax(scores, -1), swapped(v)))
    _, (call,) = fused(body, q, k, v)
    assert (call.op.name, call.attrs.layout, call.args) == ("nn.attention", "BSHD", (q, k, v))


@pytest.mark.parametrize("layout", ["BHSD", "BSHD"])
def test_caches_whose_positions_are_outermost_are_read_where_they_are(layout):
    k, v = (heads(name, (5, 2, 3, 8)) for name in "kv")
    q = Q if layout == "BHSD" else heads("q", (2, 5, 3, 8))
    keys, values = (nn.transpose(x, (1, 2, 0, 3)) for x in (k, v))
    body = nn.matmul(nn.softmax(nn.matmul(q if layout == "BHSD" else swapped(q), turned(keys)), -1), values)
    _, calls = fused(body if layout == "BHSD" else swapped(body), q, k, v)
    (call,) = calls
    assert (call.attrs.layout, call.attrs.key_layout, call.args) == (layout, "SBHD", (q, k, v))


def repeated(x, count=3):
    """[batch, groups, positions, size] with each head as often as ``count``, as exporters write it."""
    batch, groups, positions, size = x.type.static_shape
    wide = nn.broadcast_to(nn.expand_dims(x, (2,)), (batch, groups, count, positions, size))
    return nn.reshape(wide, (batch, groups * count, positions, size))


def attended(q, k, v):
    return nn.matmul(nn.softmax(nn.matmul(q, turned(k)), -1), v)


def test_repeated_heads_are_shared():
    q, (k, v) = heads("q", (2, 6, 5, 8)), (heads(name, (2, 2, 7, 8)) for name in "kv")
    _, (call,) = fused(attended(q, repeated(k), repeated(v)), q, k, v)
    assert (call.op.name, call.args) == ("nn.attention", (q, k, v))
    cached = [heads(name, (7, 2, 2, 8)) for name in "kv"]
    plain = [nn.transpose(x, (1, 2, 0, 3)) for x in cached]
    _, (call,) = fused(attended(q, *map(repeated, plain)), q, *cached)
    assert (call.attrs.key_layout, call.args) == ("SBHD", (q, *cached))


def test_heads_that_are_repeated_in_another_order_stay():
    """Heads one after the other, as often as there are: those of queries share others."""
    q, (k, v) = heads("q", (2, 6, 5, 8)), (heads(name, (2, 2, 7, 8)) for name in "kv")
    tiled = [nn.concatenate([x, x, x], 1) for x in (k, v)]
    _, calls = fused(attended(q, *tiled), q, k, v)
    assert calls[-1].args[1:] == tuple(tiled)
    other = [nn.reshape(nn.broadcast_to(nn.expand_dims(x, (1,)), (2, 3, 2, 7, 8)), (2, 6, 7, 8)) for x in (k, v)]
    _, calls = fused(attended(q, *other), q, k, v)
    assert calls[-1].args[1:] == tuple(other)


def test_keys_that_are_not_transposed_are():
    k = heads("k", (2, 3, 8, 5))
    _, calls = fused(nn.matmul(nn.softmax(nn.matmul(Q, k), -1), V), Q, k, V)
    assert names(calls) == ["transpose", "nn.attention"]


def not_attention():
    scores = nn.matmul(Q, KEYS)
    weights = nn.softmax(scores, -1)
    yield "weights that are a result", Tuple((nn.matmul(weights, V), weights))
    yield "scores that others read", Tuple((nn.matmul(weights, V), scores))
    yield "softmax over queries", nn.matmul(nn.softmax(scores, -2), V)
    yield "a mask that is scaled too", nn.matmul(nn.softmax(nn.multiply(nn.add(scores, MASK), scalar(2)), -1), V)
    wide = lw.var("wide", (4, 1, 3, 5, 5), "float32")
    yield "a mask that adds an axis", nn.matmul(nn.softmax(nn.add(scores, wide), -1), V)


@pytest.mark.parametrize("name", [name for name, _ in not_attention()])
def test_what_is_no_attention_stays(name):
    function = lw.Function([Q, K, V, MASK], dict(not_attention())[name])
    assert fuse_attention(function) is function


def test_transposes_in_a_row_become_one_or_none():
    x = heads("x")
    assert fused(swapped(swapped(x)), x)[0].body is x
    _, calls = fused(turned(swapped(x)), x)
    assert [call.attrs.axes for call in calls] == [(0, 2, 3, 1)]


def test_heads_of_one_joint_product_are_taken_before_they_are_transposed():
    x = lw.var("x", (2, 5, 3, 4, 8), "float32")
    parts = nn.transpose(x, (2, 0, 3, 1, 4))
    q, k, v = (nn.take(parts, lw.const(np.int64(index)), 0) for index in range(3))
    body = swapped(nn.matmul(nn.softmax(nn.matmul(q, turned(k)), -1), v))
    made, calls = fused(body, x)
    assert names(calls) == ["take", "take", "take", "nn.attention"]
    assert [call.attrs.axis for call in calls[:3]] == [2, 2, 2]
    assert made.body.type is body.type


def test_a_slice_of_a_transpose_is_the_transpose_of_a_slice():
    x, at = lw.var("x", (2, 3, 4, 5), "float32"), lw.var("at", (), "int64")
    made, calls = fused(nn.take(nn.transpose(x, (3, 1, 0, 2)), at, 2), x, at)
    assert names(calls) == ["take", "transpose"]
    data = rng.standard_normal((2, 3, 4, 5)).astype(np.float32)
    (found,) = lw.Engine(lw.compile(made))([data, np.array(1)])
    np.testing.assert_array_equal(found, data.transpose(3, 1, 0, 2)[:, :, 1])


def test_a_model_computes_what_it_did():
    """As exporters write a layer: projections, heads split off, a mask, heads joined."""
    x, mask = lw.var("x", (2, 20, 32), "float32"), lw.var("mask", (2, 1, 1, 20), "float32")
    weights = [rng.standard_normal((32, 32)).astype(np.float32) / 6 for _ in range(3)]
    q, k, v = (nn.reshape(nn.dense(x, lw.const(w), transposed=False), (2, 20, 4, 8)) for w in weights)
    scores = nn.divide(nn.matmul(swapped(q), nn.transpose(k, (0, 2, 3, 1))), scalar(np.sqrt(8)))
    mixed = nn.matmul(nn.softmax(nn.add(scores, mask), -1), swapped(v))
    library = lw.compile(lw.Function([x, mask], nn.reshape(swapped(mixed), (2, 20, 32))))
    assert any("attention" in function.name for function in library.functions)
    assert not any("transpose" in function.name for function in library.functions)

    data = rng.standard_normal((2, 20, 32)).astype(np.float32)
    hidden = np.where(rng.random((2, 1, 1, 20)) < 0.3, np.finfo(np.float32).min, 0).astype(np.float32)
    q, k, v = ((data.astype(np.float64) @ w).reshape(2, 20, 4, 8).swapaxes(1, 2) for w in weights)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(8) + hidden
    e = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = (e / e.sum(-1, keepdims=True) @ v).swapaxes(1, 2).reshape(2, 20, 32)
    np.testing.assert_allclose(lw.Engine(library)([data, hidden])[0], wanted, rtol=1e-5, atol=1e-5)


def test_a_mask_that_a_model_makes_of_the_lowest_number_leaves_rows_their_mean():
    """As exporters write it: (1 - seen) · lowest, where a sample is all padding."""
    seen = lw.var("seen", (2, 1, 1, 5), "float32")
    mask = nn.multiply(nn.subtract(scalar(1), seen), scalar(np.finfo(np.float32).min))
    scores = nn.add(nn.divide(nn.matmul(Q, KEYS), scalar(4)), mask)
    function = lw.Function([Q, K, V, seen], nn.matmul(nn.softmax(scores, -1), V))
    arrays = [rng.standard_normal(HEADS).astype(np.float32) for _ in range(3)]
    arrays.append(np.zeros((2, 1, 1, 5), np.float32))
    arrays[-1][1, ..., :3] = 1
    (found,) = lw.Engine(lw.compile(function, target="x86-64-v3"), threads=1)(arrays)
    mean = arrays[2][0].mean(axis=1, keepdims=True)
    np.testing.assert_allclose(found[0], np.tile(mean, (1, 5, 1)), rtol=1e-5, atol=1e-6)
    raw = np.exp((arrays[0][1] @ arrays[1][1].swapaxes(1, 2) / 4)[..., :3].astype(np.float64))
    weights = raw / raw.sum(-1, keepdims=True)
    np.testing.assert_allclose(found[1], weights @ arrays[2][1, :, :3], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mask", [None, (3, 5, 7), (1, 5, 7), (5, 7), (7,)])
@pytest.mark.parametrize("of_channels", [False, True])
def test_heads_that_are_batches(of_channels, mask):
    """As models multiply them with batches of matrices; or pixels, whose values have the channels first."""
    n, m = (lw.te.var("n"), lw.te.var("m")) if mask is None else (5, 7)
    kinds = [(3, n, 8), (3, 8, m), (3, 16, m) if of_channels else (3, m, 16), mask or (1,)]
    q, k, v, b = params = [lw.var(name, shape, "float32") for name, shape in zip("qkvb", kinds, strict=True)]
    scores = nn.divide(nn.matmul(q, k), scalar(2))
    weights = nn.softmax(scores if mask is None else nn.add(scores, b), -1)
    products = nn.matmul(v, nn.transpose(weights, (0, 2, 1))) if of_channels else nn.matmul(weights, v)
    made, calls = fused(nn.add(products, b) if mask is None else products, *params)
    assert names(calls).count("nn.attention" if mask is None else "nn.masked_attention") == 1
    assert "softmax" not in names(calls)
    arrays = [
        rng.standard_normal([{"n": 5, "m": 7}.get(str(e), e) for e in shape]).astype(np.float32) for shape in kinds
    ]
    x = arrays[0] @ arrays[1] / 2 + (0 if mask is None else arrays[3])
    e = np.exp(x - x.max(-1, keepdims=True))
    e /= e.sum(-1, keepdims=True)
    wanted = arrays[2] @ e.swapaxes(1, 2) if of_channels else e @ arrays[2]
    (found,) = lw.Engine(lw.compile(made, "x86-64-v3", jobs=1))(arrays)
    np.testing.assert_allclose(found, wanted + (arrays[3] if mask is None else 0), rtol=1e-5, atol=1e-5)


def test_heads_that_are_batches_stay_where_they_are_large_or_the_weights_are_read():
    q, k, v = (
        lw.var(name, shape, "float32") for name, shape in zip("qkv", [(3, 5, 8), (3, 8, 7), (3, 7, 16)], strict=True)
    )
    weights = nn.softmax(nn.matmul(q, k), -1)
    assert "softmax" in names(fused(Tuple((nn.matmul(weights, v), weights)), q, k, v)[1])
    wide = lw.var("wide", (3, 7, 65), "float32")
    assert "softmax" in names(fused(nn.matmul(weights, wide), q, k, wide)[1])
    thick = [lw.var(name, shape, "float32") for name, shape in zip("qk", [(3, 5, 33), (3, 33, 7)], strict=True)]
    assert "softmax" in names(fused(nn.matmul(nn.softmax(nn.matmul(*thick), -1), v), *thick, v)[1])
