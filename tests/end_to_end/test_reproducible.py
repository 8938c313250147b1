"""Which bits a sample gets: the same from run to run, for any number of threads, in any batch, and at any place in it.

Each graph is compiled once, with its batch open; the samples run in batches of 1 to ``SAMPLES``, in no order, by
engines of several threads. Vector loops over the batch then have all tails, and guards on it choose all kernels.
"""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te

nn = lw.nn
SAMPLES = 21
TARGET, BASELINE = "x86-64-v3", "x86-64"
"""With fma, and without: the baseline has other tiles, and its vectors are half as long."""


def weight(*shape, dtype="float32"):
    values = np.random.default_rng(np.prod(shape, dtype=int)).standard_normal(shape)
    return lw.const(values.astype(dtype))


def number(value):
    return lw.const(np.float32(value))


def elementwise(x):
    return nn.subtract(nn.multiply(nn.tanh(nn.exp(nn.add(nn.multiply(x, weight(1)), weight(1)))), weight(1)), nn.erf(x))


def layer(columns):
    return lambda x: nn.gelu(nn.add(nn.matmul(x, weight(int(x.type.shape[-1]), columns)), weight(columns)))


def conv(filters, window, **attrs):
    def make(x):
        _, channels, *places = x.type.shape
        w = weight(filters, int(channels) // attrs.get("groups", 1), *window)
        made = {1: nn.conv1d, 2: nn.conv2d, 3: nn.conv3d}[len(places)](x, w, **attrs)
        return nn.relu(nn.add(made, weight(filters, *(1,) * len(places))))

    return make


def residual(x):
    y = conv(32, (3, 3), strides=2, padding=1)(x)
    y = nn.relu(nn.add(y, nn.conv2d(conv(32, (3, 3), padding=1)(y), weight(32, 32, 1, 1))))
    return nn.softmax(nn.matmul(nn.reshape(nn.global_avg_pool(y), (-1, 32)), weight(32, 10)))


def self_attention(x):
    def heads(part):
        del part
        return nn.transpose(nn.reshape(nn.matmul(x, weight(32, 32)), (-1, 10, 2, 16)), (0, 2, 1, 3))

    q, k, v = map(heads, "qkv")
    weights = nn.softmax(nn.multiply(nn.matmul(q, nn.transpose(k, (0, 1, 3, 2))), number(0.25)))
    return nn.layer_norm(
        nn.reshape(nn.transpose(nn.matmul(weights, v), (0, 2, 1, 3)), (-1, 10, 32)), weight(32), weight(32)
    )


def recurrent(x):
    state = nn.tanh(nn.matmul(nn.take(x, lw.const(np.int64(0)), axis=1), weight(12, 32)))
    for step in (1, 2):
        fed = nn.matmul(nn.take(x, lw.const(np.int64(step)), axis=1), weight(12, 32))
        state = nn.tanh(nn.add(fed, nn.matmul(state, weight(32, 32))))
    return state


GRAPHS = {
    "elementwise of scalars": (elementwise, ()),
    "elementwise of short rows": (elementwise, (3,)),
    "elementwise of rows": (elementwise, (33,)),
    "scaled channels": (lambda x: nn.relu(nn.add(nn.multiply(x, weight(8, 1, 1)), weight(8, 1, 1))), (8, 5, 5)),
    "product by a narrow matrix": (layer(5), (17,)),
    "product by a column": (layer(1), (300,)),
    "product by a wide matrix": (layer(300), (64,)),
    "products of sequences": (layer(48), (7, 64)),
    "products of many rows": (layer(256), (64, 256)),
    "product of rows of all samples": (lambda x: layer(48)(nn.reshape(x, (-1, 64))), (7, 64)),
    "product with samples in columns": (
        lambda x: nn.transpose(nn.matmul(weight(16, 64), nn.transpose(x, (1, 0)))),
        (64,),
    ),
    "product of integers": (lambda x: nn.matmul(nn.cast(x, "int8"), weight(64, 32, dtype="int8")), (64,)),
    "convolution": (conv(32, (3, 3), padding=1), (16, 12, 12)),
    "first convolution": (conv(16, (3, 3), strides=2, padding=1), (3, 17, 17)),
    "pointwise convolution": (conv(64, (1, 1)), (32, 7, 7)),
    "pointwise convolution of single places": (conv(50, (1, 1)), (32, 1, 1)),
    "depthwise convolution": (conv(16, (3, 3), padding=1, groups=16), (16, 9, 9)),
    "convolution of groups": (conv(16, (3, 3), padding=1, groups=4), (16, 9, 9)),
    "dilated convolution": (conv(16, (3, 3), padding=2, dilation=2), (8, 9, 9)),
    "convolution of odd extents": (conv(7, (3, 3), padding=1), (5, 9, 11)),
    "convolution over one axis": (conv(24, (5,), padding=2), (16, 30)),
    "convolution over three axes": (conv(8, (3, 3, 3), padding=1), (4, 5, 6, 7)),
    "transposed convolution": (lambda x: nn.conv2d_transpose(x, weight(16, 8, 3, 3), strides=2, padding=1), (16, 5, 5)),
    "average pool": (lambda x: nn.avg_pool(x, 3, 1, padding=1), (4, 9, 9)),
    "pool of whole images": (nn.global_avg_pool, (16, 7, 7)),
    "pool of single places": (nn.global_avg_pool, (16, 1, 1)),
    "softmax of short rows": (nn.softmax, (5,)),
    "softmax of long rows": (nn.softmax, (100,)),
    "softmax over an outer axis": (lambda x: nn.softmax(x, 1), (10, 6)),
    "norm of layers": (lambda x: nn.layer_norm(x, weight(40), weight(40)), (3, 40)),
    "norm of instances": (lambda x: nn.instance_norm(x, weight(6), weight(6)), (6, 9, 9)),
    "norm of neighbours": (lambda x: nn.lrn(x, 5), (16, 5, 5)),
    "sums of short rows": (lambda x: nn.sum(x, 1), (8,)),
    "means of long rows": (lambda x: nn.mean(x, 1), (100,)),
    "norms over an inner axis": (lambda x: nn.l2(x, 1), (20, 6)),
    "sum of whole samples": (lambda x: nn.log_sum_exp(x, (1, 2, 3)), (3, 5, 9)),
    "self-attention": (self_attention, (10, 32)),
    "recurrent network": (recurrent, (3, 12)),
    "residual network": (residual, (3, 24, 24)),
}


def assert_same_bits(library, samples, fixed=()):
    """Whatever the batch, a sample's place in it, the threads, and what ran before."""
    engines = [lw.Engine(library, threads=threads) for threads in (1, 2, 3)]

    def bits(engine, begin, count):
        (found,) = engine([samples[begin : begin + count], *fixed])
        return np.ascontiguousarray(found).reshape(count, -1).view(np.uint8)

    wanted = bits(engines[0], 0, len(samples))
    sizes = np.random.default_rng(1).permutation(np.arange(1, len(samples) + 1))
    for turn, count in enumerate(map(int, sizes)):
        for begin in {0, (len(samples) - count) // 2, len(samples) - count}:
            found = bits(engines[(turn + begin) % 3], begin, count)
            np.testing.assert_array_equal(found, wanted[begin : begin + count], f"samples {begin} to {begin + count}")


def samples_of(shape):
    return 2 * np.random.default_rng(0).standard_normal((SAMPLES, *shape)).astype(np.float32)


SOME = ("elementwise of short rows", "product by a narrow matrix", "convolution", "norm of layers")


@pytest.mark.parametrize(
    ("name", "target", "precision"),
    [
        *((name, TARGET, "standard") for name in GRAPHS),
        *((name, BASELINE, "standard") for name in SOME),
        *((name, TARGET, precision) for name in SOME for precision in ("strict", "fast")),
    ],
)
def test_the_bits_of_a_sample_do_not_depend_on_its_batch(name, target, precision):
    make, shape = GRAPHS[name]
    x = lw.var("x", (te.var("batch"), *shape))
    library = lw.compile(lw.Function([x], make(x)), target=target, jobs=1, precision=precision)
    assert_same_bits(library, samples_of(shape))


@pytest.mark.parametrize("transposed", [False, True])
def test_nor_where_a_factor_is_fed(transposed):
    """Few rows by it would be summed in lanes, many in panels."""
    x, w = lw.var("x", (te.var("batch"), 100)), lw.var("w", (30, 100) if transposed else (100, 30))
    library = lw.compile(lw.Function([x, w], nn.dense(x, w, transposed)), target=TARGET, jobs=1)
    assert_same_bits(library, samples_of((100,)), [np.random.default_rng(2).random(w.type.static_shape, np.float32)])
