"""Transposes are layouts: networks whose channels come last, around convolutions whose channels come second, are
planned without them, and give what they gave."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.compiler.layout.layout_planning import plan_layouts
from loopwright.compiler.settings import CompileSettings
from loopwright.graph import Call, Tuple
from loopwright.graph.layout import Layout
from loopwright.graph.visit import post_order
from loopwright.ops.definition.extent_formulas import with_axes
from loopwright.ops.families.assume_extent import assume_extent
from loopwright.ops.families.pad import pad_by_extents
from loopwright.ops.families.resample import resample

TARGET = lw.resolve_target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64-v3")
nn = lw.nn


def constant(*shape):
    values = np.random.default_rng(sum(shape)).uniform(-1, 1, shape) / np.prod(shape[1:]) ** 0.5
    return lw.const(values.astype(np.float32))


def conv(x, channels, filters, window=3, groups=1):
    """Of channels that come last, as files have it that were converted without more ado."""
    first = nn.transpose(x, (0, 3, 1, 2))
    weight = constant(filters, channels // groups, window, window)
    return nn.transpose(nn.conv2d(first, weight, padding=window // 2, groups=groups), (0, 2, 3, 1))


def block(x, channels):
    """A bottleneck with a gate and a residual, as in MobileNetV3."""
    y = nn.hard_swish(nn.add(conv(x, channels, 64, 1), constant(64)))
    y = nn.relu(nn.multiply(conv(y, 64, 64, groups=64), constant(1, 1, 64)))
    gate = nn.sigmoid(conv(nn.mean(y, (1, 2), keepdims=True), 64, 64, 1))
    return nn.add(x, conv(nn.multiply(y, gate), 64, channels, 1))


def names(function):
    return [node.op.name for node in post_order(function.body) if isinstance(node, Call)]


def same_values(x, y, *arrays):
    """Compiled with planned layouts, it gives what it gives without; the planned graph."""
    function = lw.Function([x], y)
    planned, kept = (lw.compile(function, layouts=layouts, jobs=1) for layouts in ("plan", "keep"))
    engines = lw.Engine(planned), lw.Engine(kept)
    for array in arrays:
        for found, wanted in zip(*(engine([array]) for engine in engines), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-5)
    return plan_layouts(function, CompileSettings(TARGET)).function


def numbers(*shape):
    return np.random.default_rng(sum(shape)).uniform(-2, 2, shape).astype(np.float32)


def test_channels_that_come_last_come_second_throughout():
    x = lw.var("x", (1, 20, 20, 32))
    y = block(conv(x, 32, 24, 1), 24)
    left = names(same_values(x, y, numbers(1, 20, 20, 32)))
    assert left.count("transpose") <= 2  # the image, and the result
    assert left.count("layout_transform") <= 2
    assert names(lw.Function([x], y)).count("transpose") == 10


def test_images_are_interpolated_where_their_channels_come_last():
    """Resizing is of channels that come second: files have transposes around it. Vectors of channels take a fifth of
    the time of elements gathered along a row."""
    x = lw.var("x", (1, 9, 7, 5))
    indices = lw.const(np.array([[0, 0, 1, 2, 3, 3], [0, 1, 2, 3, 4, 4]]))
    weights = constant(2, 6)
    y = nn.transpose(resample(nn.transpose(x, (0, 3, 1, 2)), indices, weights, 3), (0, 2, 3, 1))
    assert names(same_values(x, nn.relu(y), numbers(1, 9, 7, 5))) == ["nn.resample", "relu"]


def test_images_of_open_size_are_planned_so_too():
    x = lw.var("x", (te.var("n"), te.var("h"), te.var("w"), 32))
    y = block(conv(x, 32, 24), 24)
    left = names(plan_layouts(lw.Function([x], y), CompileSettings(TARGET)).function)
    assert left.count("transpose") <= 2


def test_what_a_formula_adds_goes_by_the_axis_that_it_names():
    """SAME padding of strided windows is computed from the height and the width."""
    h, w = te.var("h"), te.var("w")
    x = lw.var("x", (1, h, w, 16))
    y = nn.relu(conv(x, 16, 16, 1))
    y = pad_by_extents(y, [0, h % 2, 0, 0], [0, 1, w % 3, 0], [y])
    y = conv(y, 16, 8, 1)
    left = names(same_values(x, y, numbers(1, 9, 14, 16), numbers(1, 4, 7, 16), numbers(1, 7, 4, 16)))
    assert left.count("transpose") <= 2


def test_what_is_said_of_an_extent_goes_by_the_axis_that_it_names():
    h, w = te.var("h"), te.var("w")
    x = lw.var("x", (1, h, w, 16))
    y = nn.relu(conv(x, 16, 16, 1))
    y = conv(assume_extent(y, 1, w, [y]), 16, 8, 1)
    same_values(x, y, numbers(1, 9, 9, 16), numbers(1, 4, 4, 16))
    with pytest.raises(lw.LoopwrightError):
        lw.Engine(lw.compile(lw.Function([x], y), jobs=1))([numbers(1, 9, 8, 16)])


def test_an_axis_that_stands_elsewhere_has_another_name_in_a_formula():
    places = {0: 0, 1: 2, 2: 3, 3: 1}
    assert with_axes("x0_1 + x1_3 * 2", lambda _, axis: places[axis]) == "x0_2 + x1_1 * 2"
    assert with_axes("x0_1 + x1_1", lambda argument, axis: places[axis] if argument == 0 else axis) == "x0_2 + x1_1"
    assert with_axes("x0_1 + 1", lambda _, axis: None) is None
    assert with_axes(3, lambda _, axis: None) == 3


def test_transposes_meet_across_what_moves_rows_or_counts_them():
    x = lw.var("x", (1, 12, 10, 16))
    y = conv(x, 16, 32, 1)
    parts = nn.concatenate([nn.strided_slice(y, [1], [7], [1]), nn.strided_slice(y, [3], [9], [1])], 2)
    result = Tuple((conv(nn.softmax(parts, 3), 32, 8, 1), nn.mean(nn.tanh(y), (1, 2))))
    left = names(same_values(x, result, numbers(1, 12, 10, 16)))
    assert left.count("transpose") <= 2


def test_a_transpose_that_nothing_undoes_stays_where_it_is():
    x = lw.var("x", (24, 40))
    function = lw.Function([x], nn.exp(nn.transpose(x)))
    assert plan_layouts(function, CompileSettings(TARGET)).function is function


def test_a_transpose_of_more_axes_than_there_are_letters_stays():
    x = lw.var("x", (*(1,) * 28, 3, 4))
    library = lw.compile(lw.Function([x], nn.negative(nn.transpose(nn.exp(x)))), jobs=1)
    given = numbers(3, 4).reshape(x.type.static_shape)
    np.testing.assert_allclose(lw.Engine(library)([given])[0], -np.exp(given).T, rtol=1e-6)


def test_layouts_are_named_by_rank():
    assert [str(Layout.of_rank(rank)) for rank in (2, 3, 4, 5, 6)] == ["AB", "NCW", "NCHW", "NCDHW", "ABCDEF"]
    assert str(Layout("NCHW16c").renamed(dict(zip("NCHW", "NWCH", strict=True)))) == "NWCH16w"


BEHIND_BLOCKS = {
    "max_pool": lambda x: nn.max_pool(x, 2),
    "avg_pool": lambda x: nn.avg_pool(x, 2),
    "lp_pool": lambda x: nn.lp_pool(x, 2),
    "global_avg_pool": nn.global_avg_pool,
    "lrn": lambda x: nn.lrn(x, size=3),
    "depth_to_space": lambda x: nn.depth_to_space(x, 2),
}


@pytest.mark.parametrize("name", BEHIND_BLOCKS)
def test_channels_in_blocks_that_become_samples_are_brought_together(name):
    """As where exporters cut an image for a dilated convolution. What follows reads no blocks of samples."""
    x = lw.var("x", (4, 8, 6, 8))
    y = nn.relu(nn.conv2d(x, constant(16, 8, 3, 3), padding=1))
    same_values(x, BEHIND_BLOCKS[name](nn.transpose(y, (1, 0, 2, 3))), numbers(4, 8, 6, 8))
