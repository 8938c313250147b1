"""Chunks of fused loops that begin and end anywhere in a row."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.lowering.passes.outline_parallel import outline_parallel


@pytest.mark.parametrize("fuse", [2, 3])
def test_chunks_that_begin_and_end_within_rows(native, fuse):
    """The stand-in for the thread pool makes chunks of three iterations."""
    n, m, k = te.var("n"), te.var("m"), te.var("k")
    A = te.placeholder((n, m, k), "int32", name="A")
    B = te.compute((n, m, k), lambda i, j, l: A[i, j, l] * 2 + te.cast(i * 100 + j * 10 + l, "int32"), name="B")
    s = lw.create_schedule(B)
    s[B].parallel(s[B].fuse(*s[B].loops[:fuse]))
    kernel = native(outline_parallel(lw.lower(s, [A, B])))
    for shape in ((1, 1, 1), (4, 2, 3), (2, 7, 2), (5, 1, 3), (1, 13, 1), (3, 5, 5), (0, 3, 2), (3, 0, 2), (2, 3, 0)):
        a = np.random.default_rng(0).integers(0, 100, shape).astype(np.int32)
        b = np.full(shape, -1, np.int32)
        assert kernel(a, b) == 0
        i, j, l = np.indices(shape)
        np.testing.assert_array_equal(b, a * 2 + i * 100 + j * 10 + l)
