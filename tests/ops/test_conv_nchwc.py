"""Convolutions on blocked channels: values against slow numpy, what is chosen, the code of the inner loop."""

import re

import numpy as np
import pytest
import windows

import loopwright as lw
from loopwright.compiler.selection.select import select_implementation
from loopwright.compiler.settings import CompileSettings
from loopwright.ir.makers import as_index
from loopwright.ops.definition.implementation import outputs_of
from loopwright.ops.families.conv.attrs import Conv2DAttrs
from loopwright.ops.families.conv.border import Border
from loopwright.ops.families.conv.conv import conv, conv2d
from loopwright.schedules.channel_tile import ChannelTile, channel_tile

rng = np.random.default_rng(0)
TARGET = "x86-64-v3"
# x, weight, strides, padding, dilations, groups, layouts of x, weight and result
CASES = {
    "3x3 padded": ((1, 2, 9, 7, 16), (4, 2, 3, 3, 16, 16), 1, (1, 1, 1, 1), 1, 1, "NCHW16c OIHW16i16o NCHW16c"),
    "strided, 7 wide": ((2, 2, 14, 14, 16), (2, 2, 3, 3, 16, 16), 2, (1, 1, 1, 1), 1, 1, "NCHW16c OIHW16i16o NCHW16c"),
    "pointwise": ((2, 4, 6, 7, 16), (3, 4, 1, 1, 16, 16), 1, (0, 0, 0, 0), 1, 1, "NCHW16c OIHW16i16o NCHW16c"),
    "many channels": ((1, 16, 3, 5, 16), (2, 16, 1, 1, 16, 16), 1, (0, 0, 0, 0), 1, 1, "NCHW16c OIHW16i16o NCHW16c"),
    "pointwise strided": ((1, 1, 9, 8, 16), (2, 1, 1, 1, 16, 16), 2, (0, 0, 0, 0), 1, 1, "NCHW16c OIHW16i16o NCHW16c"),
    "first layer": ((1, 3, 21, 20), (2, 3, 7, 7, 16), 2, (3, 3, 3, 3), 1, 1, "NCHW OIHW16o NCHW16c"),
    "first layer, grouped": ((1, 6, 8, 9), (2, 3, 3, 3, 16), 1, (1, 0, 2, 1), 1, 2, "NCHW OIHW16o NCHW16c"),
    "dilated, uneven": ((1, 1, 12, 17, 8), (3, 1, 2, 3, 8, 8), 1, (0, 3, 1, 2), 2, 1, "NCHW8c OIHW8i8o NCHW8c"),
    "blocks of other sizes": ((1, 3, 5, 6, 8), (2, 3, 3, 3, 8, 16), 1, (1, 1, 1, 1), 1, 1, "NCHW8c OIHW8i16o NCHW16c"),
    "grouped": ((1, 4, 8, 8, 8), (6, 2, 3, 3, 8, 8), 1, (1, 1, 1, 1), 1, 2, "NCHW8c OIHW8i8o NCHW8c"),
    "panels": ((1, 2, 9, 29, 16), (2, 2, 1, 1, 16, 32), 1, (0, 0, 0, 0), 1, 1, "NCHW16c OIHW16i32o NCHW16c"),
    "panels, grouped": ((1, 4, 8, 8, 8), (2, 2, 3, 3, 8, 24), 1, (1, 1, 1, 1), 1, 2, "NCHW8c OIHW8i24o NCHW8c"),
    "panels, first layer": ((1, 3, 9, 20), (1, 3, 3, 3, 32), 2, (1, 1, 1, 1), 1, 1, "NCHW OIHW32o NCHW16c"),
    "one axis": ((2, 2, 19, 16), (3, 2, 3, 16, 16), 1, (1, 2), 2, 1, "NCW16c OIW16i16o NCW16c"),
    "three axes": ((1, 2, 4, 5, 9, 8), (2, 2, 2, 3, 3, 8, 8), 2, (1, 1, 1, 0, 1, 1), 1, 1, "NCDHW8c OIDHW8i8o NCDHW8c"),
    "1x1x1": ((1, 1, 2, 3, 5, 16), (2, 1, 1, 1, 1, 16, 16), 1, (0,) * 6, 1, 1, "NCDHW16c OIDHW16i16o NCDHW16c"),
    "dilated far": ((1, 2, 14, 14, 16), (2, 2, 3, 3, 16, 16), 1, (12,) * 4, 12, 1, "NCHW16c OIHW16i16o NCHW16c"),
    "dilated far, strided": ((1, 1, 15, 19, 8), (2, 1, 5, 3, 8, 8), 2, (9, 7, 8, 5), 7, 1, "NCHW8c OIHW8i8o NCHW8c"),
    "dilated far, panels": ((2, 2, 9, 11, 8), (2, 1, 3, 3, 8, 16), 1, (8,) * 4, 8, 2, "NCHW8c OIHW8i16o NCHW16c"),
    "dilated far, first layer": ((1, 3, 13, 9), (1, 3, 3, 3, 16), 1, (6, 6, 7, 8), 6, 1, "NCHW OIHW16o NCHW16c"),
    "dilated far, one axis": ((2, 2, 70, 16), (3, 2, 3, 16, 16), 1, (60, 60), 30, 1, "NCW16c OIW16i16o NCW16c"),
    "dilated far, causal": ((1, 2, 50, 8), (2, 2, 2, 8, 8), 1, (40, 0), 40, 1, "NCW8c OIW8i8o NCW8c"),
    "dilated far, 3d": ((1, 1, 4, 5, 9, 8), (2, 1, 3, 3, 3, 8, 8), 1, (4,) * 6, 4, 1, "NCDHW8c OIDHW8i8o NCDHW8c"),
    "all in the border": ((1, 1, 2, 3, 8), (1, 1, 2, 2, 8, 8), 1, (9, 9, 9, 9), 9, 1, "NCHW8c OIHW8i8o NCHW8c"),
    "depthwise": ((1, 3, 9, 18, 16), (3, 1, 3, 3, 16), 1, (1, 1, 1, 1), 1, 48, "NCHW16c OIHW16o NCHW16c"),
    "depthwise strided": ((2, 2, 11, 9, 8), (2, 1, 5, 3, 8), 2, (2, 1, 2, 1), 1, 16, "NCHW8c OIHW8o NCHW8c"),
    "depthwise, wide": ((1, 2, 5, 90, 16), (2, 1, 3, 3, 16), 1, (1, 1, 1, 1), 1, 32, "NCHW16c OIHW16o NCHW16c"),
    "depthwise, two tiles": ((2, 1, 30, 50, 16), (1, 1, 3, 3, 16), 1, (1, 1, 1, 1), 1, 16, "NCHW16c OIHW16o NCHW16c"),
    "depthwise, few rows": ((1, 3, 7, 7, 16), (3, 1, 7, 7, 16), 1, (3, 3, 3, 3), 1, 48, "NCHW16c OIHW16o NCHW16c"),
    "depthwise, uneven": ((1, 2, 13, 40, 8), (2, 1, 5, 2, 8), 1, (0, 3, 4, 1), 2, 16, "NCHW8c OIHW8o NCHW8c"),
    "depthwise, one axis": ((2, 3, 61, 16), (3, 1, 5, 16), 2, (2, 1), 1, 48, "NCW16c OIW16o NCW16c"),
    "depthwise, long window": ((1, 2, 4, 50, 8), (2, 1, 3, 40, 8), 1, (1, 20, 1, 19), 1, 16, "NCHW8c OIHW8o NCHW8c"),
    "depthwise, 3d": ((1, 2, 4, 6, 9, 8), (2, 1, 3, 2, 3, 8), 1, (1, 0, 1, 1, 1, 1), 1, 16, "NCDHW8c OIDHW8o NCDHW8c"),
}  # fmt: skip


