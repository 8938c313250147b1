"""Random calls of what detectors do with boxes."""

import detection
import numpy as np
from draw import Case, Input

from loopwright.graph.node import Tuple
from loopwright.ops import nn


def draw_suppression(d):
    """Boxes any two of whose opposite corners are given; scores of which many are equal."""
    batch, classes, count = d.int(1, 3), d.int(1, 4), d.int(1, (20, 100, 300)[d.size])
    limit, threshold = d.one(None, 0, 1, d.int(1, count)), d.one(0.0, 0.3, 0.5, 0.9)
    least, center = d.one(None, 0.0, 1.5), d.chance()
    kind = np.float32
    inputs = (
        Input((batch, count, 4), "float32", 0, 9, outliers=None),
        Input((batch, classes, count), d.one("float32", "int8"), outliers="large"),
    )

    def oracle(boxes, scores):
        most = count if limit is None else limit
        return detection.suppressed(boxes.astype(kind), scores.astype(kind), most, kind(threshold), least, center)

    return Case(
        lambda boxes, scores: nn.non_max_suppression(
            boxes, nn.cast(scores, "float32"), limit, threshold, least, center
        ),
        oracle,
        inputs,
    )


def draw_roi_align(d):
    x, count, bins = (d.int(1, 3), d.one(1, 5, 16, 20), d.int(1, 9), d.int(1, 9)), d.int(0, 8), d.ints(1, 4, 2)
    options = bins, d.one(1.0, 0.25, 1.7), d.int(0, 3), d.one("avg", "max"), d.chance()
    inputs = (
        Input(x, "float64", outliers=None),
        Input((count, 4), "float64", -4, 12, outliers=None),
        Input((count,), d.one("int64", "int32"), -1, x[0]),
    )
    return Case(
        lambda *a: nn.roi_align(*a, *options),
        lambda *a: detection.roi_aligned(*a, *options),
        inputs,
        lambda *a: np.full((count, x[1], *bins), 30.0),
    )


def draw_max_roi_pool(d):
    """The ends of boxes are whole numbers, which all scales bring to where no rounding is in doubt."""
    kind, count, bins = d.kind(), d.int(0, 8), d.ints(1, 4, 2)
    x, scale = (d.int(1, 3), d.one(1, 5, 16, 20), d.int(1, 9), d.int(1, 9)), d.one(1.0, 0.5, 2.0)
    inputs = Input(x, kind, outliers="large"), Input((count, 5), "int8", -1, 9)
    return Case(
        lambda x, boxes: nn.max_roi_pool(x, nn.cast(boxes, kind), bins, scale),
        lambda x, boxes: detection.roi_pooled(x, boxes.astype(np.float64), bins, scale),
        inputs,
    )


def draw_unique(d):
    shape, ascending = d.shape(1, 3), d.chance()
    axis = d.one(None, *range(len(shape)))
    kind = d.one("int32", "int8", "float32", "bool")

    def oracle(x):
        items = x.reshape(-1) if axis is None else np.moveaxis(x, axis, 0)
        first, which, times, (count,) = detection.unique_rows(items.reshape(len(items), -1), ascending)
        return np.take(items if axis is None else x, first[:count], axis or 0), first[:count], which, times[:count]

    return Case(lambda x: Tuple(nn.unique(x, axis, ascending)), oracle, (Input(shape, kind, -1, 1, outliers=None),))


DRAWS = {
    "nn.roi_align": draw_roi_align,
    "nn.max_roi_pool": draw_max_roi_pool,
    "unique_rows": draw_unique,
    "chosen_boxes": draw_suppression,
    "box_indices": draw_suppression,
}
