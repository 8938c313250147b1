"""Winograd convolutions: the transforms are exact, values agree with slow numpy, and the planner chooses by shape."""

from dataclasses import replace
from fractions import Fraction

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
from loopwright.ops.families.conv.problem import ConvProblem
from loopwright.ops.families.conv.winograd import winograd_conv2d
from loopwright.ops.families.conv.winograd_blocking import Products
from loopwright.ops.families.conv.winograd_transform import SIZES, transforms
from loopwright.ops.families.conv.winograd_weights import WinogradPlanes, winograd_candidates

rng = np.random.default_rng(0)
AVX512, AVX2, BASELINE = (lw.resolve_target(name) for name in ("x86-64-v4", "x86-64-v3", "x86-64"))


def normal(*shape, dtype="float32"):
    return rng.standard_normal(shape).astype(dtype)


def convolved(x, w, padding):
    return windows.conv(x.astype(np.float64), w.astype(np.float64), (1, 1), padding, (1, 1), 1)


def error(found, wanted):
    """The largest error, in units of the largest result."""
    return np.abs(found - wanted).max() / np.abs(wanted).max()


def of_planes(x, w, size, width, padding, data="NCHW16c", out="NCHW16c"):
    return winograd_conv2d(x, lw.const(WinogradPlanes(size, width)(w)), size, padding, data, out)


def planned(x_shape, w, target=AVX512, dtype="float32", precision="standard", **attrs):
    """The operator that a plan takes for a convolution between activations, and the size of its tiles."""
    x = lw.var("x", x_shape, dtype)
    body = lw.nn.relu(lw.nn.conv2d(lw.nn.relu(x), lw.const(w.astype(dtype)), **attrs))
    function = plan_layouts(lw.Function([x], body), CompileSettings(target, CodegenOptions(precision))).function
    made = next(n for n in post_order(function.body) if isinstance(n, Call) and n.op.name.endswith("conv2d"))
    return made.op.name, getattr(made.attrs, "size", None)


@pytest.mark.parametrize("size", SIZES)
def test_the_matrices_are_exactly_a_correlation(size):
    made = transforms(size)
    for i in range(size):
        for tap in range(3):
            for place in range(size + 2):
                total = sum(
                    to_output * of_filter[tap] * of_input[place]
                    for to_output, of_filter, of_input in zip(made.outputs[i], made.filters, made.inputs, strict=True)
                )
                assert total == Fraction(place == i + tap)


@pytest.mark.parametrize("size", SIZES)
def test_constants_of_inputs_and_outputs_are_exact_in_single_precision(size):
    made = transforms(size)
    for number in (n for matrix in (made.inputs, made.outputs) for row in matrix for n in row):
        assert Fraction(float(np.float32(float(number)))) == number


CASES = {
    # x, filters, size, panel, padding, layouts of x and result
    "padded, tiles reach beyond": ((1, 32, 9, 7), 32, 4, 32, (1, 1, 1, 1), "NCHW16c NCHW16c"),
    "several images, uneven padding": ((3, 16, 6, 11), 32, 2, 16, (0, 2, 1, 0), "NCHW16c NCHW16c"),
    "no padding, whole tiles": ((1, 16, 14, 8), 16, 6, 16, (0, 0, 0, 0), "NCHW16c NCHW16c"),
    "one place": ((1, 16, 3, 3), 16, 4, 16, (0, 0, 0, 0), "NCHW16c NCHW16c"),
    "one place of a border": ((1, 16, 1, 1), 16, 2, 16, (1, 1, 1, 1), "NCHW16c NCHW16c"),
    "blocks of other sizes": ((1, 24, 8, 8), 16, 4, 16, (1, 1, 1, 1), "NCHW8c NCHW16c"),
    "several groups of tiles": ((1, 64, 37, 30), 64, 4, 32, (2, 2, 2, 2), "NCHW16c NCHW16c"),
    "to channels one by one": ((2, 16, 9, 7), 48, 4, 16, (1, 1, 1, 1), "NCHW16c NCHW"),
    "to channels one by one, several strips": ((1, 64, 61, 28), 64, 4, 32, (1, 1, 1, 1), "NCHW16c NCHW"),
    "to channels one by one, several strips of odd rows": ((1, 64, 57, 55), 64, 4, 16, (1, 1, 1, 1), "NCHW16c NCHW"),
    "to channels one by one, that make no vectors": ((1, 16, 6, 5), 12, 2, 12, (1, 0, 1, 1), "NCHW16c NCHW"),
}


