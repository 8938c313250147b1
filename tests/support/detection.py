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


def samples_of(start, size, count, number, extent):
    """The elements around each sample of a bin along an axis, with their weights; None for a sample far away."""
    for sample in range(count):
        at = start + number * size + (sample + 0.5) * size / count
        if not -1 <= at <= extent:
            yield None
            continue
        at = min(max(at, 0), extent - 1)
        low = int(at)
        yield (low, 1 - (at - low)), (min(low + 1, extent - 1), at - low)


def roi_aligned(x, boxes, batch, bins, scale=1.0, samples=0, mode="avg", half_pixel=True):
    """The bins of boxes (x1, y1, x2, y2), each sample by itself."""
    result = np.zeros((len(boxes), x.shape[1], *bins))
    for number, (box, sample) in enumerate(zip(boxes, batch, strict=True)):
        if not 0 <= sample < len(x):
            continue
        ends = box.astype(np.float64) * scale - (0.5 if half_pixel else 0)
        starts, lengths = ends[[1, 0]], ends[[3, 2]] - ends[[1, 0]]
        sizes = (lengths if half_pixel else np.maximum(lengths, 1)) / bins
        counts = [samples or max(int(np.ceil(size)), 0) for size in sizes]
        for place in np.ndindex(*bins):
            rows, columns = (
                list(samples_of(starts[k], sizes[k], counts[k], place[k], x.shape[2 + k])) for k in range(2)
            )
            found = [
                np.zeros((4, x.shape[1]))
                if row is None or column is None
                else np.stack([x[sample, :, r, c] * v * w for r, v in row for c, w in column])
                for row in rows
                for column in columns
            ]
            if found:
                result[(number, slice(None), *place)] = (
                    np.mean([four.sum(0) for four in found], 0) if mode == "avg" else np.max(found, (0, 1))
                )
    return result


def roi_pooled(x, boxes, bins, scale=1.0):
    """The greatest elements in the bins of boxes (sample, x1, y1, x2, y2), whose ends are rounded."""
    result = np.zeros((len(boxes), x.shape[1], *bins))
    extents = x.shape[2:]
    for number, (sample, *box) in enumerate(boxes):
        ends = np.array(box) * scale
        ends = np.where(ends < 0, np.ceil(ends - 0.5), np.floor(ends + 0.5))[[1, 0, 3, 2]]
        sizes = np.maximum(ends[2:] - ends[:2] + 1, 1) / bins
        for place in np.ndindex(*bins):
            low, high = np.floor(np.array(place) * sizes), np.ceil((np.array(place) + 1) * sizes)
            begin, end = (np.clip(ends[:2] + bound, 0, extents).astype(int) for bound in (low, high))
            if (begin < end).all() and 0 <= sample < len(x):
                part = x[int(sample), :, begin[0] : end[0], begin[1] : end[1]]
                result[(number, slice(None), *place)] = part.max((1, 2))
    return result


def random_rois(rng, count, size, kind=np.float32):
    """Boxes (x1, y1, x2, y2), some of which begin outside of the image or are turned over."""
    begin = rng.uniform(-3, size, (count, 2))
    return np.concatenate([begin, begin + rng.uniform(-1, size, (count, 2))], 1).astype(kind)


def unique_rows(x, ascending=True):
    """Where each row that differs is first, which each row is, how often each occurs; filled up with 0; how many."""
    rows = [tuple((np.isnan(v), 0 if np.isnan(v) else v) for v in row) for row in x.tolist()]
    kept = list(dict.fromkeys(rows))
    if ascending:
        kept.sort()
    first, times = np.zeros((2, len(rows)), np.int64)
    first[: len(kept)] = [rows.index(row) for row in kept]
    times[: len(kept)] = [rows.count(row) for row in kept]
    which = np.array([kept.index(row) for row in rows], np.int64)
    return first, which, times, np.array([len(kept)])