def attributes(strides, padding, dilation, groups, layouts):
    data, kernel, out = layouts.split()
    return {
        "strides": strides, "padding": padding, "dilation": dilation, "groups": groups,
        "data_layout": data, "kernel_layout": kernel, "out_layout": out,
    }  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_blocked_convolutions_are_right_native(ops, case):
    x, w, strides, padding, dilation, groups, layouts = CASES[case]
    a, b = rng.normal(size=x).astype(np.float32), rng.normal(size=w).astype(np.float32)
    rank = len(padding) // 2
    call = conv(ops.var(x), ops.var(w), **attributes(strides, padding, dilation, groups, layouts))
    chosen = select_implementation(call, CompileSettings(lw.resolve_target(TARGET))).chosen
    assert chosen.name == ("conv.blocked_depthwise" if "depthwise" in case else "conv.blocked")
    options = attributes(strides, padding, dilation, groups, layouts)
    found = ops.apply(conv, a, b, native=True, target=TARGET, **options)
    wanted = windows.conv_in(a, b, (strides,) * rank, padding, (dilation,) * rank, groups, layouts.split())
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_taps_beyond_the_border_are_left_out(ops):
    """Of 3×3 taps that are as far apart as the image is wide only the middle one reads it: others may be NaN."""
    x, w = rng.normal(size=(1, 1, 9, 11, 8)).astype(np.float32), np.full((1, 1, 3, 3, 8, 8), np.nan, np.float32)
    w[:, :, 1, 1] = rng.normal(size=(8, 8))
    layouts = "NCHW8c OIHW8i8o NCHW8c"
    found = ops.apply(conv, x, w, target="x86-64-v3", **attributes(1, (11,) * 4, 11, 1, layouts))
    np.testing.assert_allclose(found[0, 0], x[0, 0] @ w[0, 0, 1, 1], rtol=1e-4, atol=1e-5)


