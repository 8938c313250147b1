"""Operators that move or repeat elements, against numpy: transpose, concatenate, broadcast_to, tile, blocks of pixels,
triangles."""

import re

import numpy as np
import pytest

import loopwright as lw
from loopwright import TypeInferenceError, te
from loopwright.graph.node import Tuple
from loopwright.graph.types import tensor_type
from loopwright.ops.families.concatenate import concatenate
from loopwright.ops.families.repeat import broadcast_to, tile, tile_by_extents
from loopwright.ops.families.space_depth import DEPTH_TO_SPACE, PixelAttrs, depth_to_space, space_to_depth
from loopwright.ops.families.transpose import transpose
from loopwright.ops.families.trilu import trilu


def numbers(*shape, kind=np.float32):
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(kind)


@pytest.mark.parametrize("axes", [None, (0, 1, 2), (2, 0, 1), (1, 0, -1)])
def test_transpose(ops, axes):
    x = numbers(2, 3, 5)
    for native in (False, True):
        np.testing.assert_array_equal(ops.apply(transpose, x, axes=axes, native=native), x.transpose(axes))


@pytest.mark.parametrize(
    ("shape", "axes", "kind"),
    [
        ((35, 50), (1, 0), np.float32),
        ((2, 16, 5, 7), (0, 2, 3, 1), np.float32),
        ((2, 5, 7, 19), (0, 3, 1, 2), np.float64),
        ((3, 40, 33), (2, 0, 1), np.uint8),
        ((17, 2, 16), (2, 1, 0), np.int16),
        ((12, 70), (1, 0), np.float32),
        ((70, 5), (1, 0), np.float32),
        ((4, 5, 3, 6), (3, 1, 2, 0), np.int64),
        ((3, 11, 37), (0, 2, 1), np.uint8),
    ],
    ids=str,
)
@pytest.mark.parametrize("target", ["x86-64", "native"])
def test_transpose_by_tiles(target, shape, axes, kind):
    x = numbers(*shape, kind=kind)
    parameter = lw.var("x", shape, np.dtype(kind).name)
    library = lw.compile(lw.Function([parameter], transpose(parameter, axes)), target=target, jobs=1)
    (function,) = library.functions
    assert function.choices[0].implementation == "transpose.tiled"
    assert "gather" not in function.llvm_ir
    np.testing.assert_array_equal(lw.Engine(library)([x])[0], x.transpose(axes))


@pytest.mark.parametrize(
    ("shape", "axes", "kind"),
    [
        ((1, 3, 9, 16), (0, 2, 3, 1), np.float32),
        ((2, 3, 37), (0, 2, 1), np.float32),
        ((3, 50), (1, 0), np.int16),
        ((3, 2, 33), (1, 2, 0), np.uint8),
    ],
    ids=str,
)
@pytest.mark.parametrize("target", ["x86-64", "x86-64-v3", "native"])
def test_few_long_rows_are_interleaved(target, shape, axes, kind):
    x = numbers(*shape, kind=kind)
    parameter = lw.var("x", shape, np.dtype(kind).name)
    library = lw.compile(lw.Function([parameter], transpose(parameter, axes)), target=target, jobs=1)
    (function,) = library.functions
    assert function.choices[0].implementation == "transpose.interleaved"
    np.testing.assert_array_equal(lw.Engine(library)([x])[0], x.transpose(axes))


def test_interleaving_channels_is_loads_shuffles_and_stores_of_whole_vectors():
    x = lw.var("x", (1, 3, 8, 32))
    (function,) = lw.compile(lw.Function([x], transpose(x, (0, 2, 3, 1))), target="x86-64-v4", jobs=1).functions
    assert function.choices[0].implementation == "transpose.interleaved"
    assert "gather" not in function.llvm_ir
    assert "scatter" not in function.llvm_ir