@pytest.mark.parametrize("case", CASES)
def test_values_are_those_of_a_convolution_native(ops, case):
    shape, filters, size, width, padding, layouts = CASES[case]
    data, out = layouts.split()
    x, w = normal(*shape), normal(filters, shape[1], 3, 3)
    blocked = windows.rearranged(x, "NCHW", data)
    call = of_planes(ops.var(blocked.shape), w, size, width, padding, data, out)
    found = windows.rearranged(ops.evaluate(call, {call.args[0]: blocked}, native=True), out, "NCHW")
    assert error(found, convolved(x, w, padding)) < 1e-5


def test_double_precision_is_as_precise(ops):
    x, w = normal(1, 8, 7, 7, dtype="float64"), normal(8, 8, 3, 3, dtype="float64")
    blocked = windows.rearranged(x, "NCHW", "NCHW8c")
    call = of_planes(ops.var(blocked.shape, "float64"), w, 4, 8, 1, "NCHW8c", "NCHW8c")
    found = windows.rearranged(ops.evaluate(call, {call.args[0]: blocked}, native=True), "NCHW8c", "NCHW")
    assert error(found, convolved(x, w, (1,) * 4)) < 1e-14


@pytest.mark.parametrize(("size", "limit"), [(2, 2e-6), (4, 1e-5), (6, 1e-4)])
def test_the_error_over_many_channels_is_small_beside_the_largest_result(ops, size, limit):
    x, w = normal(1, 512, 12, 12), normal(16, 512, 3, 3)
    blocked = windows.rearranged(x, "NCHW", "NCHW16c")
    call = of_planes(ops.var(blocked.shape), w, size, 16, 1)
    found = windows.rearranged(ops.evaluate(call, {call.args[0]: blocked}, native=True), "NCHW16c", "NCHW")
    assert error(found, convolved(x, w, (1,) * 4)) < limit


def test_the_number_of_images_may_be_open_and_threads_change_nothing():
    w = normal(32, 32, 3, 3)
    x = lw.var("x", (te.var("n"), 32, 12, 12), "float32")
    body = lw.nn.conv2d(lw.nn.relu(x), lw.const(w), padding=1)
    library = lw.compile(lw.Function([x], body))
    assert any("winograd" in f.name for f in library.functions)
    engines = [lw.Engine(library, threads=threads) for threads in (1, 2)]
    for images in (1, 3):
        data = normal(images, 32, 12, 12)
        one, two = (engine([data])[0] for engine in engines)
        np.testing.assert_array_equal(one, two)
        assert error(one, convolved(np.maximum(data, 0), w, (1,) * 4)) < 1e-5


SIZES_OF_IMAGES = ((1, 1), (7, 7), (8, 5), (13, 40), (12, 12), (37, 64))


