"""Normalisations against numpy: types, misuse, values."""

import numpy as np
import pytest

import loopwright as lw
from loopwright.base.errors import TypeInferenceError
from loopwright.graph.layout import Layout, rearranged
from loopwright.graph.types import tensor_type
from loopwright.ops.families.lp_normalize import lp_normalize
from loopwright.ops.families.lrn import lrn
from loopwright.ops.families.norm import batch_norm, instance_norm, layer_norm, rms_norm
from loopwright.te import var as dimension

rng = np.random.default_rng(0)
BOTH = pytest.mark.parametrize("native", [False, True], ids=["interpreted", "native"])


def normal(*shape):
    return rng.normal(size=shape).astype(np.float32)


def along_channels(v, ndim):
    return v.astype(np.float64).reshape(1, -1, *[1] * (ndim - 2))


@BOTH
@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 7), (1, 4, 5, 6), (1, 2, 3, 4, 5)], ids=str)
def test_batch_norm(ops, shape, native):
    x, scale, bias, mean = normal(*shape), normal(shape[1]), normal(shape[1]), normal(shape[1])
    variance = np.abs(normal(shape[1])) + 0.1
    s, b, m, v = (along_channels(a, x.ndim) for a in (scale, bias, mean, variance))
    found = ops.apply(batch_norm, x, scale, bias, mean, variance, native=native, epsilon=1e-3)
    np.testing.assert_allclose(found, (x - m) / np.sqrt(v + 1e-3) * s + b, rtol=1e-5, atol=1e-5)


@BOTH
@pytest.mark.parametrize("shape", [(2, 3, 7), (1, 4, 5, 6), (1, 2, 3, 4, 5)], ids=str)
def test_instance_norm(ops, shape, native):
    x, scale, bias = normal(*shape) + 100, normal(shape[1]), normal(shape[1])
    axes = tuple(range(2, x.ndim))
    wide = x.astype(np.float64)
    s, b = along_channels(scale, x.ndim), along_channels(bias, x.ndim)
    mean, variance = wide.mean(axis=axes, keepdims=True), wide.var(axis=axes, keepdims=True)
    found = ops.apply(instance_norm, x, scale, bias, native=native)
    np.testing.assert_allclose(found, (wide - mean) / np.sqrt(variance + 1e-5) * s + b, rtol=1e-3, atol=1e-3)


@BOTH
@pytest.mark.parametrize(("axis", "weights"), [(-1, (6,)), (2, (5, 6)), (1, (4, 5, 6)), (1, (1, 6)), (0, (6,))])
def test_layer_norm(ops, axis, weights, native):
    x, scale, bias = normal(2, 4, 5, 6), normal(*weights), normal(*weights)
    axes = tuple(range(axis % 4, 4))
    wide = x.astype(np.float64)
    mean, variance = wide.mean(axis=axes, keepdims=True), wide.var(axis=axes, keepdims=True)
    found = ops.apply(layer_norm, x, scale, bias, native=native, axis=axis)
    np.testing.assert_allclose(found, (wide - mean) / np.sqrt(variance + 1e-5) * scale + bias, rtol=1e-4, atol=1e-5)


@BOTH
@pytest.mark.parametrize(("axis", "weights"), [(-1, (6,)), (2, (5, 6)), (1, (1, 6)), (0, (6,))])
def test_rms_norm(ops, axis, weights, native):
    x, scale = normal(2, 4, 5, 6), normal(*weights)
    wide, axes = x.astype(np.float64), tuple(range(axis % 4, 4))
    found = ops.apply(rms_norm, x, scale, native=native, axis=axis, epsilon=0.25)
    root = np.sqrt((wide * wide).mean(axis=axes, keepdims=True) + 0.25)
    np.testing.assert_allclose(found, wide / root * scale, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("make", "shape", "first"), [(layer_norm, (3, 100), 1), (instance_norm, (2, 3, 9, 11), 2)])
def test_long_rows_are_normalised_in_lanes_and_large_means_cancel_nothing(ops, make, shape, first):
    x = normal(*shape) + 1000
    scale, bias = (normal(100), normal(100)) if make is layer_norm else (normal(3), normal(3))
    call = make(*(ops.var(a.shape) for a in (x, scale, bias)))
    assert ops.implement(call)[0].name == f"{call.op.name}.rows"
    wide, axes = x.astype(np.float64), tuple(range(first, x.ndim))
    normalised = (wide - wide.mean(axis=axes, keepdims=True)) / np.sqrt(wide.var(axis=axes, keepdims=True) + 1e-5)
    s, b = (scale, bias) if make is layer_norm else (along_channels(scale, 4), along_channels(bias, 4))
    found = ops.apply(make, x, scale, bias, native=True)
    np.testing.assert_allclose(found, normalised * s + b, rtol=1e-3, atol=1e-3)


