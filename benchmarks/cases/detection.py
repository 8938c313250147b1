"""What detectors do with boxes: the best of those that overlap, and what an image has inside of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto

from .case import Bar, Case, dims, shape_of

BAR = Bar(1.0)
SUPPRESSED = (
    (8400, 80, 100, 0.5, 0.9),
    (8400, 1, 300, 0.7, 0.0),
    (2000, 1, 2000, 0.9, 0.0),
    (25200, 80, 100, 0.5, 0.999),
)
"""Boxes, classes, most boxes of a class, overlap and score; scores are uniform from 0 to 1."""
ALIGNED = ((256, 50, 100, 7, 2), (256, 50, 100, 7, 0), (256, 200, 100, 14, 2))
"""Channels, rows and columns, boxes, bins along an axis, and samples along an axis of a bin."""
STRIDE = 16


@dataclass(frozen=True)
class BoxCase(Case):
    """Boxes (x1, y1, x2, y2) of which many overlap, in an image of ``size``."""

    size: float = 640.0

    def feeds(self, model: ModelProto) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(len(self.full_name))
        made = super().feeds(model)
        for info in model.graph.input:
            shape = shape_of(info)
            if info.name == "boxes":
                middle, half = (rng.uniform(low, high, (*shape[:-1], 2)) for low, high in ((0, self.size), (8, 100)))
                made["boxes"] = np.concatenate([middle - half, middle + half], -1).astype(np.float32)
            elif info.name == "scores":
                made["scores"] = rng.random(shape, np.float32)
        return made


def cases() -> Iterator[Case]:
    for boxes, classes, most, overlap, least in SUPPRESSED:
        yield BoxCase(
            "nms",
            f"{boxes} boxes, {classes} {'class' if classes == 1 else 'classes'}, overlap {overlap}, score {least}",
            f"{dims(1, boxes, 4)} boxes, {dims(1, classes, boxes)} scores",
            "y = NonMaxSuppression (boxes, scores, most, overlap, least)",
            constants={"most": np.int64(most), "overlap": np.float32(overlap), "least": np.float32(least)},
            bar=BAR,
        )
    for channels, size, boxes, bins, samples in ALIGNED:
        options = f"output_height={bins}, output_width={bins}, sampling_ratio={samples}, spatial_scale={1 / STRIDE}"
        yield BoxCase(
            "roi align",
            f"{channels} {size}², {boxes} boxes, {bins}² bins, {samples or 'all'} samples",
            f"{dims(1, channels, size, size)} x, {dims(boxes, 4)} boxes",
            f"y = RoiAlign <{options}> (x, boxes, batch)",
            constants={"batch": np.zeros(boxes, np.int64)},
            bar=BAR,
            size=float(size * STRIDE),
        )
