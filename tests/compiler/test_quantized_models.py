"""Operators between DequantizeLinear and QuantizeLinear are one integer operator with its epilogue; the results are
those of the definition in float64, but for what lies halfway between two steps."""

import numpy as np
import pytest
import windows
from quantized_numbers import SIGNS, Numbers, check, dequantized, quantized, real, steps

import loopwright as lw
from loopwright.artifact.options import CodegenOptions
from loopwright.compiler.passes.graph_passes import run_graph_passes
from loopwright.compiler.passes.merge_scales import merge_scales
from loopwright.compiler.settings import CompileSettings
from loopwright.graph import Call, Function, Tuple
from loopwright.graph.visit import post_order

nn = lw.nn
TARGET = lw.resolve_target("x86-64-v3")


def compiled(params, body, **options):
    return lw.compile(Function(params, body), target=TARGET, jobs=1, **options)


def assert_integer(library):
    """Bytes are multiplied, and nothing is dequantized by itself."""
    assert any("byte" in function.implementation for function in library.functions)
    assert not any(name.startswith("fused_dequantize") for name in names(library))


def calls(function):
    return [node for node in post_order(function.body) if isinstance(node, Call)]


def names(library):
    return [function.name for function in library.functions]


def run(library, *values):
    return lw.Engine(library, threads=1)(list(values))


CONVOLUTIONS = {  # x, weight, options
    "window": ((1, 8, 9, 10), (6, 8, 3, 3), {"padding": 1}),
    "pointwise": ((2, 18, 5, 7), (7, 18, 1, 1), {}),
    "strided": ((1, 16, 9, 8), (8, 16, 3, 3), {"strides": 2, "padding": (0, 1, 1, 0)}),
    "groups": ((1, 12, 6, 6), (8, 6, 3, 3), {"groups": 2, "padding": 1}),
    "dilated": ((1, 5, 11, 12), (4, 5, 3, 2), {"dilation": (2, 1), "padding": 2}),
    "depthwise": ((1, 6, 7, 9), (6, 1, 3, 3), {"groups": 6, "padding": 1}),
    "first layer": ((1, 3, 16, 16), (8, 3, 7, 7), {"strides": 2, "padding": 3}),
    "one axis": ((2, 7, 20), (3, 7, 5), {"padding": 2}),
}
CASES = [(case, *SIGNS[n % 4], n % 3 == 0, n % 2 == 0) for n, case in enumerate([*CONVOLUTIONS, "window", "strided"])]


@pytest.mark.parametrize(("case", "kind", "weight_kind", "per_filter", "symmetric"), CASES)
def test_a_convolution_with_bias_and_relu(case, kind, weight_kind, per_filter, symmetric):
    shape, filters, options = CONVOLUTIONS[case]
    numbers = Numbers(len(case))
    x, dx, value, rx = numbers.activations(shape, kind)
    w, rw = numbers.weights(filters, weight_kind, 0 if per_filter else None, symmetric)
    bias = numbers.rng.uniform(-1, 1, (filters[0], *(1,) * (len(shape) - 2))).astype(np.float32)
    scale, zero = 0.05, numbers.zero(kind)
    y = quantized(nn.relu(nn.add(nn.conv(dx, w, **options), lw.const(bias))), scale, zero)
    library = compiled([x], y)
    rank = len(shape) - 2
    steps_of, pads, spread = (options.get(k, d) for k, d in (("strides", 1), ("padding", 0), ("dilation", 1)))
    each = [v if isinstance(v, tuple) else (v,) * n for v, n in ((steps_of, rank), (pads, 2 * rank), (spread, rank))]
    wanted = windows.conv(rx, rw, *each, options.get("groups", 1))
    check(run(library, value)[0], np.maximum(wanted + bias, 0), scale, zero)
    assert_integer(library)
    assert names(library)[-1].endswith("relu_quantize")


@pytest.mark.parametrize(("kind", "weight_kind"), SIGNS)
@pytest.mark.parametrize("form", ["rows", "few rows", "batch", "odd", "Gemm"])
def test_a_product_by_weights(form, kind, weight_kind):
    rows = {"rows": (64, 32), "few rows": (2, 36), "batch": (3, 5, 20), "odd": (7, 13), "Gemm": (9, 24)}[form]
    numbers = Numbers(len(form))
    x, dx, value, rx = numbers.activations(rows, kind)
    turned = form == "Gemm"
    shape = (40, rows[-1]) if turned else (rows[-1], 40)
    w, rw = numbers.weights(shape, weight_kind, None if form == "odd" else (0 if turned else 1), form != "batch")
    scale, zero = 0.3, numbers.zero(kind)
    product = nn.dense(dx, w, transposed=True) if turned else nn.matmul(dx, w)
    library = compiled([x], quantized(product, scale, zero))
    check(run(library, value)[0], rx @ (rw.T if turned else rw), scale, zero)
    assert_integer(library)


