"""Convolutions of integers that are summed in their own dtype: they have the schedules of those of floats."""

import numpy as np
import windows
from pairs import each_pair

import loopwright as lw
from loopwright import te

CASES = {
    "plain": ((1, 20, 14, 14), (24, 20, 3, 3), {"padding": (1, 1)}),
    "pointwise": ((1, 48, 9, 11), (32, 48, 1, 1), {}),
    "strided": ((2, 16, 13, 17), (16, 16, 3, 3), {"strides": (2, 2), "padding": (1, 1)}),
    "depthwise": ((1, 32, 12, 12), (32, 1, 3, 3), {"groups": 32, "padding": (1, 1)}),
    "groups": ((1, 12, 8, 8), (18, 4, 3, 3), {"groups": 3, "dilation": (2, 1), "padding": (2, 1)}),
}


def wrapped_sums(x, weight, strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    """The definition, exact in float64 for such numbers, of which the dtype keeps the lower bits."""
    return windows.conv(x, weight, strides, padding * 2, dilation, groups).astype(np.int64).astype(weight.dtype)


@each_pair(name=CASES, kind=["int32", "int64", "uint32", "int16"], opened=[False, True])
def test_integers_are_summed_exactly(name, kind, opened):
    shape, weights, options = CASES[name]
    rng = np.random.default_rng(0)
    data, weight = (rng.integers(0, 1 << 12, size).astype(kind) for size in (shape, weights))
    extents = (te.var("n"), shape[1], te.var("h"), te.var("w")) if opened else shape
    x = lw.var("x", extents, kind)
    library = lw.compile(lw.Function([x], lw.nn.conv2d(x, lw.const(weight), **options)), jobs=1)
    used = {c.implementation for f in library.functions for c in f.choices if c.call.startswith("nn.conv2d")}
    assert used
    if kind == "int32":
        assert "conv.direct" not in used
    np.testing.assert_array_equal(lw.Engine(library)([data])[0], wrapped_sums(data, weight, **options))
