"""Transposes behind reshapes of open extents keep their tiles: what a tile reads stays within the source."""

import numpy as np

import loopwright as lw
from loopwright import te
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
