"""Random calls of what detectors do with boxes."""

import detection
import numpy as np
from draw import Case, Input

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


DRAWS = {
    "chosen_boxes": draw_suppression,
    "box_indices": draw_suppression,
}