def test_the_share_of_taps_inside_is_that_of_tiles():
    attrs = Conv2DAttrs(padding=(12,) * 4, dilation=(12, 12))
    # Of seven pairs of rows the first and the last read two rows of taps, the others one; of five triples of columns
    # the first and the last read two taps.
    assert Border(attrs, (3, 3), (14, 14), (2, 3)).share == pytest.approx(9 / 21 * 7 / 15)
    assert Border(attrs, (3, 3), (14, 14), (1, 1)).share == pytest.approx((18 / 42) ** 2)
    assert Border(attrs, (3, 3), (14, 14), (2, 3)).padding == (1, 2, 1, 2)
    assert Border(Conv2DAttrs(), (3, 3), (12, 12), (2, 3)).share == 1


FILTER_VECTORS = {
    "uneven rows": ((2, 3, 21, 19), (1, 3, 3, 3, 32), 1, (1, 0, 2, 1), 1, 1, "NCHW OIHW32o NCHW"),
    "strided": ((1, 3, 43, 40), (3, 3, 7, 5, 16), 2, (3, 2, 3, 2), 1, 1, "NCHW OIHW16o NCHW"),
    "one axis, dilated": ((2, 2, 261), (2, 2, 3, 32), 2, (1, 2), 2, 1, "NCW OIW32o NCW"),
    "three axes": ((1, 1, 4, 9, 18), (2, 1, 2, 3, 3, 16), 1, (1, 1, 1, 0, 1, 1), 1, 1, "NCDHW OIDHW16o NCDHW"),
    "many channels": ((1, 130, 12, 13), (1, 130, 3, 3, 32), 2, (1, 1, 1, 1), 1, 1, "NCHW OIHW32o NCHW"),
    "one element": ((2, 21, 13, 13), (2, 21, 1, 1, 32), 1, (0,) * 4, 1, 1, "NCHW OIHW32o NCHW"),
    "one element, many places": ((1, 40, 30, 31), (2, 40, 1, 1, 32), 1, (0,) * 4, 1, 1, "NCHW OIHW32o NCHW"),
    "one element, strided": ((1, 33, 27, 28), (1, 33, 1, 1, 32), 2, (0,) * 4, 1, 1, "NCHW OIHW32o NCHW"),
    "one element, padded": ((1, 17, 9, 9), (1, 17, 1, 1, 32), 1, (1, 0, 0, 2), 1, 1, "NCHW OIHW32o NCHW"),
    "one element, three axes": ((2, 18, 3, 5, 7), (1, 18, 1, 1, 1, 32), 1, (0,) * 6, 1, 1, "NCDHW OIDHW32o NCDHW"),
}


