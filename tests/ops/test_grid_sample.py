"""grid_sample: open extents, channels as the last axis, coordinates far outside, misuse; values of all modes are tested
with all operators."""

import numpy as np
import pytest
import sampling
from pairs import each_value

import loopwright as lw
from loopwright import TypeInferenceError, te
from loopwright.ops import nn

HOST = lw.resolve_target("native")
RUNNABLE = [t for t in ("native", "x86-64-v3", "x86-64") if HOST.features >= lw.resolve_target(t).features]


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


@each_value(
    mode=sampling.MODES,
    padding=sampling.PADDINGS,
    align=[False, True],
    image=[(3, 16, 5, 6), (2, 21, 9), (1, 3, 3, 4, 5)],
    dtype=["float32", "float16"],
    known=[False, True],
    target=RUNNABLE,
)
def test_channels_may_be_the_last_axis(mode, padding, align, image, dtype, known, target):
    rank, rng = len(image) - 2, np.random.default_rng(0)
    data = rng.standard_normal(image).astype(dtype)
    places = rng.uniform(-1.3, 1.3, (image[0], *(7, 3, 2)[:rank], rank)).astype(np.float32)
    wanted = np.moveaxis(sampling.sampled(data.astype(float), places.astype(float), mode, padding, align), 1, -1)
    last = np.ascontiguousarray(np.moveaxis(data, 1, -1))
    shape = last.shape if known else (te.var("n"), *(te.var("hwd"[k]) for k in range(rank)), image[1])
    spread = places.shape if known else (te.var("n"), *(te.var("pqr"[k]) for k in range(rank)), rank)
    x, grid = lw.var("x", shape, dtype), lw.var("grid", spread)
    body = nn.grid_sample(x, grid, mode, padding, align, channels_last=True)
    library = lw.compile(lw.Function([x, grid], body), target, jobs=1)
    assert {c.implementation for f in library.functions for c in f.choices} == {"grid_sample.channels"}
    found = lw.Engine(library)([last, places])[0]
    assert found.dtype == dtype
    near = {"float32": 1e-4, "float16": 4e-3}[dtype]
    np.testing.assert_allclose(found.astype(float), wanted, rtol=near, atol=near)


@pytest.mark.parametrize(("channels", "last"), [(32, True), (1, False)])
def test_channels_are_read_together_where_there_are_many(channels, last):
    x, grid = lw.var("x", (1, channels, 40, 40)), lw.var("grid", (1, 40, 40, 2))
    library = lw.compile(lw.Function([x, grid], nn.grid_sample(x, grid)), "x86-64-v3", jobs=1)
    chosen = {c.implementation for f in library.functions for c in f.choices}
    assert ("grid_sample.channels" in chosen, "grid_sample.generic" in chosen) == (last, not last)


@pytest.mark.parametrize("mode", sampling.MODES)
def test_what_is_beyond_the_image_is_zero_whatever_is_at_its_border(mode):
    """Taps beyond the image read its border, which may be infinite."""
    data = np.full((1, 3, 3, 16), np.inf, np.float32)
    places = np.array([-3, 3, -2, 2], np.float32).reshape(1, 2, 1, 2)
    x, grid = lw.var("x", data.shape), lw.var("grid", places.shape)
    body = nn.grid_sample(x, grid, mode, channels_last=True)
    found = lw.Engine(lw.compile(lw.Function([x, grid], body), jobs=1))([data, places])[0]
    np.testing.assert_array_equal(found, np.zeros((1, 2, 1, 16)))


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
