"""Copies in another layout: vectors run along what the layout has last, and no lane divides an index."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir.expr import Binary, Ramp
from loopwright.ir.stmt import Store
from loopwright.ir.visit import walk
from loopwright.schedules.default_schedule import schedule_stage

TARGET = lw.resolve_target("x86-64-v4")


def copied(shape, index_map, dtype="float32"):
    """``y = x + x`` of a tensor of that shape, by way of a copy in that layout, and its function."""
    x = te.placeholder(shape, dtype, name="x")
    y = te.compute(x.shape, lambda *i: x[i] + x[i], name="y")
    s = lw.create_schedule(y)
    copy = s[s.cache_read(x, "global", ["y"])]
    copy.transform_layout(index_map)
    schedule_stage(copy, TARGET)
    return copy.name, lw.lower(s, [x, y], target=TARGET)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize(
    ("shape", "index_map"),
    [
        ((33, 250), "lambda i, j: (j // 48, i, j % 48)"),
        ((33, 250), "lambda i, j: (j, i)"),
        ((9, 7, 64), "lambda c, i, j: (c, i, j % 2, j // 2)"),
        ((9, 7, 65), "lambda c, i, j: (c, i, j % 2, j // 2)"),
        ((7, 64), "lambda i, j: (i * 64 + j,)"),
        ((5, 1), "lambda i, j: (j, i)"),
        ((0, 8), "lambda i, j: (j, i)"),
    ],
)
def test_vectors_run_along_what_is_last(shape, index_map, dtype):
    name, func = copied(shape, index_map, dtype)
    stores = [n for n in walk(func.body) if isinstance(n, Store) and n.buffer.name == name and n.value.dtype.lanes > 1]
    if min(shape) > 1:
        assert stores
        assert all(isinstance(store.indices[-1], Ramp) and store.indices[-1].stride.value == 1 for store in stores)
    divided = [n for n in walk(func.body) if isinstance(n, Binary) and n.op in ("//", "%") and n.dtype.lanes > 1]
    assert not divided
    given = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    found = np.empty_like(given)
    lw.interpret(func)(given, found)
    np.testing.assert_array_equal(found, given + given)
