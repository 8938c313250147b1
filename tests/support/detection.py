"""What detectors do with boxes, element by element in numpy: the oracles of their operators."""

import numpy as np


def corners(box, center):
    """The lower and the upper ends along both axes."""
    if center:
        middle, half = box[:2], box[2:] * box.dtype.type(0.5)
        return middle - half, middle + half
    return np.minimum(box[:2], box[2:]), np.maximum(box[:2], box[2:])


def overlap(a, b, center):
    """Intersection over union, in the dtype of the boxes; 0 where they have none."""
    (a_low, a_high), (b_low, b_high) = corners(a, center), corners(b, center)
    sides = np.minimum(a_high, b_high) - np.maximum(a_low, b_low)
    common = sides[0] * sides[1]
    areas = (a_high - a_low).prod(), (b_high - b_low).prod()
    union = areas[0] + areas[1] - common
    if min(*sides, common, *areas, union) <= 0:
        return 0.0
    return common / union


def chosen_boxes(boxes, scores, limit, threshold, least_score, center=False):
    """The boxes of one class that stay, best first; ``least_score`` None: of any score."""
    kept = []
    for k in np.argsort(-scores, kind="stable"):
        if least_score is not None and not scores[k] > least_score:
            continue
        if len(kept) >= limit:
            break
        if all(overlap(boxes[k], boxes[other], center) <= threshold for other in kept):
            kept.append(int(k))
    return kept


def suppressed(boxes, scores, limit, threshold, least_score, center=False):
    """A row of sample, class and box for each that stays."""
    rows = [
        (sample, number, k)
        for sample in range(scores.shape[0])
        for number in range(scores.shape[1])
        for k in chosen_boxes(boxes[sample], scores[sample, number], limit, threshold, least_score, center)
    ]
    return np.array(rows, np.int64).reshape(-1, 3)


def random_boxes(rng, batch, count, kind=np.float32, center=False):
    """Boxes many of which overlap: (y1, x1, y2, x2), or centre and size."""
    middle, size = rng.uniform(0, 10, (batch, count, 2)), rng.uniform(0.5, 5, (batch, count, 2))
    ends = (middle, size) if center else (middle - size / 2, middle + size / 2)
    return np.concatenate(ends, 2).astype(kind)
