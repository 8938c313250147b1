"""The default schedule's register tile, where no number of rows divides those that there are."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir.stmt import Allocate
from loopwright.ir.visit import walk
from loopwright.schedules.default_schedule import default_schedule


@pytest.mark.parametrize("rows", [1, 7, 61, 64, 67])
@pytest.mark.parametrize("columns", [40, 48])
def test_a_prime_number_of_rows_is_tiled_too(rows, columns):
    a, b = te.placeholder((rows, 30), name="a"), te.placeholder((30, columns), name="b")
    k = te.reduce_axis((0, 30), name="k")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    target = lw.resolve_target("x86-64-v3")
    func = lw.lower(default_schedule([c], target), [a, b, c], target=target)
    held = [n.buffer for n in walk(func.body) if isinstance(n, Allocate) and n.buffer.scope == "register"]
    if rows > 3:
        assert max(int(buffer.shape[0]) for buffer in held) >= 6  # as many sums at once
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((rows, 30)).astype(np.float32), rng.standard_normal((30, columns)).astype(np.float32)
    found = np.empty((rows, columns), np.float32)
    lw.interpret(func)(x, y, found)
    np.testing.assert_allclose(found, x.astype(np.float64) @ y, rtol=1e-4, atol=1e-5)