def test_a_product_of_two_activations():
    numbers = Numbers()
    a, da, va, ra = numbers.activations((2, 6, 16), "uint8")
    b, db, vb, rb = numbers.activations((2, 16, 9), "uint8", 0.01)
    library = compiled([a, b], quantized(nn.matmul(da, db), 0.2, np.uint8(131)))
    check(run(library, va, vb)[0], ra @ rb, 0.2, np.uint8(131))


def test_a_sum_with_what_is_dequantized_is_in_the_epilogue():
    """As at the end of a residual block, whose input several read: each dequantizes it."""
    numbers = Numbers()
    x, dx, value, rx = numbers.activations((1, 8, 6, 6), "uint8")
    w, rw = numbers.weights((8, 8, 3, 3), "int8", 0)
    y = quantized(nn.relu(nn.add(nn.conv(dx, w, padding=1), dx)), 0.06, np.uint8(3))
    library = compiled([x], y)
    wanted = windows.conv(rx, rw, (1, 1), (1,) * 4, (1, 1), 1)
    check(run(library, value)[0], np.maximum(wanted + rx, 0), 0.06, np.uint8(3))
    assert_integer(library)
    assert names(library)[-1].endswith("dequantize_dequantize_add_relu_quantize")


def test_what_moves_elements_moves_bytes():
    numbers = Numbers()
    x, dx, value, rx = numbers.activations((1, 6, 8, 8), "int8")
    moved = nn.strided_slice(nn.transpose(nn.max_pool(dx, 2, strides=2), (0, 2, 3, 1)), [1], [3], [1])
    both = nn.concatenate([moved, moved], 3)
    library = compiled([x], Tuple((nn.reshape(both, (2, -1)), nn.take(dx, lw.const(np.int64(2)), 1))))
    pooled = rx.reshape(1, 6, 4, 2, 4, 2).max((3, 5)).transpose(0, 2, 3, 1)[:, 1:3]
    wanted = np.concatenate([pooled, pooled], 3).reshape(2, -1), rx[:, 2]
    for found, y in zip(run(library, value), wanted, strict=True):
        np.testing.assert_allclose(found, y, rtol=1e-6, atol=1e-6)
    assert [name for name in names(library) if "dequantize" in name] == [names(library)[-2], names(library)[-1]]


def test_what_is_dequantized_and_quantized_again_by_the_same_scale_is_as_it_was():
    numbers = Numbers()
    x, dx, value, _ = numbers.activations((1, 6, 8, 8), "uint8")
    same = quantized(nn.transpose(dx, (0, 2, 3, 1)), 0.02, dx.args[2].value)
    assert names(compiled([x], same)) == ["fused_transpose"]
    np.testing.assert_array_equal(run(compiled([x], same), value)[0], value.transpose(0, 2, 3, 1))


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.5), (None, 0.75), (-0.5, None)])
def test_scales_are_merged_through_limits(low, high):
    """Nothing is divided: what is quantized has been dequantized by the quotient of both scales, and the limits are
    such quotients."""
    x, dx, value, rx = Numbers().activations((8, 40), "uint8", 0.05)
    function = Function([x], quantized(nn.clip(dx, low, high), 0.021, np.uint8(100)))
    merged = merge_scales(function)
    before, last = (next(c for c in calls(merged) if c.op.name == name) for name in ("dequantize", "quantize"))
    quotient = np.float32(np.float32(0.05) / np.float64(np.float32(0.021)))
    assert (before.args[1].value, last.args[1].value) == (quotient, 1)
    found = run(compiled([x], merged.body), value)[0]
    check(found, np.clip(rx, low, high), 0.021, np.uint8(100))


def test_a_scale_is_not_merged_with_a_limit_that_its_quotient_would_lose():
    x, dx, _, _ = Numbers().activations((8, 40), "uint8", 1e30)
    function = Function([x], quantized(nn.clip(dx, -1.0, 1e30), 1e-30, np.uint8(100)))
    assert merge_scales(function) is function


