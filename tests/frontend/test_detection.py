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
    *(
        case(
            "RoiAlign",
            (16, 22),
            floats(2, 5, 9, 7),
            detection.random_rois(np.random.default_rng(5), 6, 9),
            ints(0, 1, 1, 0, 1, 0),
            label=f"{mode}_{samples}_{coordinates}",
            mode=mode,
            sampling_ratio=samples,
            coordinate_transformation_mode=coordinates,
            spatial_scale=0.75,
            output_height=3,
            output_width=2,
            tolerance=1e-4,
        )
        for mode, samples, coordinates in (("avg", 0, "half_pixel"), ("max", 2, "output_half_pixel"))
    ),
    case(
        "RoiAlign",
        (10,),
        floats(2, 5, 9, 7),
        detection.random_rois(np.random.default_rng(6), 3, 9),
        ints(0, 1, 1),
        output_height=2,
        output_width=2,
        expected=lambda *a: detection.roi_aligned(*a, (2, 2), half_pixel=False).astype(np.float32),
        tolerance=1e-4,
    ),
    case(
        "MaxRoiPool",
        (1, 22),
        floats(2, 5, 9, 7),
        np.array([[0, 1, 1, 6, 5], [1, 0, 2, 3, 11], [1, 4, 4, 4, 4]], np.float32),
        pooled_shape=[3, 2],
        spatial_scale=0.5,
        expected=lambda x, boxes: detection.roi_pooled(x, boxes, (3, 2), 0.5).astype(np.float32),
    ),
    suppression(BOXES, SCORES, label="no_limit", expected=lambda b, s: np.zeros((0, 3), np.int64)),
]


@each_version(CASES)
def test_operators_of_detectors(case, version):
    check(case, version)
