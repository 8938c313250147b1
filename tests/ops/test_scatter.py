"""scatter_elements, scatter_nd and tensor_scatter: updates that meet, indices out of bounds, dtypes, open extents."""

import numpy as np
import pytest
import scattering

import loopwright as lw
from loopwright import TypeInferenceError, te
from loopwright.ops import nn

RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.uniform(-2, 2, shape).astype(np.float32)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("reduction", scattering.REDUCTIONS)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_updates_that_meet_are_taken_in_order(ops, axis, reduction, native):
    data, updates = floats(4, 3, 5), floats(2, 3, 4)
    indices = RNG.integers(-3, 3, updates.shape)
    found = ops.apply(nn.scatter_elements, data, indices, updates, axis=axis, reduction=reduction, native=native)
    np.testing.assert_allclose(found, scattering.elements(data, indices, updates, axis, reduction), rtol=1e-6)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("depth", [0, 1, 2, 3])
@pytest.mark.parametrize("reduction", ["none", "add"])
def test_parts_of_the_axes_that_are_left_are_updated(ops, depth, reduction, native):
    data, indices = floats(3, 4, 37), RNG.integers(-3, 3, (2, 5, depth))
    updates = floats(2, 5, *data.shape[depth:])
    found = ops.apply(nn.scatter_nd, data, indices, updates, reduction=reduction, native=native)
    np.testing.assert_allclose(found, scattering.nd(data, indices, updates, reduction), rtol=1e-5, atol=1e-6)


def test_an_index_out_of_bounds_writes_nothing(ops):
    data, indices = np.zeros(4, np.float32), np.array([-5, -4, 3, 4, 1 << 40, -(1 << 40)])
    updates = np.arange(1, 7, dtype=np.float32)
    for native in (False, True):
        by_element = ops.apply(nn.scatter_elements, data, indices, updates, native=native)
        np.testing.assert_array_equal(by_element, [2, 0, 0, 3])
        by_vector = ops.apply(nn.scatter_nd, data, indices[:, None], updates, native=native)
        np.testing.assert_array_equal(by_vector, [2, 0, 0, 3])


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int64, np.float16, np.float64, bool])
@pytest.mark.parametrize("reduction", ["none", "max", "add", "mul"])
def test_all_numbers_and_bools_are_scattered(ops, kind, reduction):
    data, updates = (RNG.integers(0, 2, shape).astype(kind) for shape in ((5, 3), (7, 3)))
    indices = RNG.integers(0, 5, (7, 3)).astype(np.int32)
    found = ops.apply(nn.scatter_elements, data, indices, updates, reduction=reduction, native=True)
    np.testing.assert_array_equal(found, scattering.elements(data, indices, updates, 0, reduction))


def test_nan_is_the_maximum_and_the_minimum(ops):
    data, indices, updates = np.ones(2, np.float32), np.array([0, 1]), np.array([np.nan, 2], np.float32)
    for reduction, second in (("max", 2), ("min", 1)):
        found = ops.apply(nn.scatter_elements, data, indices, updates, reduction=reduction, native=True)
        np.testing.assert_array_equal(found, [np.nan, second])


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_without_indices_the_data_stay(ops, shape):
    data = floats(4, 3)
    indices, updates = np.zeros(shape, np.int64), np.zeros(shape, np.float32)
    found = ops.apply(nn.scatter_elements, data, indices, updates, native=True)
    np.testing.assert_array_equal(found, data)


def test_extents_may_be_open():
    n, m = te.var("n"), te.var("m")
    data, indices, updates = lw.var("data", (n, 40)), lw.var("i", (m, 1), "int64"), lw.var("u", (m, 40))
    engine = lw.Engine(lw.compile(lw.Function([data, indices, updates], nn.scatter_nd(data, indices, updates, "add"))))
    for rows, count in ((1, 1), (5, 9), (3000, 70), (4, 0)):
        fed = floats(rows, 40), RNG.integers(0, rows, (count, 1)), floats(count, 40)
        np.testing.assert_allclose(engine(list(fed))[0], scattering.nd(*fed, "add"), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("circular", [False, True])
def test_tensor_scatter_of_each_sample(ops, circular):
    data, updates = floats(3, 2, 6, 4), floats(3, 2, 3, 4)
    starts = np.array([0, 2, 3 if not circular else 5])
    found = ops.apply(nn.tensor_scatter, data, updates, starts, circular=circular, native=True)
    np.testing.assert_array_equal(found, scattering.tensor(data, updates, starts, 2, circular))


def test_misuse_is_refused(ops):
    data, indices, updates = ops.var((3, 4)), ops.var((2, 4), "int64"), ops.var((2, 4))
    with pytest.raises(TypeInferenceError, match="indices must be integers, found float32"):
        nn.scatter_elements(data, updates, updates)
    with pytest.raises(TypeInferenceError, match="data is float32, but updates is float64"):
        nn.scatter_elements(data, indices, ops.var((2, 4), "float64"))
    with pytest.raises(TypeInferenceError, match="updates have extent 3 on axis 0, where 2 are written"):
        nn.scatter_elements(data, indices, ops.var((3, 4)))
    with pytest.raises(TypeInferenceError, match="indices have extent 5 on axis 1, where data has 4"):
        nn.scatter_elements(data, ops.var((2, 5), "int64"), ops.var((2, 5)))
    with pytest.raises(TypeInferenceError, match="must be one of 'none', 'add'"):
        nn.scatter_elements(data, indices, updates, reduction="sub")
    with pytest.raises(TypeInferenceError, match="the last axis of indices must be known, and at most 2"):
        nn.scatter_nd(data, ops.var((2, 3), "int64"), updates)
    with pytest.raises(TypeInferenceError, match="must not be that of the samples, 0"):
        nn.tensor_scatter(data, updates, ops.var((3,), "int64"), axis=0)
    with pytest.raises(TypeInferenceError, match=r"col2im.*windows .* do not fit the padded image"):
        nn.col2im(ops.var((1, 4, 1)), (1, 1), (2, 2))
    with pytest.raises(TypeInferenceError, match="a multiple of the 4 elements of a window"):
        nn.col2im(ops.var((1, 6, 1)), (2, 2), (2, 2))
