"""Transposes behind reshapes of open extents keep their tiles: what a tile reads stays within the source."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import loopwright as lw
from loopwright import te
from loopwright.ops.families.byte_table import byte_table
from loopwright.ops.families.reshape import reshape_to_open


def test_channels_of_groups_go_last():
    """The last tile ends where the positions end, which is as far as its last vector reaches, or before."""
    images, rows, columns = te.var("images"), te.var("rows"), te.var("columns")
    x = lw.var("x", (images, 8, rows, columns))
    groups = reshape_to_open(x, [images, 2, rows * columns * 4], [x])
    shares = groups / lw.nn.sum(groups, axes=(2,), keepdims=True)
    image = reshape_to_open(shares, [images, 8, rows, columns], [x])
    library = lw.compile(lw.Function([x], lw.nn.transpose(image, axes=(0, 2, 3, 1))), "x86-64-v3")
    assert "transpose.tiled" in [choice.implementation for f in library.functions for choice in f.choices]

    given = np.random.default_rng(0).random((3, 8, 5, 7), np.float32) + 1
    sums = given.reshape(3, 2, -1).sum(axis=2).repeat(4, axis=1)[:, :, None, None]
    (found,) = lw.Engine(library)(given)
    np.testing.assert_allclose(found, (given / sums).transpose(0, 2, 3, 1), rtol=1e-5)


def test_a_border_before_the_rows_is_no_hindrance():
    """Rows and columns make one axis of the tiles, of which a position is a quotient, moved by the border."""
    x = lw.var("x", (32, 33, 4))
    bordered = lw.nn.pad(x, [1] * 3, [0] * 3, value=1.0)
    library = lw.compile(lw.Function([x], lw.nn.sqrt(lw.nn.transpose(bordered, axes=(1, 2, 0)))), "x86-64-v3")
    assert "transpose.tiled" in [choice.implementation for f in library.functions for choice in f.choices]

    given = np.random.default_rng(0).random((32, 33, 4), np.float32)
    wanted = np.sqrt(np.pad(given, [(1, 0)] * 3, constant_values=1)).transpose(1, 2, 0)
    (found,) = lw.Engine(library)(given)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_a_table_of_bytes_is_no_hindrance(kind):
    """What is read of it beyond the end of a tile is one of its 256 elements, whatever is in memory."""
    x, table = lw.var("x", (1, 64, te.var("n")), kind), np.random.default_rng(1).permutation(256).astype(np.uint8)
    library = lw.compile(lw.Function([x], lw.nn.transpose(byte_table(x, lw.const(table)), (0, 2, 1))), "x86-64-v3")
    assert "transpose.tiled" in [choice.implementation for f in library.functions for choice in f.choices]

    given = np.random.default_rng(0).integers(0, 256, (1, 64, 37)).astype(np.uint8)
    (found,) = lw.Engine(library)(given.view(kind))
    np.testing.assert_array_equal(found, table[given].transpose(0, 2, 1))


@pytest.mark.parametrize("shape", [("n", 1, 1, 12), (33, 1, 1, 12), ("m", "n", 1, 12)], ids=str)
def test_tiles_may_reach_beyond_an_axis_that_stands_behind_one_of_one_element(shape):
    """Two axes of the result make one of the tiles, of which the last one reaches beyond the second axis."""
    dims = {name: te.var(name) for name in shape if isinstance(name, str)}
    x = lw.var("x", [dims.get(extent, extent) for extent in shape])
    moved = lw.nn.log(lw.nn.add(lw.nn.transpose(x, axes=(2, 3, 0, 1)), lw.const(np.float32(1))))
    library = lw.compile(lw.Function([x], moved), "x86-64-v3")
    assert "transpose.tiled" in [choice.implementation for f in library.functions for choice in f.choices]

    given = np.random.default_rng(0).random([{"n": 11, "m": 3}.get(e, e) for e in shape], np.float32)
    (found,) = lw.Engine(library)(given)
    np.testing.assert_allclose(found, np.log1p(given.transpose(2, 3, 0, 1)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("count", "axis", "order"), [(2, 3, (3, 2, 4, 0, 1)), (3, 3, (3, 2, 4, 0, 1)), (3, 1, (4, 2, 3, 0, 1))]
)
def test_pieces_of_one_element_are_no_hindrance(count, axis, order):
    """What keeps a read within a piece are bounds of several parts of its index, each by a condition of its own."""
    parts = [lw.var(f"x{k}", (3, 33, 1, 1, 261)) for k in range(count)]
    function = lw.Function(parts, lw.nn.transpose(lw.nn.concatenate(parts, axis), axes=order))
    library = lw.compile(function, "x86-64-v3", jobs=1)
    assert "transpose.tiled" in [choice.implementation for f in library.functions for choice in f.choices]
    given = [np.random.default_rng(k).random((3, 33, 1, 1, 261), np.float32) for k in range(count)]
    (found,) = lw.Engine(library)(given)
    np.testing.assert_array_equal(found, np.concatenate(given, axis).transpose(order))


@pytest.mark.parametrize("length", [0, 1, 2])
def test_rows_that_are_at_most_short_have_no_tiles(length):
    """A slice of an open axis has an open extent, of which only the most is known."""
    x = lw.var("x", (te.var("n"), te.var("t"), 64))
    first = lw.nn.strided_slice(x, [0], [1], [1])
    library = lw.compile(lw.Function([x], lw.nn.sqrt(lw.nn.transpose(first, axes=(0, 2, 1)))), "x86-64-v3")
    assert "transpose.generic" in [choice.implementation for f in library.functions for choice in f.choices]

    given = np.random.default_rng(0).random((2, length, 64), np.float32)
    (found,) = lw.Engine(library)(given)
    np.testing.assert_allclose(found, np.sqrt(given[:, :1]).transpose(0, 2, 1), rtol=1e-6)


@pytest.mark.parametrize(("n", "m"), [(37, 37), (1, 37), (37, 1), (1, 1)])
def test_sums_of_axes_that_may_be_one_long_are_turned_in_tiles(n, m):
    """That none is read beyond the end of the longer one is known, as of each read by itself it is not."""
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["a", "b", 40]) for name in ("p", "q")]
    info += [helper.make_tensor_value_info(name, TensorProto.BOOL, [40]) for name in ("c", "d")]
    nodes = [
        helper.make_node("Compress", ["p", "c"], ["x"], axis=2),
        helper.make_node("Compress", ["q", "d"], ["y"], axis=2),
        helper.make_node("Add", ["x", "y"], ["z"]),
        helper.make_node("Transpose", ["z"], ["t"], perm=[0, 2, 1]),
    ]
    graph = helper.make_graph(nodes, "g", info, [helper.make_tensor_value_info("t", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    library = lw.compile(model, "x86-64-v3", jobs=1)
    assert "transpose.tiled" in [choice.implementation for f in library.functions for choice in f.choices]
    p, q = (np.random.default_rng(k).random((5, 20, 40), np.float32) for k in range(2))
    (found,) = lw.Engine(library)([p, q, np.arange(40) < n, np.arange(40) < m])
    np.testing.assert_array_equal(found, (p[..., :n] + q[..., :m]).transpose(0, 2, 1))