@pytest.mark.parametrize("padding", [(1, 1, 1, 1), (0, 2, 1, 0)], ids=["padded", "padded unevenly"])
@pytest.mark.parametrize("group", [4, 7])
def test_the_size_of_images_may_be_open(padding, group):
    w, lanes = normal(32, 16, 3, 3), lw.resolve_target("native").lanes("float32")
    layout = f"NCHW{lanes}c"
    data = lw.var("x", (te.var("n"), 16 // lanes, te.var("h"), te.var("w"), lanes))
    planes = lw.const(WinogradPlanes(4, 2 * lanes)(w))
    call = winograd_conv2d(data, planes, 4, padding, layout, layout, group)
    engine = lw.Engine(lw.compile(lw.Function([data], lw.nn.relu(call)), layouts="keep"), threads=2)
    for images, size in ((number % 2 + 1, s) for number, s in enumerate(SIZES_OF_IMAGES)):
        if min(size[0] + padding[0] + padding[2], size[1] + padding[1] + padding[3]) < 3:
            continue
        x = normal(images, 16, *size)
        found = windows.rearranged(engine([windows.rearranged(x, "NCHW", layout)])[0], layout, "NCHW")
        assert error(found, np.maximum(convolved(x, w, padding), 0)) < 1e-5
    assert engine([np.zeros((0, 16 // lanes, 9, 5, lanes), np.float32)])[0].shape[0] == 0


def test_the_interpreter_agrees_on_images_of_any_size(ops):
    w, data = normal(16, 8, 3, 3), lw.var("x", (1, 1, te.var("h"), te.var("w"), 8))
    call = winograd_conv2d(data, lw.const(WinogradPlanes(2, 8)(w)), 2, 1, "NCHW8c", "NCHW8c", 4)
    x = normal(1, 8, 5, 3)
    found = ops.evaluate(call, {data: windows.rearranged(x, "NCHW", "NCHW8c")})
    assert error(windows.rearranged(found, "NCHW8c", "NCHW"), convolved(x, w, (1,) * 4)) < 1e-5


@pytest.mark.parametrize("target", [AVX512, AVX2], ids=["avx512", "avx2"])
def test_a_plan_takes_groups_that_suit_what_is_expected(target):
    w = normal(64, 64, 3, 3)
    x = lw.var("x", (1, 64, te.var("h"), te.var("w")))
    body = lw.nn.relu(lw.nn.conv2d(lw.nn.relu(x), lw.const(w), padding=1))

    def group(height, width):
        settings = CompileSettings(target, expect={"x": (1, 64, height, width)})
        nodes = post_order(plan_layouts(lw.Function([x], body), settings).function.body)
        calls = [n for n in nodes if isinstance(n, Call) and n.op.name == "nn.open_winograd_conv2d"]
        return calls[0].attrs.group if calls else None

    assert group(1, 1) is None, "a tile for one element"
    assert group(224, 224) >= 8


def test_few_tiles_of_an_open_image_are_computed_directly_whatever_was_expected():
    w, bias = normal(64, 32, 3, 3), normal(64, 1, 1)
    x = lw.var("x", (te.var("n"), 32, te.var("h"), te.var("w")))
    function = lw.Function([x], lw.nn.relu(lw.nn.add(lw.nn.conv2d(x, lw.const(w), padding=1), lw.const(bias))))
    library = lw.compile(function, expect={"x": (1, 32, 40, 40)})
    assert any("open_winograd_conv2d" in f.name for f in library.functions)
    engine, direct = lw.Engine(library, threads=2), lw.Engine(lw.compile(function, arithmetic="direct"))
    by_tiles = {}
    for images, *size in ((1, 1, 1), (2, 2, 3), (1, 7, 9), (3, 20, 13), (0, 9, 9), (1, 57, 45), (1, 64, 64)):
        data = normal(images, 32, *size)
        (found,) = engine([data])
        wanted = np.maximum(convolved(data, w, (1,) * 4) + bias, 0) if images else np.zeros((0, 64, *size))
        assert found.shape == wanted.shape
        assert not images or error(found, wanted) < 1e-4  # of tiles of 6, if the machine takes such
        by_tiles[tuple(size)] = not np.array_equal(found, direct([data])[0])  # other sums round otherwise
    assert not any(by_tiles[size] for size in ((1, 1), (2, 3)))
    assert all(by_tiles[size] for size in ((57, 45), (64, 64)))


def test_the_last_group_of_an_open_image_computes_the_tiles_that_there_are():
    """The loops over tiles of its products, of which the last one may be left in part, and that over the tiles whose
    inputs are transformed, end with them."""
    data = lw.var("x", (1, 1, te.var("h"), te.var("w"), 16))
    planes = lw.const(WinogradPlanes(4, 16)(normal(16, 16, 3, 3)))
    call = winograd_conv2d(data, planes, 4, 1, group=32)
    (function,) = lw.compile(lw.Function([data], call), target=AVX512, layouts="keep").functions
    lines = [line.strip() for line in function.loop_ir.splitlines()]
    tiles, whole, last = (
        next(x for x in lines if x.startswith(f"for {loop} in range")) for loop in ("t", "t_outer", "t_outer_1")
    )
    assert "range(min((n0 + 3) // 4 * ((n1 + 3) // 4) - " in tiles
    assert "range(min((n0 + 3) // 4 * ((n1 + 3) // 4) // " in whole
    assert "min(((n0 + 3) // 4 * ((n1 + 3) // 4) + " in last


@pytest.mark.parametrize(("target", "width"), [(AVX2, 16), (BASELINE, 4)], ids=["avx2", "baseline"])
def test_values_are_those_of_a_convolution_by_shorter_vectors(target, width):
    if not target.features <= lw.resolve_target("native").features:
        pytest.skip("this machine has not got its instructions")
    lanes = target.lanes("float32")
    x, w = normal(1, 16, 11, 9), normal(32, 16, 3, 3)
    layout = f"NCHW{lanes}c"
    blocked = windows.rearranged(x, "NCHW", layout)
    data = lw.var("x", blocked.shape, "float32")
    call = of_planes(data, w, 4, width, (1,) * 4, layout, layout)
    (found,) = lw.Engine(lw.compile(lw.Function([data], call), target=target))([blocked])
    assert error(windows.rearranged(found, layout, "NCHW"), convolved(x, w, (1,) * 4)) < 1e-5


def test_a_result_in_nchw_is_transposed_in_registers_and_sums_stay_in_them():
    x, w, bias = lw.var("x", (1, 32, 56, 56), "float32"), normal(32, 32, 3, 3), normal(32, 1, 1)
    body = lw.nn.add(lw.nn.conv2d(x, lw.const(w), padding=1), lw.const(bias))
    library = lw.compile(lw.Function([x], body), target=AVX512)
    function = library.functions[-1]
    assert function.name == "fused_nn_winograd_conv2d_add"
    allocated = [line.split(":")[0].strip() for line in function.loop_ir.splitlines() if "allocate" in line]
    turned = "winograd" + 5 * ".local" + "_reg"  # a copy in squares, and one for each bit of sixteen lanes
    assert {"winograd.products_reg", turned} <= set(allocated)


def test_bias_activation_and_residual_are_computed_in_its_tiles():
    x, other = lw.var("x", (1, 2, 9, 9, 16), "float32"), lw.var("other", (1, 2, 9, 9, 16), "float32")
    w, bias = normal(32, 32, 3, 3), normal(1, 2, 1, 1, 16)
    total = lw.nn.add(lw.nn.add(of_planes(x, w, 4, 32, 1), lw.const(bias)), other)
    library = lw.compile(lw.Function([x, other], lw.nn.relu(total)))
    assert [f.name for f in library.functions] == ["fused_nn_winograd_conv2d_add_add_relu"]
    a, b = normal(1, 2, 9, 9, 16), normal(1, 2, 9, 9, 16)
    wanted = convolved(windows.rearranged(a, "NCHW16c", "NCHW"), w, (1,) * 4)
    wanted = np.maximum(windows.rearranged(wanted, "NCHW", "NCHW16c") + bias + b, 0)
    (found,) = lw.Engine(library)([a, b])
    assert error(found, wanted) < 1e-5


def test_the_planner_takes_it_for_large_images_and_many_channels():
    w = normal(64, 64, 3, 3)
    for target in (AVX512, AVX2):
        name, size = planned((1, 64, 56, 56), w, target, padding=1)
        assert name == "nn.winograd_conv2d"
        assert size >= 4


@pytest.mark.parametrize(("channels", "filters", "panels"), [(32, 16, {16}), (16, 32, {16, 32}), (32, 24, {8})])
def test_panels_are_of_whole_blocks_of_filters(channels, filters, panels):
    x, w = lw.var("x", (1, channels, 8, 8)), lw.const(normal(filters, channels, 3, 3))
    uses = list(winograd_candidates(ConvProblem.of_call(lw.nn.conv2d(x, w, padding=1), AVX512), None))
    assert {use.arguments[1].make.width for use in uses} == panels
    for use in uses:
        assert use.arguments[1].packed(w).type is use.arguments[1].type


def test_weights_from_afar_make_small_tiles_better():
    target, kind = replace(AVX512, l2_bytes=1 << 20), lw.var("x", (1,), "float32").type.dtype

    def cycles(size, places):
        tiles = (-(-places // size)) ** 2
        return Products((size + 2) ** 2, tiles, 512, 512, 16, kind, target).best().cycles

    assert cycles(2, 7) < cycles(4, 7)
    assert cycles(4, 56) < cycles(2, 56)


def test_larger_tiles_where_multiplications_take_longer():
    for rate, size in ((2, 4), (1, 6)):
        target = replace(AVX512, fma_per_cycle=rate, l2_bytes=1 << 20)
        assert planned((1, 64, 112, 112), normal(64, 64, 3, 3), target, padding=1)[1] == size


@pytest.mark.parametrize(
    "attrs",
    [{"strides": 2}, {"dilation": 2}, {"groups": 2}, {"dtype": "float16"}, {"precision": "strict"}, {"channels": 7}],
    ids=str,
)
def test_the_planner_takes_it_for_nothing_else(attrs):
    filters = attrs.get("channels", 32)
    w = normal(filters, 32 // attrs.get("groups", 1), 3, 3)
    assert planned((1, 32, 28, 28), w, padding=1, **attrs)[0] == "nn.conv2d"


def test_weights_that_are_fed_are_not_transformed():
    x, w = lw.var("x", (1, 32, 28, 28), "float32"), lw.var("w", (32, 32, 3, 3), "float32")
    function = plan_layouts(lw.Function([x, w], lw.nn.conv2d(x, w, padding=1)), CompileSettings(AVX512)).function
    assert not any(isinstance(n, Call) and "winograd" in n.op.name for n in post_order(function.body))


@pytest.mark.parametrize("target", [AVX512, AVX2, BASELINE], ids=["avx512", "avx2", "baseline"])
def test_a_register_tile_leaves_room_for_weights_and_a_factor(target):
    kind = lw.var("x", (1,), "float32").type.dtype
    for tiles, channels, filters, width in ((196, 64, 64, 32), (16, 512, 512, 16), (1, 32, 32, 32), (49, 2048, 64, 64)):
        found = Products(36, tiles, channels, filters, width, kind, target)
        made = found.best()
        vectors = width // target.lanes(kind)
        assert 1 <= made.rows <= made.group <= tiles
        assert made.rows == 1 or (made.rows + 1) * vectors + 1 <= target.vector_registers


@pytest.mark.parametrize(
    ("x", "planes", "attrs", "message"),
    [
        ((1, 1, 8, 8, 16), (1, 4, 4, 16, 16), {"size": 4}, r"size 4 need 6×6 planes, found 4×4"),
        ((1, 2, 8, 8, 16), (1, 6, 6, 16, 16), {"size": 4}, r"x has 32 channels, but planes have 16"),
        ((1, 1, 8, 8, 16), (1, 6, 6, 16, 24), {"size": 4}, r"24 filters do not fall into blocks of .* NCHW16c"),
        ((1, 1, 8, 8, 16), (6, 6, 16, 16), {"size": 4}, r"planes must be \[panel, row, column, channel, filter\]"),
        ((1, 16, 8, 8), (1, 6, 6, 16, 16), {"size": 4, "data_layout": "NCHW"}, r"data_layout must be NCHW with chann"),
        ((1, 1, te.var("h"), 8, 16), (1, 6, 6, 16, 16), {"size": 4}, r"an open height or width needs a group"),
        (
            (1, 1, 8, te.var("w"), 16),
            (1, 6, 6, 16, 16),
            {"size": 4, "group": 8, "out_layout": "NCHW"},
            r"an open height or width needs a group, and blocks of channels made",
        ),
        ((1, 1, 8, 8, 16), (1, 6, 6, 16, 16), {"size": 4, "group": -1}, r"WinogradAttrs.group must be an integer of 0"),
        ((1, 1, 8, 8, 16), (1, 5, 5, 16, 16), {"size": 3}, r"size must be .*2.*4.*6.*found 3"),
    ],
)
def test_what_does_not_fit_is_refused(x, planes, attrs, message):
    with pytest.raises(lw.TypeInferenceError, match=message):
        winograd_conv2d(lw.var("x", x, "float32"), lw.var("u", planes, "float32"), **attrs)