@pytest.mark.parametrize("case", FILTER_VECTORS)
def test_results_of_filter_vectors_need_not_be_blocked_native(ops, case):
    x, w, strides, padding, dilation, groups, layouts = FILTER_VECTORS[case]
    a, b = rng.normal(size=x).astype(np.float32), rng.normal(size=w).astype(np.float32)
    rank = len(padding) // 2
    call = conv(ops.var(x), ops.var(w), **attributes(strides, padding, dilation, groups, layouts))
    assert select_implementation(call, CompileSettings(lw.resolve_target(TARGET))).chosen.name == "conv.filter_vectors"
    options = attributes(strides, padding, dilation, groups, layouts)
    found = ops.apply(conv, a, b, native=True, target=TARGET, **options)
    wanted = windows.conv_in(a, b, (strides,) * rank, padding, (dilation,) * rank, groups, layouts.split())
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


FILLED = {
    "short-time Fourier transform": ((1, 1, 576), (258, 1, 256), 128, 0),
    "of some samples": ((3, 2, 700), (66, 2, 100), 40, 50),
    "images": ((1, 12, 15, 17), (45, 12, 3, 3), 2, 1),
    "one element": ((2, 40, 9, 9), (33, 40, 1, 1), 2, 0),
}


@pytest.mark.parametrize("case", FILLED)
def test_filters_that_are_no_whole_vectors_are_filled_up(case):
    x, w, strides, padding = FILLED[case]
    a, b = rng.normal(size=x).astype(np.float32), rng.normal(size=w).astype(np.float32)
    rank = len(x) - 2
    var = lw.var("x", x)
    y = lw.nn.relu(conv(var, lw.const(b), strides=strides, padding=padding))
    library = lw.compile(lw.Function([var], y), target="x86-64-v2")
    assert [f.choices[0].implementation for f in library.functions] == ["conv.filter_vectors"]
    wanted = windows.conv(a, b, (strides,) * rank, (padding,) * (2 * rank), (1,) * rank, 1)
    np.testing.assert_allclose(lw.Engine(library)([a])[0], np.maximum(wanted, 0), rtol=1e-4, atol=1e-3)


def test_more_filters_than_channels_need_a_block_that_is_filled_up():
    x = lw.var("x", (1, 4, 8))
    assert conv(x, lw.var("w", (2, 4, 3, 16)), channels=18, kernel_layout="OIW16o").type.shape[1] is as_index(18)
    for channels in (16, 33):
        with pytest.raises(lw.TypeInferenceError, match=f"channels is {channels}, but weight has 32 filters"):
            conv(x, lw.var("w", (2, 4, 3, 16)), channels=channels, kernel_layout="OIW16o")
    with pytest.raises(lw.TypeInferenceError, match="channels is 31, but weight has 32 filters"):
        conv(x, lw.var("w", (32, 4, 3)), channels=31)


