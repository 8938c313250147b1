"""What only moves rows is computed where a depthwise convolution reads them, what is elementwise where a pool reads it
once; other operands stay outside."""

import numpy as np
import pytest
import windows

import loopwright as lw
from loopwright.graph import Function
from loopwright.ops.definition.relations import tensor_argument

nn = lw.nn
HOST = lw.resolve_target("native")
TARGETS = [t for t in ("x86-64-v3", "x86-64") if HOST.features >= lw.resolve_target(t).features]
X = lw.var("x", (1, 12, 5, 6))
DEPTHWISE = np.linspace(-1, 1, 12 * 9, dtype=np.float32).reshape(12, 1, 3, 3)
DENSE = np.ones((12, 12, 3, 3), np.float32)


def shuffled(x, groups=4):
    _, channels, height, width = (int(e) for e in tensor_argument(x.type, "x").shape)
    apart = nn.reshape(x, (1, groups, channels // groups, height, width))
    return nn.reshape(nn.transpose(apart, (0, 2, 1, 3, 4)), (1, channels, height, width))


def names(result):
    report = lw.fusion_report(Function((X,), result))
    return [group.name.removeprefix("fused_") for group in report.groups]


def depthwise(x, weight=DEPTHWISE, **options):
    return nn.conv2d(x, lw.const(weight), padding=1, groups=12, **options)


def test_a_channel_shuffle_is_computed_as_a_depthwise_convolution_reads():
    assert names(nn.relu(depthwise(shuffled(X)))) == ["reshape_transpose_reshape_nn_conv2d_relu"]


def test_what_computes_stays_outside():
    assert names(depthwise(shuffled(nn.relu(X)))) == ["relu", "reshape_transpose_reshape_nn_conv2d"]


def test_a_dense_convolution_reads_each_row_often():
    dense = nn.conv2d(shuffled(X), lw.const(DENSE), padding=1)
    assert names(dense) == ["reshape_transpose_reshape", "nn_conv2d"]


def test_what_moves_elements_within_rows_stays_outside():
    turned = nn.transpose(nn.reshape(X, (1, 12, 6, 5)), (0, 1, 3, 2))
    assert names(depthwise(turned)) == ["reshape_transpose", "nn_conv2d"]


def test_rows_that_others_read_too_are_copied_once():
    rows = shuffled(X)
    assert names(nn.add(depthwise(rows), rows)) == ["reshape_transpose_reshape", "nn_conv2d_add"]


@pytest.mark.parametrize("stride", [1, 2])
def test_shuffled_rows_give_what_copies_of_them_give(stride):
    x = np.random.default_rng(0).standard_normal((1, 12, 5, 6)).astype(np.float32)
    moved = np.ascontiguousarray(x.reshape(1, 4, 3, 5, 6).transpose(0, 2, 1, 3, 4).reshape(x.shape))
    fused = lw.Engine(lw.compile(Function((X,), depthwise(shuffled(X), strides=stride)), jobs=1))
    plain = lw.Engine(lw.compile(Function((X,), depthwise(X, strides=stride)), jobs=1))
    np.testing.assert_array_equal(fused([x])[0], plain([moved])[0])


def affine(x=X):
    scale, shift = (lw.const(np.linspace(low, 2, 12, dtype=np.float32).reshape(12, 1, 1)) for low in (0.5, -2))
    return nn.relu(nn.add(nn.multiply(x, scale), shift))


def test_what_is_elementwise_is_computed_as_a_pool_reads_it_once():
    assert names(nn.avg_pool(affine(), 2, strides=2)) == ["multiply_add_relu_nn_avg_pool"]
    assert names(nn.relu(nn.max_pool(affine(), (2, 3), strides=(2, 3)))) == ["multiply_add_relu_nn_max_pool_relu"]


def test_what_a_pool_or_others_read_again_stays_outside():
    assert names(nn.avg_pool(affine(), 3, strides=2)) == ["multiply_add_relu", "nn_avg_pool"]
    assert names(nn.avg_pool(affine(), 2, strides=2, dilation=2)) == ["multiply_add_relu", "nn_avg_pool"]
    read = affine()
    assert (
        names(nn.multiply(nn.avg_pool(read, 5, strides=5), nn.sum(read, (2, 3), keepdims=True)))[0]
        == "multiply_add_relu"
    )


def test_an_epilogue_stays_with_its_convolution():
    pooled = nn.max_pool(nn.relu(depthwise(X)), 2, strides=2)
    assert names(pooled) == ["nn_conv2d_relu", "nn_max_pool"]


@pytest.mark.parametrize("window", [(2, 3), (17, 18)], ids=["axis by axis", "by loops"])
@pytest.mark.parametrize("pool", [nn.avg_pool, nn.max_pool])
def test_a_pool_gives_what_it_gives_of_copies(pool, window):
    x = np.random.default_rng(0).standard_normal((1, 12, 19, 20)).astype(np.float32)
    source = lw.var("x", x.shape)
    options = {"strides": window, "padding": 1, "ceil_mode": True}
    apart = lw.Engine(lw.compile(Function((source,), affine(source)), jobs=1))([x])[0]
    plain = lw.Engine(lw.compile(Function((source,), pool(source, window, **options)), jobs=1))
    fused = lw.Engine(lw.compile(Function((source,), pool(affine(source), window, **options)), jobs=1))
    np.testing.assert_allclose(fused([x])[0], plain([apart])[0], rtol=1e-6)


BYTES = lw.var("x", (1, 12, 9, 17), "uint8")
FILTERS = np.random.default_rng(1).integers(-128, 128, (12, 1, 3, 3)).astype(np.int8)


def padded(before=(0, 0, 1, 2), after=(0, 0, 0, 1), **options):
    return nn.pad(BYTES, before, after, **options)


def groups_of(result):
    return [group.name.removeprefix("fused_") for group in lw.fusion_report(Function((BYTES,), result)).groups]


def test_a_pad_by_a_zero_point_is_the_copy_that_a_depthwise_convolution_of_bytes_makes():
    alone = nn.conv2d(padded(value=120.0), lw.const(FILTERS), groups=12)
    assert groups_of(alone) == ["pad_nn_conv2d"]
    assert groups_of(nn.conv2d(padded(mode="edge"), lw.const(FILTERS), groups=12)) == ["pad", "nn_conv2d"]
    dense = nn.conv2d(padded(value=120.0), lw.const(np.ones((3, 12, 3, 3), np.int8)))
    assert groups_of(dense) == ["pad", "nn_conv2d"]


@pytest.mark.parametrize("target", [*TARGETS, "native"])
@pytest.mark.parametrize("stride", [1, 2])
def test_bytes_with_a_zero_point_around_them_are_convolved_as_they_are_padded(stride, target):
    x = np.random.default_rng(0).integers(0, 256, (1, 12, 9, 17)).astype(np.uint8)
    around = np.pad(x, ((0, 0), (0, 0), (1, 0), (2, 1)), constant_values=120)
    result = nn.conv2d(padded(value=120.0), lw.const(FILTERS), groups=12, strides=stride, padding=1)
    (found,) = lw.Engine(lw.compile(Function((BYTES,), result), target, jobs=1))(x)
    expected = windows.conv(around, FILTERS, (stride, stride), (1, 1, 1, 1), (1, 1), 12)
    np.testing.assert_array_equal(found, expected.astype(np.int32))
