"""take, gather_elements and gather_nd against numpy; indices out of bounds are clamped."""

import numpy as np
import pytest

from loopwright import TypeInferenceError, te
from loopwright.graph.types import tensor_type
from loopwright.ops.families.gather import gather_elements, gather_nd, take


def random(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_take(ops, axis, kind):
    data = random(axis % 3, 4, 5, 6)
    for shape in ((), (3,), (2, 3)):
        indices = np.random.default_rng(1).integers(-4, 4, shape).astype(kind)
        for native in (False, True):
            found = ops.apply(take, data, indices, axis=axis, native=native)
            np.testing.assert_array_equal(found, np.take(data, indices, axis))


def test_indices_out_of_bounds_read_the_nearest_element(ops):
    data = np.arange(5, dtype=np.float32)
    indices = np.array([-99, -6, -5, -1, 4, 5, 2**40])
    for native in (False, True):
        np.testing.assert_array_equal(ops.apply(take, data, indices, native=native), [0, 0, 0, 4, 4, 4, 4])
    unsigned = np.array([0, 4, 200], np.uint8)
    np.testing.assert_array_equal(ops.apply(take, data, unsigned), [0, 4, 4])


def test_take_of_symbolic_extents(ops):
    n, m = te.var("n"), te.var("m")
    assert take(ops.var((n, 3)), ops.var((m,), "int64")).type is tensor_type((m, 3), "float32")


@pytest.mark.parametrize("axis", [0, 1])
def test_gather_elements(ops, axis):
    data = random(2, 3, 4)
    indices = np.random.default_rng(3).integers(-3, 3, (3, 4))
    np.testing.assert_array_equal(
        ops.apply(gather_elements, data, indices, axis=axis), np.take_along_axis(data, indices, axis)
    )
    short = indices[:2, :2]
    wanted = np.take_along_axis(data[:, :2] if axis == 0 else data[:2], short, axis)
    np.testing.assert_array_equal(ops.apply(gather_elements, data, short, axis=axis), wanted)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_gather_nd(ops, depth):
    data = random(depth, 3, 4, 5)
    indices = np.random.default_rng(4).integers(-3, 3, (2, 6, depth))
    wanted = data[tuple(np.moveaxis(indices, -1, 0))]
    for native in (False, True):
        np.testing.assert_array_equal(ops.apply(gather_nd, data, indices, native=native), wanted)


def test_gather_nd_of_batches(ops):
    data = random(5, 2, 4, 5)
    indices = np.random.default_rng(5).integers(0, 4, (2, 3, 1))
    wanted = np.stack([data[b][indices[b, :, 0]] for b in range(2)])
    np.testing.assert_array_equal(ops.apply(gather_nd, data, indices, batch_dims=1), wanted)


def test_misuse_is_refused(ops):
    data, indices = ops.var((3, 4)), ops.var((2, 2), "int64")
    with pytest.raises(TypeInferenceError, match="indices must be integers, found float32"):
        take(data, data)
    with pytest.raises(TypeInferenceError, match="axis 2 is not one"):
        take(data, indices, 2)
    with pytest.raises(TypeInferenceError, match=r"axis 0 of .* is empty"):
        take(ops.var((0, 4)), indices)
    with pytest.raises(TypeInferenceError, match="needs indices of that rank, found 1"):
        gather_elements(data, ops.var((2,), "int64"))
    with pytest.raises(TypeInferenceError, match="indices have extent 5 on axis 1, where data has 4"):
        gather_elements(data, ops.var((2, 5), "int64"))
    with pytest.raises(TypeInferenceError, match="between 1 and the 2 axes left to index"):
        gather_nd(data, ops.var((2, 3), "int64"))
    with pytest.raises(TypeInferenceError, match="extents 3 and 2 on the shared axis 0"):
        gather_nd(data, ops.var((2, 1), "int64"), 1)
