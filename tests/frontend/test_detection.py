"""ONNX's operators of detectors, in all versions, against onnx's reference evaluator or onnxruntime."""

import detection
import numpy as np
from onnx_cases import case, check, each_version, floats, ints

BOXES = detection.random_boxes(np.random.default_rng(3), 2, 30)
CENTERED = detection.random_boxes(np.random.default_rng(4), 2, 30, center=True)
SCORES = floats(2, 3, 30, low=0, high=1)
HALF = np.array([0.5], np.float32)


def suppression(*inputs, **more):
    return case("NonMaxSuppression", (10, 11), *inputs, **more)


def without_overlap(boxes, scores, limit, _, least):
    return detection.suppressed(boxes, scores, limit[0], 0, least[0])


CASES = [
    suppression(BOXES, SCORES, ints(4), HALF, const=(2, 3), label="known"),
    suppression(BOXES, SCORES, ints(4), HALF, HALF, label="run_time"),
    suppression(CENTERED, SCORES, ints(40), HALF, const=(2,), center_point_box=1, label="centered"),
    suppression(BOXES, SCORES, ints(5), None, HALF, label="no_overlap", expected=without_overlap),
    suppression(BOXES, SCORES, label="no_limit", expected=lambda b, s: np.zeros((0, 3), np.int64)),
]


@each_version(CASES)
def test_operators_of_detectors(case, version):
    check(case, version)