@BOTH
@pytest.mark.parametrize("size", [1, 2, 3, 5, 9])
def test_lrn(ops, size, native):
    x = normal(2, 6, 4, 5)
    wanted = local_response(x, size, 0.3, 0.6, 2.0)
    found = ops.apply(lrn, x, native=native, size=size, alpha=0.3, beta=0.6, bias=2.0)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def local_response(x, size, alpha, beta, bias):
    sums = np.zeros(x.shape)
    for c in range(x.shape[1]):
        sums[:, c] = (x[:, max(0, c - (size - 1) // 2) : c + size // 2 + 1].astype(np.float64) ** 2).sum(axis=1)
    return x / (bias + alpha / size * sums) ** beta


@pytest.mark.parametrize("layout", ["", "NCHW8c", "NHWC"])
@pytest.mark.parametrize(("size", "channels", "width"), [(5, 24, 5), (2, 8, 19), (1, 8, 3), (16, 16, 4), (40, 16, 8)])
def test_lrn_in_layouts(ops, layout, size, channels, width):
    x = normal(2, channels, 3, width)
    wanted = local_response(x, size, 0.7, 0.75, 1.5)
    layout_of = Layout(layout or "NCHW")
    given = rearranged(x, Layout("NCHW"), layout_of)
    found = ops.apply(lrn, given, native=True, size=size, alpha=0.7, beta=0.75, bias=1.5, layout=layout)
    np.testing.assert_allclose(found, rearranged(wanted, Layout("NCHW"), layout_of), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("layout", ["", "NCHW8c", "NHWC"])
def test_lrn_of_open_extents(ops, layout):
    n, w = dimension("n"), dimension("w")
    layout_of = Layout(layout or "NCHW")
    shape = {"": (n, 16, w, w), "NCHW8c": (n, 2, w, w, 8), "NHWC": (n, w, w, 16)}[layout]
    x = ops.var(shape)
    a = normal(2, 16, 7, 7)
    found = ops.evaluate(lrn(x, 5, 0.7, layout=layout), {x: rearranged(a, Layout("NCHW"), layout_of)})
    wanted = rearranged(local_response(a, 5, 0.7, 0.75, 1.0), Layout("NCHW"), layout_of)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_lrn_of_open_channels(ops):
    x = ops.var((dimension("n"), 5, dimension("c")))
    a = normal(2, 21, 5)
    found = ops.evaluate(lrn(x, 5, 0.7, layout="NWC"), {x: np.moveaxis(a, 1, -1)})
    wanted = np.moveaxis(local_response(a, 5, 0.7, 0.75, 1.0), 1, -1)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(3, 5), (2, 5, 7), (1, 6, 2, 3, 2, 3)], ids=str)
def test_lrn_of_any_rank(ops, shape):
    x = normal(*shape)
    found = ops.apply(lrn, x, size=4, alpha=0.7)
    np.testing.assert_allclose(found, local_response(x, 4, 0.7, 0.75, 1.0), rtol=1e-5, atol=1e-6)


@BOTH
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("p", [1, 2])
def test_lp_normalize(ops, axis, p, native):
    x = normal(3, 4, 5)
    x[1] = 0
    norms = np.linalg.norm(x.astype(np.float64), ord=p, axis=axis, keepdims=True)
    wanted = np.divide(x, norms, out=np.zeros(x.shape), where=norms != 0)
    np.testing.assert_allclose(ops.apply(lp_normalize, x, native=native, axis=axis, p=p), wanted, rtol=1e-5, atol=1e-6)
    x[0, 0, 0] = np.nan
    assert np.isnan(ops.apply(lp_normalize, x, native=native, axis=axis, p=p)[0, 0, 0])


def test_statistics_of_half_precision_are_taken_in_float32(ops):
    x = np.full((1, 1, 4000), 300, np.float16)  # the sum is beyond float16
    x[0, 0, 0] = 302
    found = ops.apply(instance_norm, x, np.ones(1, np.float16), np.zeros(1, np.float16))
    assert np.isfinite(found).all()
    assert found[0, 0, 0] > 10


def test_types_symbolic_dimensions_too(ops):
    n, w = dimension("n"), dimension("w")
    x, c = ops.var((n, 3, w)), ops.var((3,), name="c")
    kind = tensor_type((n, 3, w), "float32")
    assert batch_norm(x, c, c, c, c).type is kind
    assert instance_norm(x, c, c).type is kind
    assert lrn(x, 3).type is kind
    assert lp_normalize(x).type is kind
    a, ones = normal(2, 3, 5), np.ones(3, np.float32)
    wanted = (a - a.mean(axis=2, keepdims=True)) / np.sqrt(a.var(axis=2, keepdims=True) + 1e-5)
    for native in (False, True):
        y = ops.evaluate(instance_norm(x, c, c), {x: a, c: ones}, native=native)
        np.testing.assert_allclose(y, wanted + 1, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda v: batch_norm(v((2, 3), "int8"), *[v((3,))] * 4), "x must be of floats, found int8"),
        (
            lambda v: batch_norm(v((2, 3)), v((4,)), *[v((3,))] * 3),
            "scale needs one element for each of the 3",
        ),
        (lambda v: batch_norm(v((2, 3)), *[v((3, 1))] * 4), "scale needs one element for each of the 3"),
        (lambda v: batch_norm(v((2,)), *[v((3,))] * 4), "x needs at least 2 axes"),
        (lambda v: instance_norm(v((2, 3)), v((3,)), v((3,))), "x needs at least 3 axes"),
        (lambda v: layer_norm(v((2, 3)), v((2,)), v((3,))), "extents 3 of x and 2 of scale do not broadcast"),
        (lambda v: layer_norm(v((2, 3)), v((2, 2, 3)), v((3,))), "scale must broadcast"),
        (lambda v: layer_norm(v((2, 3)), v((3,)), v((3,)), axis=2), "axis 2 is not one of a tensor of rank 2"),
        (lambda v: rms_norm(v((2, 3)), v((2, 2, 3))), "scale must broadcast to the axes from 1 on"),
        (lambda v: rms_norm(v((2, 3), "int32"), v((3,), "int32")), "x must be of floats, found int32"),
        (lambda v: rms_norm(v((2, 3)), v((3,)), axis=2), "axis 2 is not one of a tensor of rank 2"),
        (lambda v: lrn(v((2, 3, 4)), 0), "LrnAttrs.size must be a positive integer"),
        (lambda v: lp_normalize(v((2, 3)), p=3), "LpNormalizeAttrs.p must be one of 1, 2"),
        (lambda v: lp_normalize(v((2, 3)), axis=5), "axis 5 is not one of a tensor of rank 2"),
    ],
)
def test_misuse_is_a_type_inference_error(ops, make, message):
    with pytest.raises(TypeInferenceError) as caught:
        make(ops.var)
    assert message in str(caught.value)


