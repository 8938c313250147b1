"""Loops over the steps of sums."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.schedules.step_loops import step_loops


def sums(extents):
    """A schedule of sums of products over axes of these extents, and the sums."""
    x = te.placeholder((16, *extents), "float32", name="x")
    axes = [te.reduce_axis((0, extent), name=f"r{k}") for k, extent in enumerate(extents)]
    total = te.compute((16,), lambda i: te.sum(x[(i, *axes)], axis=axes), name="total")
    return lw.create_schedule(total), x, total


@pytest.mark.parametrize(
    ("extents", "names"),
    [
        ((8, 2), ["r0_r1_fused"]),
        ((8, 2, 1), ["r0_r1_fused_r2_fused"]),
        ((8, 3, 2), ["r0", "r1_r2_fused"]),
        ((8, 2, 2), ["r0", "r1_r2_fused"]),
        ((8, 1, 2), ["r0_r1_fused_r2_fused"]),
        ((te.var("n"), 2), ["r0_r1_fused"]),
        ((8, 2, 3), ["r0", "r1", "r2"]),
        ((2, te.var("n")), ["r0", "r1"]),
        ((2,), ["r0"]),
        ((1, 1), ["r0", "r1"]),
    ],
)
def test_no_innermost_loop_has_two_iterations(extents, names):
    schedule, _, total = sums(extents)
    loops = step_loops(schedule[total])
    assert [loop.name for loop in loops] == names
    assert [loop.id for loop in schedule[total].loops[1:]] == [loop.id for loop in loops]


def test_the_sums_stay_the_same():
    schedule, x, total = sums((4, 2, 2))
    step_loops(schedule[total])
    values = np.random.default_rng(0).integers(-9, 9, (16, 4, 2, 2)).astype(np.float32)
    found = np.zeros(16, np.float32)
    lw.build(schedule, [x, total])(values, found)
    np.testing.assert_array_equal(found, values.sum((1, 2, 3)))