def test_transpose_by_tiles_of_open_extents_with_what_follows():
    n, m = te.var("n"), te.var("m")
    x = lw.var("x", (n, m, 3))
    library = lw.compile(lw.Function([x], lw.nn.negative(transpose(x, (1, 2, 0)))), jobs=1)
    engine = lw.Engine(library)
    for extents in ((1, 1), (16, 33), (40, 7)):
        a = numbers(*extents, 3)
        np.testing.assert_array_equal(engine([a])[0], -a.transpose(1, 2, 0))


def test_transpose_of_what_is_no_permutation_is_refused(ops):
    with pytest.raises(TypeInferenceError, match=r"axes \(0, 0\) are not the 2 axes"):
        transpose(ops.var((2, 3)), (0, 0))
    with pytest.raises(TypeInferenceError, match="axis 2 is not one"):
        transpose(ops.var((2, 3)), (0, 2))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("extents", [(3,), (1, 4), (2, 0, 3, 9)])
def test_concatenate(ops, axis, extents):
    parts = []
    for k, extent in enumerate(extents):
        shape = [2, 3, 5]
        shape[axis] = extent
        parts.append(numbers(*shape) + 100 * k)
    for native in (False, True):
        found = ops.apply(lambda *x: concatenate(x, axis), *parts, native=native)
        np.testing.assert_array_equal(found, np.concatenate(parts, axis))


def test_concatenate_infers_symbolic_extents(ops):
    n, m = te.var("n"), te.var("m")
    made = concatenate([ops.var((n, 3)), ops.var((n, 4))], 1)
    assert made.type is tensor_type((n, 7), "float32")
    assert concatenate([ops.var((5, 3)), ops.var((n, 3))], 1).type is tensor_type((5, 6), "float32")
    assert concatenate([ops.var((n, 3)), ops.var((m, 4))], 1).type is tensor_type((n, 7), "float32")
    with pytest.raises(TypeInferenceError, match="extents 2 and 5 on axis 0"):
        concatenate([ops.var((2, 3)), ops.var((5, 3))], 1)
    x, y = ops.var((n, 3)), ops.var((m, 3))
    a, b = numbers(4, 3), numbers(2, 3)
    np.testing.assert_array_equal(ops.evaluate(concatenate([x, y]), {x: a, y: b}), np.concatenate([a, b]))


def test_tensors_that_cannot_follow_each_other_are_refused(ops):
    x = ops.var((2, 3))
    with pytest.raises(TypeInferenceError, match="at least one tensor"):
        concatenate([])
    with pytest.raises(TypeInferenceError, match="rank 2 and 3"):
        concatenate([x, ops.var((2, 3, 1))])
    with pytest.raises(TypeInferenceError, match="extents 3 and 4 on axis 1"):
        concatenate([x, ops.var((2, 4))])
    with pytest.raises(TypeInferenceError, match="tensor 0 is float32, but tensor 1 is int32"):
        concatenate([x, ops.var((2, 3), "int32")])
    with pytest.raises(TypeInferenceError, match="axis 2 is not one"):
        concatenate([x, x], 2)


@pytest.mark.parametrize(("old", "shape"), [((3, 1), (2, 3, 4)), ((), (2, 2)), ((2, 3), (1, 1)), ((1, 5), (0, 5))])
def test_broadcast_to(ops, old, shape):
    x = numbers(*old)
    wanted = np.broadcast_to(x, np.broadcast_shapes(old, shape))
    np.testing.assert_array_equal(ops.apply(broadcast_to, x, shape=shape), wanted)


def test_extents_that_do_not_broadcast_are_refused(ops):
    with pytest.raises(TypeInferenceError, match="extents 3 of x and 4 of the shape do not broadcast"):
        broadcast_to(ops.var((3,)), (4,))


@pytest.mark.parametrize("repeats", [(2, 3), (1, 1), (0, 2), (3,)])
def test_tile(ops, repeats):
    x = numbers(2, 3)
    np.testing.assert_array_equal(ops.apply(tile, x, repeats=repeats), np.tile(x, repeats))
    with pytest.raises(TypeInferenceError, match="3 repeats are given for the 2 axes"):
        tile(ops.var((2, 3)), (1, 2, 3))


