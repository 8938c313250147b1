"""What is taken at known indices becomes slices."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.compiler.passes.slice_known_columns import slice_known_columns
from loopwright.graph.node import Call, Constant
from loopwright.graph.visit import post_order
from loopwright.ops.families.gather import take

ROWS, COLUMNS = 5, 12
X = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(np.float32)
CASES = [
    ([2, 3, 4], 1, ["strided_slice"]),
    ([7], 1, ["strided_slice"]),
    ([*range(COLUMNS)], 1, ["strided_slice"]),
    ([0, 2, 3, 11], 1, ["strided_slice"] * 3 + ["concatenate"]),
    ([5, 5, 4, 0], 1, ["strided_slice"] * 4 + ["concatenate"]),
    ([-2, -1, 0], 1, ["strided_slice"] * 2 + ["concatenate"]),
    ([-99, 1, 99], 1, ["strided_slice"] * 2 + ["concatenate"]),
    ([1, 2], 0, ["strided_slice"]),
    ([3, 1], 0, ["take"]),
    (3, 0, ["strided_slice", "squeeze"]),
    (-2, 0, ["strided_slice", "squeeze"]),
    (99, 0, ["strided_slice", "squeeze"]),
    (3, 1, ["take"]),
    ([k % COLUMNS * 5 % COLUMNS for k in range(40)], 1, ["take"]),
]


def model(indices, axis, batch=ROWS):
    x = lw.var("x", (batch, COLUMNS))
    return lw.Function([x], take(x, Constant(np.asarray(indices)), axis))


@pytest.mark.parametrize(("indices", "axis", "expected"), CASES, ids=str)
def test_runs_of_known_indices_are_slices(indices, axis, expected):
    function = slice_known_columns(model(indices, axis))
    assert [node.op.name for node in post_order(function.body) if isinstance(node, Call)] == expected
    clamped = np.clip(np.where(np.array(indices) < 0, np.array(indices) + X.shape[axis], indices), 0, X.shape[axis] - 1)
    (found,) = lw.Engine(lw.compile(function))([X])
    np.testing.assert_array_equal(found, X.take(clamped, axis))


def test_indices_without_sign_count_from_the_beginning():
    (found,) = lw.Engine(lw.compile(model(np.array([0, 2**64 - 1], np.uint64), 1)))([X])
    np.testing.assert_array_equal(found, X[:, [0, -1]])


def test_an_axis_of_open_extent_is_taken_from_at_run_time():
    library = lw.compile(model([0, 1, -1], 0, te.var("n")))
    for rows in (2, 5):
        np.testing.assert_array_equal(lw.Engine(library)([X[:rows]])[0], X[:rows][[0, 1, -1]])