def test_what_is_quantized_and_dequantized_is_rounded_and_clipped():
    x = lw.var("x", (4, 9))
    value = np.random.default_rng(0).uniform(-40, 40, (4, 9)).astype(np.float32)
    y = dequantized(quantized(nn.negative(x), 0.1, np.int8(5)), 0.1, np.int8(5))
    (found,) = run(compiled([x], nn.relu(y)), value)
    wanted = np.maximum((np.clip(np.rint(-value / np.float32(0.1)) + 5, -128, 127) - 5) * np.float32(0.1), 0)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize(
    "scales", [(1e-30, 1e-12, 0.5), (1e-20, 1e-25, 1e-38), (3e38, 1e-38, 90.0), (1e-30, 1e30, 1e4)]
)
def test_scales_at_the_ends_of_what_floats_hold(scales):
    numbers = Numbers()
    x, dx, value, rx = numbers.activations((4, 16), "uint8", scales[0])
    weight = numbers.bytes((16, 8), "int8")
    y = nn.matmul(dx, dequantized(lw.const(weight), scales[1], np.int8(0)))
    library = compiled([x], quantized(y, scales[2], np.uint8(7)))
    check(run(library, value)[0], rx @ real(weight, scales[1], 0), scales[2], np.uint8(7))


def operators(function, precision="standard"):
    passed = run_graph_passes(function, CompileSettings(TARGET, CodegenOptions(precision)))
    return [node.op.name for node in post_order(passed.body) if isinstance(node, Call)]


def test_strict_precision_computes_each_operator_by_itself():
    numbers = Numbers()
    x, dx, _, _ = numbers.activations((4, 16), "uint8")
    w, _ = numbers.weights((16, 8), "int8")
    function = Function([x], quantized(nn.matmul(dx, w), 0.5, np.uint8(7)))
    assert operators(function, "strict").count("dequantize") == 2
    assert operators(function).count("dequantize") == 1  # of the sums


def test_bytes_that_are_read_elsewhere_stay_signed():
    x = lw.var("x", (4, 9))
    q = quantized(x, 0.1, np.int8(5))
    both = Function([x], Tuple((q, dequantized(q, 0.1, np.int8(5)))))
    library = compiled([x], both.body)
    value = np.random.default_rng(0).uniform(-20, 20, (4, 9)).astype(np.float32)
    found, again = run(library, value)
    np.testing.assert_array_equal(found, np.clip(np.rint(value / np.float32(0.1)) + 5, -128, 127))
    np.testing.assert_allclose(again, (found.astype(np.float32) - 5) * np.float32(0.1), rtol=1e-6)


def test_what_several_read_of_an_epilogue_is_computed_in_registers():
    """As in a GELU whose every step is quantized, which reads the quantized product twice."""
    numbers = Numbers()
    x, dx, value, rx = numbers.activations((16, 32), "uint8")
    w, rw = numbers.weights((32, 24), "int8")
    scale, zero = np.float32(0.05), np.uint8(120)
    product = dequantized(quantized(nn.matmul(dx, w), scale, zero), scale, zero)
    library = compiled([x], quantized(nn.multiply(product, nn.tanh(product)), 0.03, np.uint8(9)))
    assert [function.implementation for function in library.functions] == ["packed_byte_matmul.words"]
    again = (steps(rx @ rw, scale, zero) - 120) * np.float64(scale)
    (found,) = run(library, value)
    assert np.mean(np.abs(found - steps(again * np.tanh(again), 0.03, np.uint8(9))) > 0) < 0.01


def test_layers_that_differ_in_their_scales_share_their_code():
    numbers = Numbers()
    x, value, zero = lw.var("x", (8, 16), "uint8"), numbers.bytes((8, 16), "uint8"), np.uint8(3)
    y, wanted = x, value
    for scale, after in ((0.02, 0.7), (0.5, 0.3), (0.9, 4.0)):
        weight = numbers.bytes((16, 16), "int8")
        product = nn.matmul(dequantized(y, scale, zero), dequantized(lw.const(weight), 0.01 * scale, np.int8(0)))
        sums = real(wanted, scale, zero) @ real(weight, 0.01 * scale, 0)
        y, wanted = quantized(product, after, zero), steps(sums, after, zero)
    library = compiled([x], y)
    assert len({step.symbol for step in library.model.steps}) == 1
    assert np.mean(run(library, value)[0] != wanted) < 0.02
