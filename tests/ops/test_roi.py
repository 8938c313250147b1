"""roi_align and max_roi_pool against numpy: modes, units, boxes outside of the image, open extents, and misuse."""

import itertools

import detection
import numpy as np
import pytest

import loopwright as lw
from loopwright import TypeInferenceError, te
from loopwright.ops import nn

RNG = np.random.default_rng(0)
MODES = list(itertools.product(("avg", "max"), (0, 1, 3), (False, True)))


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize(("mode", "samples", "half_pixel"), MODES)
def test_samples_are_interpolated(ops, mode, samples, half_pixel, native):
    x, boxes = RNG.standard_normal((2, 3, 8, 6)), detection.random_rois(RNG, 4, 9, np.float64)
    options = (3, 2), 0.7, samples, mode, half_pixel
    found = ops.apply(lambda *a: nn.roi_align(*a, *options), x, boxes, np.array([0, 1, 1, 0]), native=native)
    np.testing.assert_allclose(found, detection.roi_aligned(x, boxes, [0, 1, 1, 0], *options), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
@pytest.mark.parametrize("channels", [1, 16, 37])
def test_channels_are_lanes(ops, channels, kind):
    x, boxes = RNG.standard_normal((1, channels, 9, 9)).astype(kind), detection.random_rois(RNG, 3, 8, kind)
    batch = np.zeros(3, np.int32)
    found = ops.apply(lambda *a: nn.roi_align(*a, 4), x, boxes, batch, native=True)
    assert found.dtype == x.dtype
    error = 3e-2 if kind == "float16" else 1e-4
    np.testing.assert_allclose(found, detection.roi_aligned(x, boxes, batch, (4, 4)), rtol=error, atol=error)


@pytest.mark.parametrize("mode", ["avg", "max"])
def test_boxes_that_no_image_has_are_0(ops, mode):
    x = np.ones((1, 2, 4, 4), np.float32)
    far = [[90, 90, 95, 95], [-9, 1, -5, 3], [3, 3, 1, 1], [np.nan, 0, 2, 2], [0, 0, np.inf, 2], [0, 0, 2, 2]]
    boxes, batch = np.array(far, np.float32), np.array([0, 0, 0, 0, 0, 7])
    found = ops.apply(lambda *a: nn.roi_align(*a, 2, mode=mode), x, boxes, batch, native=True)
    assert not found[[0, 1, 2, 3, 5]].any()


def test_bins_of_rounded_boxes_share_elements(ops):
    x = RNG.standard_normal((2, 20, 7, 9)).astype(np.float32)
    boxes = np.array([[0, 0, 0, 8, 6], [1, 3, 2, 3, 2], [1, 5, 5, 40, 40], [0, -4, -4, 2, 2], [3, 0, 0, 1, 1]], "f4")
    for bins, scale in (((3, 4), 1.0), ((2, 2), 0.5), ((9, 9), 1.0)):
        found = ops.apply(lambda *a, b=bins, s=scale: nn.max_roi_pool(*a, b, s), x, boxes, native=True)
        np.testing.assert_array_equal(found, detection.roi_pooled(x, boxes, bins, scale).astype(np.float32))


def test_extents_may_be_open_or_0():
    n, k, h, w, c = map(te.var, "nkhwc")
    x, boxes, batch = lw.var("x", (n, c, h, w)), lw.var("boxes", (k, 4)), lw.var("batch", (k,), "int64")
    engine = lw.Engine(lw.compile(lw.Function([x, boxes, batch], nn.roi_align(x, boxes, batch, 3))))
    for shape, count in (
        ((1, 5, 4, 7), 2),
        ((2, 33, 8, 3), 9),
        ((1, 4, 5, 5), 0),
        ((3, 0, 5, 5), 2),
        ((2, 3, 0, 4), 2),
    ):
        image = RNG.standard_normal(shape).astype(np.float32)
        places, numbers = detection.random_rois(RNG, count, 6), RNG.integers(0, shape[0], count)
        (found,) = engine([image, places, numbers])
        wanted = detection.roi_aligned(image, places, numbers, (3, 3)) if image.size else 0
        np.testing.assert_allclose(found, np.broadcast_to(wanted, (count, shape[1], 3, 3)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(1, 2, 0, 4), (1, 2, 4, 0), (0, 2, 4, 4)])
@pytest.mark.parametrize("mode", ["avg", "max"])
def test_nothing_is_read_of_an_empty_image(ops, shape, mode):
    """The interpreter would find it."""
    x, boxes = np.zeros(shape, np.float32), np.array([[0, 0, 1, 1], [-1, -1, 2, 2]], np.float32)
    batch = np.zeros(2, np.int64)
    assert not ops.apply(lambda *a: nn.roi_align(*a, 2, mode=mode), x, boxes, batch, native=False).any()
    numbered = np.concatenate([batch[:, None].astype(np.float32), boxes], 1)
    assert not ops.apply(lambda *a: nn.max_roi_pool(*a, 2), x, numbered, native=False).any()


def test_misuse_is_refused(ops):
    x, boxes, batch = ops.var((2, 3, 8, 8)), ops.var((5, 4)), ops.var((5,), "int64")
    with pytest.raises(TypeInferenceError, match="x must be"):
        nn.roi_align(ops.var((2, 8, 8)), boxes, batch)
    with pytest.raises(TypeInferenceError, match="a matrix with 4 columns"):
        nn.roi_align(x, ops.var((5, 5)), batch)
    with pytest.raises(TypeInferenceError, match="5 boxes have 6 batch_indices"):
        nn.roi_align(x, boxes, ops.var((6,), "int64"))
    with pytest.raises(TypeInferenceError, match="batch_indices must be integers"):
        nn.roi_align(x, boxes, ops.var((5,)))
    with pytest.raises(TypeInferenceError, match="mode"):
        nn.roi_align(x, boxes, batch, mode="sum")
    with pytest.raises(TypeInferenceError, match="two numbers above 0"):
        nn.max_roi_pool(x, ops.var((5, 5)), 0)
    with pytest.raises(TypeInferenceError, match="a matrix with 5 columns"):
        nn.max_roi_pool(x, boxes, 2)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("channels", [5, 16, 37])
@pytest.mark.parametrize("known", [False, True])
def test_channels_may_be_the_last_axis(mode, channels, known):
    rng = np.random.default_rng(0)
    image = rng.standard_normal((2, 9, 11, channels)).astype(np.float32)
    places = np.sort(rng.uniform(-2, 14, (6, 2, 2)), axis=1).reshape(6, 4).astype(np.float32)
    numbers = np.array([0, 1, 1, 0, 1, 0])
    open_shape = (te.var("n"), te.var("h"), te.var("w"), channels)
    x = lw.var("x", image.shape if known else open_shape)
    boxes, batch = (
        lw.var(n, s, d) for n, s, d in (("boxes", (te.var("b"), 4), "float32"), ("batch", (te.var("b"),), "int64"))
    )
    body = nn.roi_align(x, boxes, batch, (3, 2), mode=mode, channels_last=True)
    found = lw.Engine(lw.compile(lw.Function([x, boxes, batch], body), jobs=1))([image, places, numbers])[0]
    wanted = detection.roi_aligned(np.moveaxis(image, -1, 1), places, numbers, (3, 2), mode=mode)
    np.testing.assert_allclose(found, np.moveaxis(wanted, 1, -1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("boxes", "last"), [(100, True), (1, False)])
def test_channels_are_read_side_by_side_for_many_boxes(boxes, last):
    x, places, batch = lw.var("x", (1, 64, 60, 60)), lw.var("boxes", (boxes, 4)), lw.var("batch", (boxes,), "int64")
    body = nn.roi_align(x, places, batch, 7, samples=2)
    library = lw.compile(lw.Function([x, places, batch], body), "x86-64-v3", jobs=1)
    assert any("transpose" in f.name for f in library.functions) == last
