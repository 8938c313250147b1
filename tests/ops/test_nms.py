"""Non-maximum suppression against numpy: order, ties, thresholds, limits, extents that are open or 0, and misuse."""

import detection
import numpy as np
import pytest

import loopwright as lw
from loopwright import TypeInferenceError, te
from loopwright.ops import nn

RNG = np.random.default_rng(7)


def run(boxes, scores, *options, **named):
    b, s = lw.var("b", boxes.shape, boxes.dtype.name), lw.var("s", scores.shape, scores.dtype.name)
    library = lw.compile(lw.Function([b, s], nn.non_max_suppression(b, s, *options, **named)))
    return lw.Engine(library)([boxes, scores])[0]


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("limit", "threshold", "least"),
    [(None, 0.5, None), (3, 0.5, 0.4), (100, 0.0, None), (0, 0.5, 0.4), (None, 1.0, 0.9), (1, 0.3, -1.0)],
)
def test_boxes_that_overlap_a_better_one_are_left_out(limit, threshold, least, kind, center):
    boxes, scores = detection.random_boxes(RNG, 2, 90, kind, center), RNG.random((2, 3, 90)).astype(kind)
    most = 90 if limit is None else limit
    wanted = detection.suppressed(boxes, scores, most, kind(threshold), least, center)
    found = run(boxes, scores, limit, threshold, least, center)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, wanted)


def test_of_equal_scores_the_first_box_is_the_better_one():
    boxes = detection.random_boxes(RNG, 1, 200)
    scores = RNG.integers(0, 4, (1, 2, 200)).astype(np.float32)
    found = run(boxes, scores, None, 0.4, 0.5)
    np.testing.assert_array_equal(found, detection.suppressed(boxes, scores, 200, np.float32(0.4), 0.5))


def test_corners_may_be_any_two_that_are_opposite():
    boxes = detection.random_boxes(RNG, 1, 60)
    scores = RNG.random((1, 1, 60)).astype(np.float32)
    turned = np.ascontiguousarray(boxes[..., [2, 1, 0, 3]])
    np.testing.assert_array_equal(run(turned, scores, None, 0.3), run(boxes, scores, None, 0.3))


def test_an_overlap_of_just_the_threshold_stays():
    boxes = np.array([[[0, 0, 2, 2], [0, 0, 1, 2], [0, 0, 2, 1.5]]], np.float32)
    scores = np.array([[[3, 2, 1]]], np.float32)
    assert run(boxes, scores, None, 0.5)[:, 2].tolist() == [0, 1]
    assert run(boxes, scores, None, 0.75)[:, 2].tolist() == [0, 1, 2]


def test_scores_that_are_not_finite():
    boxes = np.arange(20, dtype=np.float32)[None, :, None] * 2 + np.array([0, 0, 1, 1], np.float32)
    scores = np.linspace(0, 1, 20, dtype=np.float32)[None, None].copy()
    scores[0, 0, [3, 8, 12]] = np.nan, np.inf, -np.inf
    order = [8, *(k for k in range(19, 0, -1) if k not in (3, 8, 12))]
    assert run(boxes, scores, None, 0.5, 0.0)[:, 2].tolist() == order
    assert run(boxes, scores, None, 0.5)[:, 2].tolist() == [3, *order, 0, 12]


def test_boxes_without_an_area_overlap_none():
    boxes = np.repeat(np.array([[1, 1, 1, 4]], np.float32), 5, 0)[None]
    assert len(run(boxes, np.ones((1, 1, 5), np.float32), None, 0.1)) == 5


@pytest.mark.parametrize(("batch", "classes", "count"), [(0, 2, 5), (1, 0, 5), (2, 3, 0)])
def test_nothing_stays_of_nothing(batch, classes, count):
    found = run(np.zeros((batch, count, 4), np.float32), np.zeros((batch, classes, count), np.float32), 3, 0.5)
    assert found.shape == (0, 3)


@pytest.mark.parametrize("limit", [None, 4, 70])
def test_all_extents_may_be_open_and_thresholds_numbers_of_the_run(limit):
    n, c, k = te.var("n"), te.var("c"), te.var("k")
    boxes, scores, least = lw.var("b", (n, k, 4)), lw.var("s", (n, c, k)), lw.var("t", ())
    made = nn.non_max_suppression(boxes, scores, limit, 0.4, least)
    engine = lw.Engine(lw.compile(lw.Function([boxes, scores, least], made)))
    for shape in ((1, 1, 5), (2, 3, 60), (3, 2, 0), (1, 4, 33)):
        arrays = detection.random_boxes(RNG, shape[0], shape[2]), RNG.random(shape, np.float32)
        for threshold in (0.2, 0.9):
            (found,) = engine([*arrays, np.array(threshold, np.float32)])
            most = shape[2] if limit is None else limit
            wanted = detection.suppressed(*arrays, most, np.float32(0.4), np.float32(threshold))
            np.testing.assert_array_equal(found, wanted)


def test_misuse_is_refused(ops):
    boxes, scores = ops.var((2, 5, 4)), ops.var((2, 3, 5))
    with pytest.raises(TypeInferenceError, match=r"boxes must be \[batch, boxes, 4\]"):
        nn.non_max_suppression(ops.var((2, 5, 3)), scores)
    with pytest.raises(TypeInferenceError, match=r"scores must be \[batch, classes, boxes\]"):
        nn.non_max_suppression(boxes, ops.var((2, 5)))
    with pytest.raises(TypeInferenceError, match="5 boxes have 6 scores each"):
        nn.non_max_suppression(boxes, ops.var((2, 3, 6)))
    with pytest.raises(TypeInferenceError, match="boxes have the batch 2, but scores 3"):
        nn.non_max_suppression(boxes, ops.var((3, 3, 5)))
    with pytest.raises(TypeInferenceError, match="boxes must be of float32 or float64, found float16"):
        nn.non_max_suppression(ops.var((2, 5, 4), "float16"), ops.var((2, 3, 5), "float16"))
    with pytest.raises(TypeInferenceError, match="limit"):
        nn.non_max_suppression(boxes, scores, 1.5)
