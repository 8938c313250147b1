"""Convolutions whose positions are open: one compilation serves images of all sizes."""

import re
from dataclasses import replace

import numpy as np
import pytest
from pairs import each_value

import loopwright as lw
from loopwright import te
from loopwright.runtime.foreign import why_not_here

TARGETS = {"x86-64-v3": True, "znver4": False}
"""Whether its code runs on all machines that tests run on. Of others it is asked what would serve, and no more."""


def chosen(of, begins):
    """The implementations of calls whose text begins so, of a library or of an explanation."""
    return [c.implementation for f in of.functions for c in f.choices if c.call.startswith(begins)]


def windows(x, weight, strides, padding, dilation, groups):
    """The definition, by numpy."""
    n = len(x)
    k, per_group, kh, kw = weight.shape
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    axes = zip(x.shape[2:], (kh, kw), dilation, strides, strict=True)
    oh, ow = ((e - (r - 1) * d - 1) // s + 1 for e, r, d, s in axes)
    y = np.zeros((n, k, oh, ow))
    for i in range(kh):
        for j in range(kw):
            rows = slice(i * dilation[0], i * dilation[0] + (oh - 1) * strides[0] + 1, strides[0])
            columns = slice(j * dilation[1], j * dilation[1] + (ow - 1) * strides[1] + 1, strides[1])
            part = x[:, :, rows, columns].reshape(n, groups, per_group, oh, ow)
            factors = weight[:, :, i, j].reshape(groups, k // groups, per_group)
            y += np.einsum("ngchw,gkc->ngkhw", part, factors.astype(np.float64)).reshape(y.shape)
    return y


CASES = {
    "first": ((3, 32), (3, 3), {"strides": (2, 2), "padding": (1, 1)}),
    "middle": ((32, 48), (3, 3), {"padding": (1, 1)}),
    "pointwise": ((32, 64), (1, 1), {}),
    "strided": ((16, 32), (1, 1), {"strides": (2, 2)}),
    "dilated": ((16, 16), (3, 5), {"dilation": (2, 1), "padding": (2, 0)}),
    "dilated far": ((16, 32), (3, 3), {"dilation": (6, 6), "padding": (6, 6)}),
    "dilated farther": ((16, 32), (3, 3), {"dilation": (4, 12), "padding": (4, 12)}),
    "padded far": ((16, 32), (5, 3), {"padding": (2, 1)}),
    "groups": ((48, 48), (3, 3), {"groups": 3, "padding": (1, 1)}),
    "odd pointwise": ((6, 10), (1, 1), {}),
    "odd strided pointwise": ((6, 10), (1, 1), {"strides": (3, 2)}),
    "odd": ((6, 10), (3, 3), {"padding": (1, 1)}),
    "odd groups": ((30, 30), (3, 5), {"groups": 3, "padding": (1, 2)}),
    "prime": ((6, 19), (3, 3), {"padding": (1, 1), "strides": (1, 2)}),
    "prime groups": ((12, 22), (3, 3), {"groups": 2}),
    "prime pointwise": ((6, 26), (1, 1), {}),
    "odd strided": ((5, 7), (3, 3), {"strides": (2, 2), "dilation": (1, 2)}),
    "depthwise": ((48, 48), (5, 3), {"groups": 48, "padding": (2, 1), "strides": (2, 1)}),
}


ROWS = ("odd", "odd groups", "odd strided", "prime", "prime groups")
SERVED_BY = dict.fromkeys(ROWS, ("conv.open_rows",)) | {
    "depthwise": ("conv.blocked_depthwise", "conv.depthwise"),  # which cost nearly the same
    "pointwise": ("conv.open_pointwise",),
    "strided": ("conv.open_pointwise",),
    "odd strided pointwise": ("conv.open_pointwise_rows",),
    "odd pointwise": ("conv.open_pointwise_rows",),
    "prime pointwise": ("conv.open_pointwise_rows",),
}
"""All others by ``conv.open_blocked``."""


@each_value(name=CASES, target=TARGETS)
def test_images_of_all_sizes(name, target):
    (channels, filters), window, options = CASES[name]
    rng = np.random.default_rng(0)
    groups = options.get("groups", 1)
    weight = rng.standard_normal((filters, channels // groups, *window)).astype(np.float32)
    bias = rng.standard_normal((filters, 1, 1)).astype(np.float32)
    x = lw.var("x", (te.var("n"), channels, te.var("h"), te.var("w")))
    y = lw.nn.relu(lw.nn.conv2d(x, lw.const(weight), **options) + lw.const(bias))
    square = rng.standard_normal((filters, filters, 1, 1)).astype(np.float32)
    last = lw.nn.conv2d(lw.nn.relu(lw.nn.conv2d(y, lw.const(square))), lw.const(square))
    function, served_by = lw.Function([x], last), SERVED_BY.get(name, ("conv.open_blocked",))
    settings = {"target": target, "arithmetic": "direct", "expect": {"x": (1, channels, 224, 224)}}
    if not TARGETS[target]:
        assert not set(served_by).isdisjoint(chosen(lw.explain(function, **settings), "nn.conv2d"))
        return
    library = lw.compile(function, jobs=1, **settings)
    assert not set(served_by).isdisjoint(chosen(library, "nn.conv2d"))
    engine = lw.Engine(library)
    short = [(1, 1, 1), (2, 1, 3), (1, 5, 2)] if window == (1, 1) or "far" in name else []
    for shape in [(1, 14, 14), (2, 7, 23), (1, 31, 9), (3, 9, 8), *short]:
        data = rng.standard_normal((shape[0], channels, *shape[1:])).astype(np.float32)
        plain = {"strides": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1}
        wanted = np.maximum(windows(data, weight, **(plain | options)) + bias, 0)
        wanted = windows(np.maximum(windows(wanted, square, **plain), 0), square, **plain)
        (found,) = engine([data])
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("channels", [(32, 48), (5, 7)])
@pytest.mark.parametrize("rank", [1, 3])
def test_pointwise_ones_of_other_ranks(rank, channels, stride):
    rng = np.random.default_rng(rank)
    weight = rng.standard_normal((channels[1], channels[0], *(1,) * rank)).astype(np.float32)
    square = rng.standard_normal((channels[1], channels[1], *(1,) * rank)).astype(np.float32)
    conv = getattr(lw.nn, f"conv{rank}d")
    x = lw.var("x", (te.var("n"), channels[0], *(te.var(name) for name in "dhw"[:rank])))
    first = lw.nn.relu(conv(x, lw.const(weight), strides=stride))
    library = lw.compile(lw.Function([x], conv(first, lw.const(square))), jobs=1)
    assert set(chosen(library, "nn.conv")) <= {"conv.open_pointwise", "conv.open_pointwise_rows"}
    engine = lw.Engine(library)
    for extents in [(1, 1, 1), (3, 2, 2), (70, 3, 5), (257, 1, 9)]:
        data = rng.standard_normal((2, channels[0], *extents[:rank])).astype(np.float32)
        stood_at = data[(..., *(slice(None, None, stride),) * rank)]
        between = np.maximum(np.einsum("nc...,kc->nk...", stood_at, weight.reshape(channels[::-1])), 0)
        wanted = np.einsum("nc...,kc->nk...", between, square.reshape(channels[1], -1))
        np.testing.assert_allclose(engine([data])[0], wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("channels", "filters", "groups"), [(3, 30, 1), (5, 7, 1), (30, 50, 1), (96, 96, 96)])
def test_rows_of_open_length_cost_less_at_strides_than_the_definition(target, channels, filters, groups):
    """The definition takes up to five times as long, for it reads what it multiplies element by element."""
    x = lw.var("x", (1, channels, te.var("h"), te.var("w")))
    weight = lw.var("weight", (filters, channels // groups, 3, 3))
    y = lw.nn.conv2d(x, weight, strides=2, padding=1, groups=groups)
    chosen = {choice.implementation for choice in lw.explain(y, target=target).functions[0].choices}
    if groups == channels:
        assert "conv.depthwise" in chosen
        assert chosen <= {"conv.depthwise", "conv.depthwise_short_rows"}
    else:
        assert chosen == {"conv.open_rows"}


@pytest.mark.parametrize(("padding", "copies"), [(0, False), (1, True)])
def test_x_is_copied_for_its_padding_only(padding, copies):
    x = lw.var("x", (1, 2, te.var("h"), te.var("w"), 16))
    weight = lw.const(np.ones((3, 2, 3, 3, 16, 16), np.float32))
    layouts = {"data_layout": "NCHW16c", "kernel_layout": "OIHW16i16o", "out_layout": "NCHW16c"}
    y = lw.nn.conv2d(x, weight, strides=2, padding=padding, **layouts)
    (function,) = lw.compile(lw.Function([x], y), target="znver4", jobs=1).functions
    assert function.implementation == "conv.open_blocked"
    assert ("allocate('global')" in function.loop_ir) == copies, function.loop_ir


def test_tiles_of_filters_that_nothing_divides_are_nearly_even():
    """Of 19 filters, 7, 7 and 5 are summed side by side."""
    x = lw.var("x", (1, 16, te.var("h"), te.var("w")))
    y = lw.nn.conv2d(x, lw.const(np.ones((19, 16, 3, 3), np.float32)), padding=1)
    library = lw.compile(lw.Function([x], y), target="znver4", jobs=1)
    (function,) = (f for f in library.functions if "open_rows" in str(f.choices))
    assert set(re.findall(r"float32x16\[(\d+)\]", function.loop_ir)) == {"14", "10"}, function.loop_ir


@pytest.mark.parametrize("stride", [1, 2])
def test_short_rows_have_half_vectors_where_these_take_half_the_time(stride):
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((20, 6, 3, 3)).astype(np.float32)
    x = lw.var("x", (1, 6, te.var("h"), te.var("w")))
    function = lw.Function([x], lw.nn.conv2d(x, lw.const(weight), padding=1, strides=stride))
    whole = lw.resolve_target("x86-64-v4")
    assert chosen(lw.explain(function, target=whole), "nn.conv2d") == ["conv.open_rows"]
    halves = replace(whole, fma_per_cycle=1)
    assert chosen(lw.explain(function, target=halves), "nn.conv2d") == ["conv.open_short_rows", "conv.open_rows"]
    if why_not_here(halves) is None:
        engine = lw.Engine(lw.compile(function, target=halves, jobs=1))
        for height, width in ((5, 7), (7, 8), (3, 9), (2, 16), (9, 1)):
            data = rng.standard_normal((1, 6, height, width)).astype(np.float32)
            wanted = windows(data, weight, (stride, stride), (1, 1), (1, 1), 1)
            np.testing.assert_allclose(engine([data])[0], wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


def test_rows_of_known_length_have_half_vectors_if_these_hold_them():
    weight = lw.const(np.ones((20, 6, 3, 3), np.float32))
    halves = replace(lw.resolve_target("x86-64-v4"), fma_per_cycle=1)
    for width, served_by in ((8, "conv.open_short_rows"), (9, "conv.open_rows")):
        x = lw.var("x", (1, 6, te.var("h"), width))
        function = lw.Function([x], lw.nn.conv2d(x, weight, padding=1))
        assert chosen(lw.explain(function, target=halves), "nn.conv2d") == [served_by]


def test_taps_beyond_the_border_are_no_iterations():
    """Of a window that is dilated far, most rows are beyond the border, and most of its columns for a tile."""
    x = lw.var("x", (1, 16, te.var("h"), te.var("w")))
    weight = lw.const(np.ones((32, 16, 3, 3), np.float32))
    y = lw.nn.conv2d(x, weight, padding=12, dilation=12)
    library = lw.compile(lw.Function([x], y), target="znver4", jobs=1)
    (text,) = (f.loop_ir for f in library.functions if "open_blocked" in str(f.choices))
    lines = [line.strip() for line in text.splitlines()]
    rows = [line for line in lines if line.startswith("for r0")]
    assert all("range(max(" in loop and "min(" in loop for loop in rows), rows
    columns = [line for line in lines if line.startswith("for r1")]
    assert sum("i3_outer" in loop for loop in columns) == 2, columns  # at either end of a row


def test_columns_beyond_an_image_that_is_narrower_than_the_padding_are_no_iterations():
    """Wider images are not asked for them: their tiles are full."""
    x = lw.var("x", (1, 16, te.var("h"), te.var("w")))
    y = lw.nn.conv2d(x, lw.const(np.ones((32, 16, 3, 3), np.float32)), padding=1)
    library = lw.compile(lw.Function([x], y), target="znver4", jobs=1, arithmetic="direct")
    (text,) = (f.loop_ir for f in library.functions if "open_blocked" in str(f.choices))
    full, partial = [line.strip() for line in text.splitlines() if line.strip().startswith("for r1")]
    assert "range(3)" in full
    assert "n1" in partial


@pytest.mark.parametrize(("filters", "groups", "side"), [(30, 1, 3), (3, 3, 7)])
def test_what_windows_at_a_stride_read_are_neighbours_in_the_copy(filters, groups, side):
    """Loads at a stride take several vectors, and shuffles, for each vector of products; the copy is made of loads of
    neighbours, too."""
    x = lw.var("x", (1, 3, te.var("h"), te.var("w")))
    weight = lw.var("weight", (filters, 3 // groups, side, side))
    y = lw.nn.conv2d(x, weight, strides=2, padding=1, groups=groups)
    (function,) = lw.compile(lw.Function([x, weight], y), target="znver4", jobs=1).functions
    lines = function.loop_ir.splitlines()
    products = [line for line in lines if "_reg[" in line and "padded" in line]
    assert products
    assert all(re.search(r", 1, (8|16)\)\] \*", line) for line in products)
    of_x = [loaded for line in lines for loaded in re.findall(r"p0\[ramp\(.*?, (\d+), \d+\)", line)]
    assert set(of_x) == {"1"}


def test_weights_that_tiles_read_anew_are_fetched_ahead():
    """Of windows of one element as well, whose weights are read as they are given, not as those of one row."""
    x = lw.var("x", (1, 32, te.var("h"), te.var("w")))
    y = x
    for filters, channels in ((512, 32), (32, 512), (512, 32)):
        y = lw.nn.relu(lw.nn.conv2d(y, lw.const(np.ones((filters, channels, 1, 1), np.float32))))
    library = lw.compile(lw.Function([x], y), target="znver4", jobs=1, arithmetic="direct")
    texts = [f.loop_ir for f in library.functions if "conv.open_pointwise" in [c.implementation for c in f.choices]]
    assert texts
    assert any("prefetch(p1[" in text for text in texts), texts


@pytest.mark.parametrize(("target", "side", "read"), [("znver4", 3, True), ("znver4", 7, False), ("znver3", 3, False)])
def test_rows_of_open_length_are_read_as_they_lie_at_a_stride_of_two(target, side, read):
    """Where there are registers for it, and the window has few columns: else a copy has what windows read in phases."""
    x, weight = lw.var("x", (1, 4, te.var("h"), te.var("w"))), lw.var("weight", (4, 1, side, side))
    y = lw.nn.conv2d(x, weight, strides=2, padding=side // 2, groups=4)
    (function,) = lw.compile(lw.Function([x, weight], y), target=target, jobs=1).functions
    long_rows = function.loop_ir[function.loop_ir.index("else:") :] if "else:" in function.loop_ir else function.loop_ir
    assert bool(re.search(r"_reg.*p0\[ramp\(.*?, 2, 16\)", long_rows)) == read
    assert ("padded" in long_rows) != read


@pytest.mark.parametrize("extents", [(28, 28), (112, 112), (te.var("h"), te.var("w"))])
def test_copies_of_depthwise_ones_at_strides_are_stored_without_masks(extents):
    """Their rows of open length took a third longer with masks."""
    x = lw.var("x", (1, 8, *extents))
    y = lw.nn.conv2d(x, lw.var("weight", (8, 1, 3, 3)), strides=2, padding=1, groups=8)
    (function,) = lw.compile(lw.Function([x, y.args[1]], y), target="znver4", jobs=1).functions
    stores = [line.split(" = ")[0] for line in function.loop_ir.splitlines() if line.strip().startswith("conv.padded")]
    stores = [store for store in stores if "[" in store]
    assert stores
    assert not any(" where " in store for store in stores), stores


def depthwise(x, weight, padding=0, strides=1, dilation=1):
    """The definition for any number of spatial axes, by numpy."""
    rank = x.ndim - 2
    around = np.broadcast_to(padding, rank)
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), *((p, p) for p in around)))
    reach = [(extent - 1) * dilation + 1 for extent in weight.shape[2:]]
    seen = np.lib.stride_tricks.sliding_window_view(x, reach, tuple(range(2, rank + 2)))
    steps = np.broadcast_to(strides, rank)
    seen = seen[(..., *(slice(None, None, s) for s in steps), *(slice(None, None, dilation),) * rank)]
    weight = weight.astype(np.float64).reshape(x.shape[1], -1, *weight.shape[2:])
    taps, out = "rst"[:rank], "dhw"[:rank]
    y = np.einsum(f"nc{out}{taps},cm{taps}->ncm{out}", seen, weight)
    return y.reshape(len(x), -1, *y.shape[3:])


@pytest.mark.parametrize("width", [1, 3])
def test_blocks_of_narrow_rows_have_tiles_of_their_width(width):
    """The height is open, as after a maximum along rows; blocks are kept for the convolutions around."""
    rng = np.random.default_rng(0)
    square = rng.standard_normal((64, 64, 1, 1)).astype(np.float32)
    weight = rng.standard_normal((64, 1, 3, 3)).astype(np.float32)
    x = lw.var("x", (te.var("n"), 64, te.var("h"), width))
    first = lw.nn.conv2d(lw.nn.conv2d(x, lw.const(square)), lw.const(weight), groups=64, padding=1)
    made = lw.Function([x], lw.nn.conv2d(lw.nn.relu(first), lw.const(square)))
    library = lw.compile(made, "x86-64-v3", arithmetic="direct", expect={"x": (1, 64, 40, width)}, jobs=1)
    assert "conv.blocked_depthwise" in chosen(library, "nn.conv2d")
    data = rng.standard_normal((2, 64, 7, width)).astype(np.float32)
    between = np.maximum(depthwise(windows(data, square, (1, 1), (0, 0), (1, 1), 1), weight, padding=1), 0)
    wanted = windows(between, square, (1, 1), (0, 0), (1, 1), 1)
    np.testing.assert_allclose(lw.Engine(library)([data])[0], wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


UNREACHED = [((2,), (0, 1)), ((30,), (0, 1)), ((28, 28), (0, 0, 1, 1)), ((5, 64), (0, 0, 0, 1))]
"""Extents and padding of which windows of 2 at a stride of 2 reach nothing."""


@pytest.mark.parametrize("target", [*TARGETS, "x86-64"])
@pytest.mark.parametrize(("extents", "padding"), UNREACHED)
def test_depthwise_rows_end_where_no_window_reaches_the_padding(extents, padding, target):
    """The padded image then ends with its rows, and a copy of whole vectors would go on beyond them."""
    rank, rng = len(extents), np.random.default_rng(0)
    data = rng.standard_normal((2, 6, *extents)).astype(np.float32)
    weight = rng.standard_normal((6, 1, *(2,) * rank)).astype(np.float32)
    x = lw.var("x", data.shape)
    conv = getattr(lw.nn, f"conv{rank}d")(x, lw.const(weight), groups=6, strides=2, padding=padding)
    library = lw.compile(lw.Function([x], conv), target=target, jobs=1)
    assert "conv.depthwise" in [c.implementation for f in library.functions for c in f.choices]
    if TARGETS.get(target, True):
        (y,) = lw.Engine(library)([data])
        np.testing.assert_allclose(y, depthwise(data, weight, strides=2), rtol=1e-5, atol=1e-5)


DEPTHWISE = {
    "of a row": (1, 6, 1, {"padding": 2}),
    "of a row, strided": (1, 3, 1, {"padding": 1, "strides": 2}),
    "3×3": (2, 3, 1, {"padding": 1}),
    "3×3 strided": (2, 3, 1, {"padding": 1, "strides": 2}),
    "two filters a channel": (2, 3, 2, {"padding": 1}),
    "column by column": (2, 7, 1, {"padding": 3}),
    "column by column, strided": (2, 6, 1, {"padding": (2, 3), "strides": (2, 3)}),
    "dilated": (2, 5, 1, {"dilation": 2}),
    "of boxes": (3, 3, 1, {"padding": 1}),
}


@each_value(name=DEPTHWISE, target=["native", *TARGETS])
def test_depthwise_ones_of_plain_layouts(name, target):
    rank, extent, multiplier, options = DEPTHWISE[name]
    rng = np.random.default_rng(0)
    channels = 5
    weight = rng.standard_normal((channels * multiplier, 1, *(extent,) * rank)).astype(np.float32)
    bias = rng.standard_normal((channels * multiplier, *(1,) * rank)).astype(np.float32)
    x = lw.var("x", (te.var("n"), channels, *(te.var(d) for d in "dhw"[3 - rank :])))
    conv = getattr(lw.nn, f"conv{rank}d")(x, lw.const(weight), groups=channels, **options)
    function = lw.Function([x], lw.nn.relu(conv + lw.const(bias)))
    if not TARGETS.get(target, True):
        served = chosen(lw.explain(function, target=target), "nn.conv")
        assert served == ["conv.depthwise_short_rows", "conv.depthwise"]
        return
    library = lw.compile(function, target=target, jobs=1)
    assert chosen(library, "nn.conv")[-1] == "conv.depthwise"
    engine = lw.Engine(library)
    small = [(3, 7, 7), (2, 12, 8)] if name != "dilated" else []
    for extents in [(1, 9, 9), *small, (3, 10, 16), (2, 33, 31), (5, 14, 50)]:
        shape = (2, channels, *extents[3 - rank :])
        data = rng.standard_normal(shape).astype(np.float32)
        wanted = np.maximum(depthwise(data, weight, **options) + bias, 0)
        np.testing.assert_allclose(engine([data])[0], wanted, rtol=0, atol=1e-5 * np.abs(wanted).max(initial=1))