def test_local_response_normalisation_reads_blocks_of_channels_as_vectors():
    x = lw.var("x", (1, 3, 4, 5, 16))
    (function,) = lw.compile(lw.Function([x], lw.nn.lrn(x, 5, layout="NCHW16c")), "llvm -mcpu=x86-64-v4").functions
    assert function.choices[0].implementation == "nn.lrn.channels"
    assert "// broadcast" not in function.loop_ir  # lanes whose places are computed one by one


def of_largest_numbers(count, dtype):
    """Rows whose sum lies beyond the largest number, and whose mean does not: all of it, all of its negative, some of
    it; and two usual ones."""
    largest = np.finfo(dtype).max
    x = rng.normal(size=(5, count)).astype(dtype)
    x[0], x[1], x[2, :4] = largest, -largest, -largest
    return x


@BOTH
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [7, 20, 96, 300])
def test_rows_of_the_largest_numbers_have_a_finite_layer_norm(ops, count, dtype, native):
    x, scale, bias = of_largest_numbers(count, dtype), *rng.normal(size=(2, count)).astype(dtype)
    found = ops.apply(layer_norm, x, scale, bias, native=native)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[:2], [bias, bias])
    wide = x[3:].astype(np.float64)
    normalised = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(found[3:], normalised * scale + bias, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", ["x86-64", "x86-64-v3"])
def test_an_open_row_of_the_largest_numbers_has_a_finite_layer_norm(ops, target):
    n = dimension("n")
    x, scale, bias = (ops.var((5, n), "float32"), *(ops.var((n,), "float32", name=name) for name in "sb"))
    for count in (5, 20, 300):
        given = [of_largest_numbers(count, np.float32), *normal(2, count)]
        found = ops.evaluate(
            layer_norm(x, scale, bias), dict(zip((x, scale, bias), given, strict=True)), native=True, target=target
        )
        assert np.isfinite(found).all()
        np.testing.assert_array_equal(found[:2], [given[2]] * 2)
