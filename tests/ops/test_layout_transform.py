"""layout_transform: values against numpy, the vectors of its schedule, transforms of transforms, misuse."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.graph import Constant
from loopwright.graph.types import tensor_type
from loopwright.ops.families.reshape import reshape_to_open


def blocked(x, size):
    n, c, h, w = x.shape
    return x.reshape(n, c // size, size, h, w).transpose(0, 1, 3, 4, 2)


CASES = [
    ((2, 5, 3, 7), "NCHW", "NHWC", lambda x: x.transpose(0, 2, 3, 1)),
    ((2, 3, 7, 21), "NHWC", "NCHW", lambda x: x.transpose(0, 3, 1, 2)),
    ((1, 32, 3, 19), "NCHW", "NCHW16c", lambda x: blocked(x, 16)),
    ((1, 24, 3, 5), "NCHW", "NCHW8c", lambda x: blocked(x, 8)),
    ((1, 2, 3, 19, 16), "NCHW16c", "NCHW", lambda x: x.transpose(0, 1, 4, 2, 3).reshape(1, 32, 3, 19)),
    ((1, 2, 3, 5, 8), "NCHW8c", "NHWC", lambda x: x.transpose(0, 2, 3, 1, 4).reshape(1, 3, 5, 16)),
    ((1, 3, 5, 16), "NHWC", "NCHW8c", lambda x: x.reshape(1, 3, 5, 2, 8).transpose(0, 3, 1, 2, 4)),
    ((16, 8, 3, 2), "OIHW", "OIHW4i8o", lambda x: x.reshape(2, 8, 2, 4, 3, 2).transpose(0, 2, 4, 5, 3, 1)),
    ((5, 9), "NC", "CN", np.transpose),
]


def filled_up(x, extent, axis=1):
    return np.pad(x, [(0, extent - x.shape[axis] if number == axis else 0) for number in range(x.ndim)])


FILLED_UP = [
    ((2, 35, 5, 7), "NCHW", "NCHW16c", 48, lambda x: blocked(filled_up(x, 48), 16)),
    ((1, 9, 9, 19), "NCHW", "NCHW8c", 16, lambda x: blocked(filled_up(x, 16), 8)),
    ((1, 16, 3, 5), "NCHW", "NCHW8c", 16, lambda x: blocked(x, 8)),
    ((2, 3, 5, 7), "NHWC", "NCHW4c", 8, lambda x: blocked(filled_up(x.transpose(0, 3, 1, 2), 8), 4)),
    ((2, 3, 5, 7, 16), "NCHW16c", "NCHW", 35, lambda x: x.transpose(0, 1, 4, 2, 3).reshape(2, 48, 5, 7)[:, :35]),
    ((1, 2, 9, 19, 8), "NCHW8c", "NCHW", 9, lambda x: x.transpose(0, 1, 4, 2, 3).reshape(1, 16, 9, 19)[:, :9]),
    ((1, 2, 3, 5, 8), "NCHW8c", "NCHW", 16, lambda x: x.transpose(0, 1, 4, 2, 3).reshape(1, 16, 3, 5)),
    ((1, 2, 3, 5, 4), "NCHW4c", "NHWC", 7, lambda x: x.transpose(0, 2, 3, 1, 4).reshape(1, 3, 5, 8)[..., :7]),
]
"""Of a last block that has elements beyond the extent."""


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize(("shape", "source", "destination", "extent", "oracle"), FILLED_UP)
@pytest.mark.parametrize("target", ["x86-64-v2", "x86-64-v3", "native"])
def test_the_last_block_is_filled_up_and_what_fills_it_is_left_out(
    shape, source, destination, extent, oracle, target, is_open
):
    values = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    axis = source.index("H")
    size = (te.var("h"), te.var("w")) if is_open else shape[axis : axis + 2]
    x = lw.var("x", (*shape[:axis], *size, *shape[axis + 2 :]))
    call = lw.nn.layout_transform(x, source, destination, extent)
    (found,) = lw.Engine(lw.compile(lw.Function([x], call), target=target, jobs=1))([values])
    np.testing.assert_array_equal(found, oracle(values))
    made = lw.nn.layout_transform(lw.const(values), source, destination, extent)
    assert isinstance(made, Constant)
    np.testing.assert_array_equal(made.value, oracle(values))


def test_what_was_left_out_is_not_there_for_another_transform():
    x = lw.var("x", (1, 3, 4, 4, 8))
    plain = lw.nn.layout_transform(x, "NCHW8c", "NCHW", 20)
    again = lw.nn.layout_transform(plain, "NCHW", "NCHW4c")
    assert again.args == (plain,)
    assert again.type is tensor_type((1, 5, 4, 4, 4), "float32")
    blocks = lw.nn.layout_transform(lw.var("x", (1, 24, 4, 4)), "NCHW", "NCHW8c")
    assert lw.nn.layout_transform(blocks, "NCHW8c", "NCHW", 20).args == (blocks,)
    filled = lw.nn.layout_transform(plain, "NCHW", "NCHW8c", 24)
    assert filled.args == (plain,)
    assert filled.type is x.type


@pytest.mark.parametrize(
    ("source", "destination", "extent", "message"),
    [
        ("NCHW8c", "NCHW", 25, "25 of C do not end in the last of the blocks of 8, which are 24"),
        ("NCHW8c", "NCHW", 16, "16 of C do not end in the last"),
        ("NCHW8c", "NCHW", -1, "-1 of C do not end in the last"),
        ("NCDHW", "NCDHW4c", 8, "3 of C do not end in the last of the blocks of 4, which are 8"),
        ("NCDHW", "NCDHW4c", 6, "3 of C do not end in the last of the blocks of 4, which are 6"),
        ("NCHW8c", "NCHW4c", 20, "extent is of the one axis that is in blocks in one of NCHW8c and NCHW4c"),
        ("NCDHW", "NDHWC", 3, "extent is of the one axis"),
        ("NCHW8c", "NWC", 20, "extent is of the one axis"),
    ],
)
def test_an_extent_that_does_not_end_in_the_last_block_is_told(source, destination, extent, message):
    with pytest.raises(lw.TypeInferenceError, match=message):
        lw.nn.layout_transform(lw.var("x", (1, 3, 4, 4, 8)), source, destination, extent)


def test_an_extent_of_an_axis_of_open_extent_is_told():
    x = lw.var("x", (1, te.var("c"), 4, 4))
    with pytest.raises(lw.TypeInferenceError, match="extent is 8, but it is open how many C x has"):
        lw.nn.layout_transform(x, "NCHW", "NCHW8c", 8)


@pytest.mark.parametrize(("shape", "source", "destination", "oracle"), CASES)
def test_it_is_what_numpy_makes_of_it(ops, shape, source, destination, oracle):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    found = ops.apply(lw.nn.layout_transform, x, source=source, destination=destination, native=True)
    np.testing.assert_array_equal(found, oracle(x))


@pytest.mark.parametrize(("shape", "source", "destination", "oracle"), CASES)
def test_a_constant_is_rearranged_at_once(shape, source, destination, oracle):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    made = lw.nn.layout_transform(lw.const(x), source, destination)
    assert isinstance(made, Constant)
    np.testing.assert_array_equal(made.value, oracle(x))


def test_there_and_back_is_nothing_and_two_are_one():
    x = lw.var("x", (1, 32, 4, 4))
    y = lw.nn.layout_transform(x, "NCHW", "NCHW16c")
    assert lw.nn.layout_transform(x, "NCHW", "NCHW") is x
    assert lw.nn.layout_transform(y, "NCHW16c", "NCHW") is x
    z = lw.nn.layout_transform(y, "NCHW16c", "NHWC")
    assert z.args == (x,)
    assert (z.attrs.source, z.attrs.destination) == ("NCHW", "NHWC")


def test_symbolic_extents_pass_through(ops):
    n = te.var("n")
    call = lw.nn.layout_transform(ops.var((n, 16, 4, 4)), "NCHW", "NCHW8c")
    assert call.type is tensor_type((n, 2, 4, 4, 8), "float32")


def built(ops, call, name):
    target = lw.resolve_target(name)
    chosen, inputs, outputs = ops.implement(call, target)
    return lw.build(chosen.schedule(call.attrs, outputs, outputs, target), [*inputs, *outputs], target=target)


@pytest.mark.parametrize(("source", "destination"), [("NCHW", "NHWC"), ("NCHW", "NCHW16c"), ("NCHW16c", "NCHW")])
def test_no_schedule_gathers(ops, source, destination):
    shape = (1, 2, 8, 32, 16) if source == "NCHW16c" else (1, 32, 8, 32)
    kernel = built(ops, lw.nn.layout_transform(ops.var(shape), source, destination), "native")
    assert "gather" not in kernel.llvm_ir
    assert "scatter" not in kernel.llvm_ir


def test_the_same_innermost_axis_moves_in_vectors(ops):
    call = lw.nn.layout_transform(ops.var((1, 8, 8, 32)), "NHWC", "NCHW16c")
    kernel = built(ops, call, "x86-64-v3")
    assert "load <8 x float>" in kernel.llvm_ir
    assert "load float" not in kernel.llvm_ir


@pytest.mark.parametrize("shape", [(1, 16, 8, 8), (1, 2, 8, 8, 8)])
def test_blocks_are_transposed_in_registers(ops, shape):
    layouts = ("NCHW", "NCHW8c") if len(shape) == 4 else ("NCHW8c", "NCHW")
    call = lw.nn.layout_transform(ops.var(shape), *layouts)
    kernel = built(ops, call, "x86-64-v3")
    assert "load <8 x float>" in kernel.llvm_ir
    assert "store <8 x float>" in kernel.llvm_ir
    assert "load float" not in kernel.llvm_ir


@pytest.mark.parametrize(
    ("source", "destination", "message"),
    [
        ("NCHW", "NCDHW", r"layout_transform\(x: float32\[1, 3, 4, 4\]\): .* have different axes"),
        ("NCHW", "NCHW16c", "needs C in blocks of 16, which 3 is not"),
        ("NCHW16c", "NCHW", "has 5 axes, the shape"),
        ("NCHWc", "NCHW", "malformed"),
    ],
)
def test_misuse_is_told(ops, source, destination, message):
    with pytest.raises(lw.TypeInferenceError, match=message):
        lw.nn.layout_transform(ops.var((1, 3, 4, 4)), source, destination)


@pytest.mark.parametrize("to_blocks", [True, False])
def test_elements_of_open_images_that_are_moved_as_they_are_read(to_blocks):
    """Of every second row and column from the second on, as of a crop of pixels that were interleaved."""
    shape = (te.var("n"), 8, te.var("h"), te.var("w"))
    x = lw.var("x", shape if to_blocks else (shape[0], 1, *shape[2:], 8))
    part = lw.nn.strided_slice(x, (1, 1), (2**31, 2**31), axes=(2, 3), steps=(2, 2))
    source, destination = ("NCHW", "NCHW8c") if to_blocks else ("NCHW8c", "NCHW")
    library = lw.compile(
        lw.Function([x], lw.nn.layout_transform(part, source, destination)), target="x86-64-v3", jobs=1
    )
    (function,) = library.functions
    assert "layout_transform" in function.name
    assert "strided_slice" in function.name
    engine = lw.Engine(library)
    for n, h, w in ((1, 2, 2), (2, 7, 9), (1, 34, 19), (1, 1, 5)):
        plain = np.arange(n * 8 * h * w, dtype=np.float32).reshape(n, 8, h, w)
        in_blocks = blocked(plain, 8).copy()
        (found,) = engine([plain if to_blocks else in_blocks])
        np.testing.assert_array_equal(found, in_blocks[:, :, 1::2, 1::2] if to_blocks else plain[:, :, 1::2, 1::2])


@pytest.mark.parametrize("scaled", ["channels", "groups"])
def test_open_images_that_were_in_groups_of_channels(scaled):
    """As behind group normalization: their elements are read in order, hence transposed in registers, with what is
    read along the image's axes. What is read along the axes of groups would take a division for each."""
    n, h, w = te.var("n"), te.var("h"), te.var("w")
    x, told = lw.var("x", (n, 4, h * w * 2)), lw.var("told", (n, 8, h, w))
    scales = np.random.default_rng(0).random((8, 1, 1) if scaled == "channels" else (4, 1), np.float32)
    groups = x if scaled == "channels" else x * lw.const(scales)
    image = reshape_to_open(groups, (n, 8, h, w), [told])
    image = image * lw.const(scales) if scaled == "channels" else image
    made = lw.nn.layout_transform(lw.nn.sigmoid(image) * image, "NCHW", "NCHW8c")
    library = lw.compile(lw.Function([x, told], made), target="x86-64-v3", jobs=1)
    (function,) = library.functions
    assert ("ramp" in str(function.loop_ir)) == (scaled == "channels")
    engine = lw.Engine(library)
    for batch, rows, columns in ((1, 8, 16), (2, 7, 3), (1, 1, 1)):
        plain = np.random.default_rng(1).standard_normal((batch, 4, rows * columns * 2), np.float32)
        y = (plain * scales if scaled == "groups" else plain).reshape(batch, 8, rows, columns)
        y = y * scales if scaled == "channels" else y
        (found,) = engine([plain, np.zeros((batch, 8, rows, columns), np.float32)])
        np.testing.assert_allclose(found, blocked(y / (1 + np.exp(-y)), 8), rtol=1e-5)
