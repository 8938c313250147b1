"""Products of quarters, as Strassen does them: the tables are exact, values those of numpy, the planner weighs them."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import windows

import loopwright as lw
from loopwright import te
from loopwright.artifact.options import CodegenOptions
from loopwright.compiler.layout.layout_planning import plan_layouts
from loopwright.compiler.settings import CompileSettings
from loopwright.graph.node import Call
from loopwright.graph.visit import post_order
from loopwright.ops.families.matmul.quarters import LEFT, PRODUCTS, RESULT, RIGHT, Planes, Quartered
from loopwright.schedules.register_tile import RegisterTile

rng = np.random.default_rng(0)
FAST, AVX2, BASELINE = (lw.resolve_target(name) for name in ("x86-64-v4", "x86-64-v3", "x86-64"))
AVX512 = replace(FAST, fma_per_cycle=1)
"""What multiplies half as fast gains more from fewer multiplications."""


def normal(*shape, dtype="float32"):
    return rng.standard_normal(shape).astype(dtype)


def error(found, wanted):
    """The largest error, in units of the largest result."""
    return np.abs(found - wanted).max() / np.abs(wanted).max()


def product(a, b, width):
    return lw.nn.strassen_matmul(a, lw.const(Planes(width, transposed=False)(b)))


def exactly(a, b):
    return a.astype(np.float64) @ b.astype(np.float64)


def planned(make, x_shape, weight, target=AVX512, precision="standard"):
    """The operators that a plan takes for a call of ``make`` between activations."""
    x = lw.var("x", x_shape, weight.dtype.name)
    body = lw.nn.relu(make(lw.nn.relu(x), lw.const(weight)))
    function = plan_layouts(lw.Function([x], body), CompileSettings(target, CodegenOptions(precision))).function
    return {n.op.name for n in post_order(function.body) if isinstance(n, Call)}


def test_seven_products_are_exactly_eight():
    for i, k, inner, j, row, column in itertools.product((0, 1), repeat=6):
        total = sum(LEFT[s][i][k] * RIGHT[s][inner][j] * RESULT[row][column][s] for s in range(PRODUCTS))
        assert total == (k == inner and i == row and j == column)


@pytest.mark.parametrize("transposed", [False, True])
def test_planes_are_sums_of_quarters_in_panels(transposed):
    b = normal(6, 16)
    planes = Planes(4, transposed)(b.T.copy() if transposed else b)
    assert planes.shape == (2, 7, 3, 4)
    quarters = b[:3, :8], b[:3, 8:], b[3:, :8], b[3:, 8:]
    np.testing.assert_array_equal(planes[1, 4], quarters[3][:, 4:])
    np.testing.assert_allclose(planes[0, 0], (quarters[0] + quarters[3])[:, :4], rtol=1e-6)
    np.testing.assert_allclose(planes[1, 2], (quarters[1] - quarters[3])[:, 4:], rtol=1e-6)


CASES = {
    # left factor, columns, panel
    "even rows, one register tile": ((1, 8, 64), 64, 32),
    "odd rows, the last one of zeros": ((1, 27, 96), 128, 32),
    "one row": ((1, 1, 32), 32, 16),
    "samples": ((3, 2, 13, 64), 96, 16),
    "a matrix": ((40, 32), 64, 32),
    "panels wider than register tiles": ((1, 9, 32), 512, 256),
    "panels of no whole vectors": ((1, 9, 32), 36, 6),
    "terms of no whole vectors": ((1, 9, 6), 32, 16),
    "one term in a quarter": ((1, 9, 2), 32, 16),
    "groups of rows in parallel": ((1, 2000, 256), 64, 32),
    "groups of rows that are not equal": ((5, 1018, 512), 32, 16),
}


@pytest.mark.parametrize("case", CASES)
def test_values_are_those_of_a_product_native(ops, case):
    shape, columns, width = CASES[case]
    a, b = normal(*shape), normal(shape[-1], columns)
    call = product(ops.var(a.shape), b, width)
    assert error(ops.evaluate(call, {call.args[0]: a}, native=True), exactly(a, b)) < 2e-6


def test_the_error_is_about_that_of_the_plain_product(ops):
    a, b = normal(1, 64, 2048), normal(2048, 64)
    call = product(ops.var(a.shape), b, 32)
    plain = lw.nn.matmul(ops.var(a.shape), lw.const(b))
    wanted = exactly(a, b)
    found, other = (error(ops.evaluate(c, {c.args[0]: a}, native=True), wanted) for c in (call, plain))
    assert found < 2 * other < 1e-5


def test_double_precision_is_as_precise(ops):
    a, b = normal(2, 11, 48, dtype="float64"), normal(48, 64, dtype="float64")
    call = product(ops.var(a.shape, "float64"), b, 16)
    assert error(ops.evaluate(call, {call.args[0]: a}, native=True), exactly(a, b)) < 1e-14


CONV_CASES = {
    # x, filters, panel, strides, layouts of x and result
    "even places": ((1, 32, 6, 4), 64, 32, (1, 1), "NCHW16c NCHW16c"),
    "odd places, images": ((3, 32, 7, 5), 32, 16, (1, 1), "NCHW16c NCHW16c"),
    "strides": ((1, 32, 9, 8), 64, 32, (2, 3), "NCHW16c NCHW16c"),
    "blocks of other sizes": ((1, 48, 5, 5), 64, 16, (1, 1), "NCHW8c NCHW16c"),
    "half vectors": ((1, 32, 5, 5), 48, 24, (1, 1), "NCHW16c NCHW8c"),
    "groups of places in parallel": ((1, 256, 40, 40), 64, 32, (1, 1), "NCHW16c NCHW16c"),
    "one place": ((1, 32, 1, 1), 32, 16, (1, 1), "NCHW16c NCHW16c"),
}


@pytest.mark.parametrize("case", CONV_CASES)
def test_values_are_those_of_a_convolution_native(ops, case):
    shape, filters, width, strides, layouts = CONV_CASES[case]
    data, out = layouts.split()
    x, w = normal(*shape), normal(filters, shape[1], 1, 1)
    blocked = windows.rearranged(x, "NCHW", data)
    planes = lw.const(Planes(width, transposed=True)(w))
    call = lw.nn.strassen_conv2d(ops.var(blocked.shape), planes, strides, data, out)
    found = windows.rearranged(ops.evaluate(call, {call.args[0]: blocked}, native=True), out, "NCHW")
    wanted = windows.conv(x.astype(np.float64), w.astype(np.float64), strides, (0,) * 4, (1, 1), 1)
    assert error(found, wanted) < 2e-6


@pytest.mark.parametrize("target", [AVX2, BASELINE], ids=["avx2", "baseline"])
def test_values_are_those_of_a_product_by_shorter_vectors(target):
    a, b = normal(1, 21, 64), normal(64, 64)
    data = lw.var("a", a.shape, "float32")
    (found,) = lw.Engine(lw.compile(lw.Function([data], product(data, b, 16)), target=target))([a])
    assert error(found, exactly(a, b)) < 2e-6


@pytest.mark.parametrize("tokens", [128, 197])
def test_a_layer_of_tokens_is_one_kernel_and_threads_change_nothing(tokens):
    weight, bias = normal(512, 768), normal(768)
    x, other = lw.var("x", (1, tokens, 512), "float32"), lw.var("other", (1, tokens, 768), "float32")
    body = lw.nn.add(lw.nn.add(lw.nn.matmul(x, lw.const(weight)), lw.const(bias)), other)
    library = lw.compile(lw.Function([x, other], lw.nn.relu(body)), target=AVX512)
    assert [f.name for f in library.functions] == ["fused_nn_strassen_matmul_add_add_relu"]
    a, b = normal(1, tokens, 512), normal(1, tokens, 768)
    one, two = (lw.Engine(library, threads=threads)([a, b])[0] for threads in (1, 2))
    np.testing.assert_array_equal(one, two)
    assert error(one, np.maximum(exactly(a, weight) + bias + b, 0)) < 2e-6


def test_the_number_of_samples_may_be_open():
    weight = normal(768, 768)
    shape = (te.var("n"), 128, 768)
    assert "nn.strassen_matmul" in planned(lw.nn.matmul, shape, weight)
    x = lw.var("x", shape, "float32")
    library = lw.compile(lw.Function([x], product(x, weight, 16)))
    for samples in (1, 2):
        a = normal(samples, 128, 768)
        assert error(lw.Engine(library)([a])[0], exactly(a, weight)) < 2e-6


def test_what_is_not_finite_stays_in_its_sample():
    weight = normal(768, 768)
    x = lw.var("x", (2, 128, 768), "float32")
    library = lw.compile(lw.Function([x], product(x, weight, 16)))
    a = normal(2, 128, 768)
    a[0, 3, 5] = np.inf
    (found,) = lw.Engine(library)([a])
    assert not np.isfinite(found[0, 3]).any()
    assert error(found[1], exactly(a[1], weight)) < 2e-6


def dense(x, w):
    return lw.nn.dense(x, w)


def conv(x, w, **attrs):
    return lw.nn.conv2d(x, w, **attrs)


def between_blocks(x, w):
    """Between two convolutions whose channels are in blocks."""
    before, after = lw.const(normal(1024, 256, 3, 3)), lw.const(normal(256, 256, 3, 3))
    return conv(conv(conv(x, before, padding=1), w), after, padding=1)


def test_the_planner_takes_it_for_many_rows_terms_and_columns():
    for target in (AVX512, AVX2):
        assert "nn.strassen_matmul" in planned(lw.nn.matmul, (1, 128, 768), normal(768, 3072), target)
        assert "nn.strassen_matmul" in planned(dense, (4, 128, 768), normal(3072, 768), target)
    assert "nn.strassen_conv2d" in planned(between_blocks, (1, 256, 14, 14), normal(256, 1024, 1, 1))
    assert "nn.strassen_matmul" not in planned(lw.nn.matmul, (1, 128, 768), normal(768, 3072), FAST)


@pytest.mark.parametrize(
    ("make", "x", "weight", "precision"),
    [
        (lw.nn.matmul, (128, 768), (768, 3072), "standard"),  # rows may be samples
        (lw.nn.matmul, (1, 16, 768), (768, 3072), "standard"),  # weights would be what takes the time
        (lw.nn.matmul, (1, 128, 32), (32, 768), "standard"),  # and here sums
        (lw.nn.matmul, (1, 128, 770), (770, 768), "standard"),  # no whole vectors
        (lw.nn.matmul, (1, te.var("rows"), 768), (768, 768), "standard"),
        (lw.nn.matmul, (1, 128, 768), (768, 768), "strict"),
        (conv, (1, 64, 56, 56), (64, 64, 1, 1), "standard"),
        (conv, (1, 1024, 14, 14), (256, 1024, 3, 3), "standard"),
        (lambda x, w: conv(x, w, padding=1), (1, 1024, 14, 14), (256, 1024, 1, 1), "standard"),
        (lambda x, w: conv(x, w, groups=2), (1, 1024, 14, 14), (256, 512, 1, 1), "standard"),
        (conv, (1, 1024, 14, 14), (256, 1024, 1, 1), "strict"),
    ],
)
def test_the_planner_takes_it_for_nothing_else(make, x, weight, precision):
    assert not any("strassen" in name for name in planned(make, x, normal(*weight), precision=precision))


def test_factors_that_are_fed_are_not_summed():
    x, w = lw.var("x", (1, 128, 768), "float32"), lw.var("w", (768, 3072), "float32")
    function = plan_layouts(lw.Function([x, w], lw.nn.matmul(x, w)), CompileSettings(AVX512)).function
    assert not any(isinstance(n, Call) and "strassen" in n.op.name for n in post_order(function.body))


@pytest.mark.parametrize("rows", [2, 97, 128, 784, 1000, 3137])
def test_groups_are_equal_parts_of_a_half(rows):
    kind = lw.var("x", (1,), "float32").type.dtype
    for terms, columns in ((64, 64), (512, 128), (3072, 768)):
        blocking = Quartered(rows, terms, columns, 32, RegisterTile(13, 2, 16), kind, AVX512)
        assert blocking.half % blocking.group == 0


@pytest.mark.parametrize(
    ("a", "planes", "message"),
    [
        ((4,), (1, 7, 2, 16), r"a must be a matrix at least"),
        ((0, 4), (1, 7, 2, 16), r"a must be a matrix at least, with a known number of rows, not 0"),
        ((te.var("m"), 4), (1, 7, 2, 16), r"with a known number of rows"),
        ((3, 6), (1, 7, 2, 16), r"a has a reduction extent of 6, but planes have 2 · 2"),
        ((3, 4), (1, 8, 2, 16), r"planes must be \[panel, 7, K / 2, column\], all known, not 0, found"),
        ((3, 0), (1, 7, 0, 16), r"all known, not 0"),
    ],
)
def test_a_product_that_does_not_fit_is_refused(a, planes, message):
    with pytest.raises(lw.TypeInferenceError, match=message):
        lw.nn.strassen_matmul(lw.var("a", a, "float32"), lw.var("u", planes, "float32"))


@pytest.mark.parametrize("kind", ["float16", "int32"])
def test_a_dtype_that_does_not_fit_is_refused(kind):
    with pytest.raises(lw.TypeInferenceError, match="planes must be of float32 or float64"):
        lw.nn.strassen_matmul(lw.var("a", (2, 4), kind), lw.var("u", (1, 7, 2, 16), kind))


@pytest.mark.parametrize(
    ("x", "planes", "attrs", "message"),
    [
        ((1, 2, 8, 8, 16), (1, 7, 8, 16), {}, r"x has 32 channels, but planes have 2 · 8"),
        ((1, 3, 8, 8, 16), (1, 7, 24, 16), {}, r"each half in blocks"),
        ((1, 2, 8, 8, 16), (1, 7, 16, 24), {}, r"24 filters do not fall into blocks of .* NCHW16c"),
        ((1, 32, 8, 8), (1, 7, 16, 16), {"data_layout": "NCHW"}, r"data_layout must be NCHW with channels in blocks"),
        ((1, 2, te.var("h"), 8, 16), (1, 7, 16, 16), {}, r"x must have a known height and width"),
        ((1, 2, 8, 8, 16), (1, 7, 16, 16), {"strides": 0}, r"strides must be"),
        ((1, 2, 8, 8, 16), (1, 7, 16, 16), {"strides": (1, 1, 1)}, r"strides needs a number for each of the 2"),
    ],
)
def test_a_convolution_that_does_not_fit_is_refused(x, planes, attrs, message):
    with pytest.raises(lw.TypeInferenceError, match=message):
        lw.nn.strassen_conv2d(lw.var("x", x, "float32"), lw.var("u", planes, "float32"), **attrs)