@pytest.mark.parametrize(
    ("shape", "repeats", "name"),
    [
        ((3, 33), (1, 2), "concatenate"),
        ((3, 33, 1), (1, 4, 1), "concatenate"),
        ((3, 33), (2, 3), "tile"),
        ((3, 33), (2, 1), "tile"),
        ((3, 33), (1, 5), "tile"),
        ((3, 0), (1, 2), "tile"),
        ((1, 1), (2, 3), "tile"),
        ((), (), "tile"),
    ],
)
def test_rows_that_are_repeated_a_few_times_are_concatenated(ops, shape, repeats, name):
    assert tile(ops.var(shape), repeats).op.name == name
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    np.testing.assert_array_equal(ops.apply(tile, x, repeats=repeats), np.tile(x, repeats))


OPEN_TILES = {
    "rows": (("n", "m"), (1, 3)),
    "columns": (("n", 5), (4, 1)),
    "both": (("n", 3, "m"), (2, 1, 5)),
    "an axis in the middle": ((2, "n", 3, 2), (1, 7, 1, 1)),
    "open repeats": ((6, 4), ("n", 1)),
    "open repeats of rows": ((3, 5), (1, "n")),
    "extents and repeats": (("n", 4), (2, "m")),
    "known columns beside open rows": (("n", 5), (2, 7)),
    "long rows beside open ones": (("n", 40), (2, 2)),
    "nothing": (("n", 4), (0, 1)),
}


@pytest.mark.parametrize("name", OPEN_TILES)
@pytest.mark.parametrize("behind", [False, True])
def test_tiles_of_open_extents_or_repeats_are_found_without_remainders(name, behind):
    shape, repeats = OPEN_TILES[name]
    dims = {d: te.var(d) for d in ("n", "m")}
    x, by = lw.var("x", [dims.get(e, e) for e in shape]), lw.var("by", list(dims.values()))
    whole = tile_by_extents(x, [dims.get(r, r) for r in repeats], [x, by])
    body = lw.nn.relu(lw.nn.negative(whole)) if behind else whole
    library = lw.compile(lw.Function([x, by], Tuple((body, lw.nn.negative(by)))), jobs=1)
    if name != "nothing":
        (text,) = (f.loop_ir for f in library.functions if "tile.parts" in str(f.choices))
        assert not any(re.search(r"% n\d", line) for line in text.splitlines() if "ramp(" in line), text
    for n, m in ((1, 1), (2, 17), (16, 3), (33, 40)):
        data = numbers(*({"n": n, "m": m}.get(e, e) for e in shape))
        wanted = np.tile(data, [{"n": n, "m": m}.get(r, r) for r in repeats])
        found, _ = lw.Engine(library)([data, numbers(n, m)])
        np.testing.assert_array_equal(found, np.maximum(-wanted, 0) if behind else wanted)


