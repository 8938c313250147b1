"""grid_sample: open extents, coordinates far outside, misuse; values of all modes are tested with all operators."""

import numpy as np
import pytest
import sampling

import loopwright as lw
from loopwright import TypeInferenceError, te
from loopwright.ops import nn


@pytest.mark.parametrize("padding", sampling.PADDINGS)
def test_images_and_grids_may_be_open(padding):
    x = lw.var("x", (te.var("n"), 2, te.var("h"), te.var("w")))
    grid = lw.var("grid", (te.var("n"), te.var("p"), te.var("q"), 2))
    engine = lw.Engine(lw.compile(lw.Function([x, grid], nn.grid_sample(x, grid, padding=padding))))
    rng = np.random.default_rng(0)
    for n, h, w, p, q in ((1, 4, 5, 3, 3), (2, 1, 7, 1, 9), (3, 6, 1, 2, 17)):
        image = rng.standard_normal((n, 2, h, w)).astype(np.float32)
        places = rng.uniform(-1.5, 1.5, (n, p, q, 2)).astype(np.float32)
        wanted = sampling.sampled(image.astype(float), places.astype(float), padding=padding)
        np.testing.assert_allclose(engine([image, places])[0], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", sampling.MODES)
def test_coordinates_that_are_no_places_read_no_other_memory(ops, mode):
    x, far = np.ones((1, 1, 3, 4), np.float32), np.array([np.inf, -np.inf, 1e30, -1e30], np.float32)
    grid = np.stack([far, far[::-1]], -1)[None, None]
    found = ops.apply(nn.grid_sample, x, grid, mode=mode, native=True)
    np.testing.assert_array_equal(found, np.zeros((1, 1, 1, 4)))


def test_misuse_is_refused(ops):
    x = ops.var((1, 2, 3, 4))
    with pytest.raises(TypeInferenceError, match="grid must have a coordinate for each axis of x"):
        nn.grid_sample(x, ops.var((1, 5, 5, 3)))
    with pytest.raises(TypeInferenceError, match="x has the batch 1, but grid 2"):
        nn.grid_sample(x, ops.var((2, 5, 5, 2)))
    with pytest.raises(TypeInferenceError, match="must be one of 'linear', 'nearest', 'cubic'"):
        nn.grid_sample(x, ops.var((1, 5, 5, 2)), mode="spline")
    with pytest.raises(TypeInferenceError, match="is empty: there is nothing to read"):
        nn.grid_sample(ops.var((1, 2, 0, 4)), ops.var((1, 5, 5, 2)))


@pytest.mark.parametrize("mode", sampling.MODES)
def test_what_is_at_no_number_is_beyond_the_image(ops, mode):
    """Masked positions of attention over points are 0 / 0 where a mask is empty: onnxruntime reads zeros there."""
    rng = np.random.default_rng(0)
    x, grid = rng.standard_normal((1, 2, 5, 6)).astype(np.float32), rng.uniform(-1, 1, (1, 3, 3, 2)).astype(np.float32)
    grid[0, 1, 1, 0] = grid[0, 2, 0, 1] = np.nan
    found = ops.apply(nn.grid_sample, x, grid, mode=mode, native=True)
    assert not found[..., 1, 1].any()
    assert not found[..., 2, 0].any()
    assert np.isfinite(found).all()