def test_the_planner_leaves_a_single_first_layer_unblocked():
    a, w, bias = (rng.normal(size=s).astype(np.float32) for s in ((1, 3, 40, 40), (32, 3, 3, 3), (32, 1, 1)))
    x = lw.var("x", a.shape)
    y = lw.nn.relu(lw.nn.add(conv2d(x, lw.const(w), strides=2, padding=1), lw.const(bias)))
    library = lw.compile(lw.Function([x], y))
    assert [f.choices[0].implementation for f in library.functions] == ["conv.filter_vectors"]
    (found,) = lw.Engine(library)([a])
    wanted = windows.conv(a, w, (2, 2), (1,) * 4, (1, 1), 1) + bias
    np.testing.assert_allclose(found, np.maximum(wanted, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("channels", "fetched"), [(128, True), (32, False)])
def test_rows_of_many_channels_are_fetched_ahead(channels, fetched):
    x, w = lw.var("x", (1, channels, 12, 12)), lw.var("w", (1, channels, 3, 3, 32))
    call = conv2d(x, w, padding=1, kernel_layout="OIHW32o")
    library = lw.compile(lw.Function([x, w], call), target="x86-64-v4")
    assert ("prefetch(conv.padded" in library.functions[0].loop_ir) == fetched


def test_what_follows_is_computed_in_the_tile():
    x, w = lw.var("x", (1, 2, 8, 8, 16)), rng.normal(size=(2, 2, 3, 3, 16, 16)).astype(np.float32)
    bias, other = rng.normal(size=(1, 2, 1, 1, 16)).astype(np.float32), lw.var("y", (1, 2, 8, 8, 16))
    layouts = attributes(1, (1,) * 4, 1, 1, "NCHW16c OIHW16i16o NCHW16c")
    body = lw.nn.relu(lw.nn.add(lw.nn.add(conv2d(x, lw.const(w), **layouts), lw.const(bias)), other))
    library = lw.compile(lw.Function([x, other], body))
    assert [f.name for f in library.functions] == ["fused_nn_conv2d_add_add_relu"]
    a, b = (rng.normal(size=(1, 2, 8, 8, 16)).astype(np.float32) for _ in range(2))
    wanted = windows.conv_in(a, w, (1, 1), (1,) * 4, (1, 1), 1, ("NCHW16c", "OIHW16i16o", "NCHW16c")) + bias + b
    (found,) = lw.Engine(library)([a, b])
    np.testing.assert_allclose(found, np.maximum(wanted, 0), rtol=1e-4, atol=1e-4)


def test_a_strict_build_takes_the_schedule():
    x = lw.var("x", (1, 1, 4, 4, 16))
    w = lw.const(rng.normal(size=(1, 1, 3, 3, 16, 16)).astype(np.float32))
    f = lw.Function([x], conv2d(x, w, **attributes(1, (1,) * 4, 1, 1, "NCHW16c OIHW16i16o NCHW16c")))
    assert lw.compile(f, precision="strict").functions[0].choices[0].implementation == "conv.blocked"


@pytest.mark.parametrize(
    ("x", "w", "groups", "layouts"),
    [
        ((1, 2, 4, 4, 8), (2, 1, 1, 1, 4, 8), 4, "NCHW8c OIHW4i8o NCHW8c"),
        ((1, 2, 4, 4, 8), (2, 2, 1, 1, 8, 8), 1, "NCHW8c OIHW8o8i NCHW8c"),
        ((1, 4, 4, 16), (2, 16, 1, 1, 8), 1, "NHWC OIHW8o NCHW8c"),
        ((1, 2, 4, 4, 8), (16, 16, 1, 1), 1, "NCHW8c OIHW NCHW"),
        ((1, 16, 4, 4), (2, 1, 1, 1, 8), 16, "NCHW OIHW8o NCHW8c"),
        ((1, 4, 4, 4, 4), (2, 1, 1, 1, 8), 16, "NCHW4c OIHW8o NCHW8c"),
        ((1, 3, 4, 4), (2, 1, 1, 1, 6), 3, "NCHW OIHW6o NCHW6c"),
    ],
)
def test_other_layouts_are_left_to_the_definition(ops, x, w, groups, layouts):
    call = conv2d(ops.var(x), ops.var(w), **attributes(1, (0,) * 4, 1, groups, layouts))
    assert select_implementation(call, CompileSettings(lw.resolve_target(TARGET))).chosen.name == "conv.direct"


@pytest.mark.parametrize(("rows", "columns", "blocks", "registers"), [(56, 56, 4, 32), (7, 7, 32, 32), (13, 13, 3, 16)])
def test_a_tile_fits_the_registers_and_divides_the_blocks(rows, columns, blocks, registers):
    tile = channel_tile(rows, columns, blocks, registers)
    places = tile.rows * tile.columns
    assert tile.blocks * (places + 1) + 1 <= registers
    assert blocks % tile.blocks == 0
    assert tile.rows == 1 or tile.columns == columns


@pytest.mark.parametrize("groups", [1, 32])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_blocks_may_be_wider_than_the_registers(kind, groups):
    x, w = (
        lw.var("x", (1, 2, 5, 5, 16), kind),
        lw.var("w", (2, 1, 3, 3, 16) if groups > 1 else (2, 2, 3, 3, 16, 16), kind),
    )
    attrs = attributes(1, (1,) * 4, 1, groups, f"NCHW16c {'OIHW16o' if groups > 1 else 'OIHW16i16o'} NCHW16c")
    function = lw.Function([x, w], conv2d(x, w, **attrs))
    library = lw.compile(function, target="llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64")
    assert "blocked" in library.functions[0].choices[0].implementation
    a, b = (rng.normal(size=[int(n) for n in v.type.shape]).astype(kind) for v in (x, w))
    (found,) = lw.Engine(library)([a, b])
    wanted = windows.conv_in(
        a, b, (1, 1), (1,) * 4, (1, 1), groups, [attrs[f"{name}_layout"] for name in ("data", "kernel", "out")]
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_narrow_images_take_several_rows_together():
    assert channel_tile(7, 7, 32, 32) == ChannelTile(2, 7, 2)
    assert channel_tile(56, 56, 4, 32) == ChannelTile(1, 14, 2)


@pytest.mark.parametrize("share", [None, lambda tile: 1.0])
def test_a_tile_of_rows_without_end_is_found_without_counting_their_columns(share):
    assert channel_tile(4, 10**12, 4, 32, share=share).columns <= 30


def built(x_shape, w_shape, attrs):
    """The convolution's kernel for a processor with AVX-512."""
    target = lw.resolve_target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64-v4")
    x, w = lw.te.placeholder(x_shape, name="x"), lw.te.placeholder(w_shape, name="w")
    call = conv2d(lw.var("x", x_shape), lw.var("w", w_shape), **attrs)
    chosen = select_implementation(call, CompileSettings(target)).chosen
    computed = chosen.computed(call.op.name, call.attrs, (x, w), call.type)
    (y,) = outputs_of(computed)
    return lw.build(chosen.schedule(call.attrs, computed, (y,), target), [x, w, y], target=target)


def inner_loop(kernel):
    return max(kernel.assembly.split(".LBB"), key=lambda block: block.count("vfmadd"))


def test_the_inner_loop_spills_nothing():
    """28 sums, two vectors of weights and a factor: 28 multiply-adds, 14 broadcasts and 2 loads a step."""
    attrs = attributes(1, (1,) * 4, 1, 1, "NCHW16c OIHW16i16o NCHW16c")
    loop = inner_loop(built((1, 4, 14, 14, 16), (2, 4, 3, 3, 16, 16), attrs))
    assert loop.count("vfmadd") == 28
    assert loop.count("vbroadcastss") == 14
    assert "(%rsp)" not in loop


@pytest.mark.parametrize("window", [3, 5, 7])
def test_a_depthwise_row_reads_each_vector_once_and_spills_nothing(window):
    """For 14 places each vector of a row of x and of the weights is read once, and not one for each multiply-add."""
    attrs = attributes(1, (window // 2,) * 4, 1, 32, "NCHW16c OIHW16o NCHW16c")
    kernel = built((1, 2, 14, 14, 16), (2, 1, window, window, 16), attrs)
    assert "conv.padded" not in kernel.loop_ir
    loop = inner_loop(kernel)
    assert loop.count("vfmadd") == 14 * window
    assert len(re.findall(r"(vmovup|vfmadd).*\(", loop)) <= 14 + window
    assert "(%rsp)" not in loop


@pytest.mark.parametrize(("window", "steps"), [((2, 2), 4), ((1, 2), 64), ((2, 3), 3)])
def test_the_loop_around_filter_vectors_has_no_two_iterations(window, steps):
    """LLVM copies and spills the sums of a tile in a loop of two."""
    x, w = lw.var("x", (1, 32, 18, 18)), lw.var("w", (1, 32, *window, 32))
    library = lw.compile(lw.Function([x, w], conv2d(x, w, kernel_layout="OIHW32o")), target="x86-64-v4")
    lines = library.functions[0].loop_ir.splitlines()
    step = next(k for k, line in enumerate(lines) if re.search(r"_reg\[0\] = \S+_reg\[0\] \+", line))
    depths = [len(line) - len(line.lstrip()) for line in lines]
    around = next(lines[k] for k in reversed(range(step)) if depths[k] < depths[step])
    assert around.endswith(f" in range({steps}):")