def test_long_rows_of_an_open_number_are_copied_part_by_part():
    """Joined first, as short ones are, each element was chosen between two parts: ten times as slow for 300."""
    x = lw.var("x", (te.var("n"), 40))
    (function,) = lw.compile(lw.Function([x], lw.nn.tile(x, (2, 2))), jobs=1).functions
    assert "select" not in function.loop_ir


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_blocks_of_pixels(ops, mode):
    x = numbers(2, 12, 2, 3)
    split = (2, 2, 2, 3, 2, 3) if mode == "DCR" else (2, 3, 2, 2, 2, 3)
    order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    wanted = x.reshape(split).transpose(order).reshape(2, 3, 4, 6)
    np.testing.assert_array_equal(ops.apply(depth_to_space, x, block_size=2, mode=mode), wanted)
    np.testing.assert_array_equal(ops.apply(space_to_depth, wanted, block_size=2, mode=mode), x)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize(
    ("shape", "block", "kind"),
    [((2, 8, 3, 16), 2, np.float32), ((1, 9, 2, 37), 3, np.float32), ((1, 32, 1, 5), 4, np.int16)],
    ids=str,
)
@pytest.mark.parametrize("target", ["x86-64", "x86-64-v3", "native"])
def test_rows_of_small_blocks_of_pixels_are_interleaved(target, shape, block, kind, mode):
    x = numbers(*shape, kind=kind)
    parameter = lw.var("x", shape, np.dtype(kind).name)
    call = lw.nn.negative(depth_to_space(parameter, block, mode))
    library = lw.compile(lw.Function([parameter], call), target=target, jobs=1)
    (function,) = library.functions
    assert function.choices[0].implementation == "nn.depth_to_space.interleaved"
    n, c, h, w = shape
    c //= block * block
    split = (n, block, block, c, h, w) if mode == "DCR" else (n, c, block, block, h, w)
    order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    wanted = x.reshape(split).transpose(order).reshape(n, c, h * block, w * block)
    np.testing.assert_array_equal(lw.Engine(library)([x])[0], -wanted)


@pytest.mark.parametrize("width", [16, 14])
def test_interleaving_pixels_is_loads_shuffles_and_stores_of_vectors(width):
    x = lw.var("x", (1, 8, 4, width))
    (function,) = lw.compile(lw.Function([x], depth_to_space(x, 2)), target="x86-64-v4", jobs=1).functions
    assert function.choices[0].implementation == "nn.depth_to_space.interleaved"
    assert "gather" not in function.llvm_ir
    assert "scatter" not in function.llvm_ir


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_blocks_of_pixels_of_channels_in_blocks(ops, mode):
    x = numbers(1, 16, 2, 3)
    wanted = ops.apply(depth_to_space, x, block_size=2, mode=mode)

    def blocked(array):
        return array.reshape(1, -1, 4, *array.shape[2:]).transpose(0, 1, 3, 4, 2)

    call = DEPTH_TO_SPACE(ops.var((1, 4, 2, 3, 4)), attrs=PixelAttrs(2, mode, "NCHW4c"))
    np.testing.assert_array_equal(ops.evaluate(call, {call.args[0]: np.ascontiguousarray(blocked(x))}), blocked(wanted))


def test_blocks_that_do_not_divide_are_refused(ops):
    with pytest.raises(TypeInferenceError, match="1 channels must divide into the blocks of layout NCHW4c"):
        DEPTH_TO_SPACE(ops.var((1, 1, 2, 3, 4)), attrs=PixelAttrs(2, "DCR", "NCHW4c"))
    with pytest.raises(TypeInferenceError, match="channels must divide by 4, found 6"):
        depth_to_space(ops.var((1, 6, 2, 2)), 2)
    with pytest.raises(TypeInferenceError, match="rows must divide by 2, found 3"):
        space_to_depth(ops.var((1, 6, 3, 2)), 2)
    with pytest.raises(TypeInferenceError, match="mode must be one of 'DCR', 'CRD'"):
        depth_to_space(ops.var((1, 4, 2, 2)), 2, "RCD")
    with pytest.raises(TypeInferenceError, match="rank 4"):
        depth_to_space(ops.var((4, 2, 2)), 2)


@pytest.mark.parametrize("k", [-7, -1, 0, 2, 9])
@pytest.mark.parametrize("upper", [True, False])
def test_triangles(ops, k, upper):
    for kind in (np.float32, np.int64, np.bool_):
        x = (numbers(2, 3, 5) + 1).astype(kind)
        wanted = np.triu(x, k) if upper else np.tril(x, k)
        np.testing.assert_array_equal(ops.apply(trilu, x, k=k, upper=upper), wanted)
    with pytest.raises(TypeInferenceError, match="matrices"):
        trilu(ops.var((3,)))
