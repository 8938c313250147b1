"""What detectors with masks end in, as Mask R-CNN: the boxes that are kept, a mask for each from its part of the
features, and a loop that enlarges each mask to the size of its box and pastes it into an image. Against onnx's
reference, which leaves out the axis of iterations."""

import numpy as np
from onnx import checker, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

import loopwright as lw

MASKS = """<ir_version: 10, opset_import: ["" : 21]>
g (float[1, 3, h, w] features, float[n, 4] boxes, float[n] scores, int64[2] size)
        => (float[k, 4] kept, float[k, 1, height, width] masks) {
    zero = Constant <value = int64[1] {0}> ()
    one = Constant <value = int64[1] {1}> ()
    two = Constant <value = int64[1] {2}> ()
    both = Constant <value = int64[2] {0, 1}> ()
    most = Constant <value = int64[1] {100}> ()
    overlap = Constant <value = float[1] {0.5}> ()
    least = Constant <value = float[1] {0.2}> ()
    of_batch = Unsqueeze (boxes, zero)
    of_class = Unsqueeze (scores, both)
    chosen = NonMaxSuppression (of_batch, of_class, most, overlap, least)
    column = Gather <axis = 1> (chosen, two)
    ids = Squeeze (column, one)
    kept = Gather <axis = 0> (boxes, ids)
    count = Shape (ids)
    images = ConstantOfShape <value = int64[1] {0}> (count)
    part = RoiAlign <output_height = 5, output_width = 5, sampling_ratio = 2, mode = "avg",
        coordinate_transformation_mode = "half_pixel"> (features, kept, images)
    logits = Conv <pads = [1, 1, 1, 1]> (part, weight)
    small = Sigmoid (logits)
    whole = Cast <to = 7> (kept)
    trips = Squeeze (count)
    yes = Constant <value = bool {1}> ()
    height, width = Split <axis = 0, num_outputs = 2> (size)
    masks = Loop (trips, yes) <body = paste (int64 i, bool go) => (bool on, float[1, a, b] row) {
        on = Identity (go)
        box = Gather <axis = 0> (whole, i)
        left, top, right, bottom = Split <axis = 0, num_outputs = 4> (box)
        mask = Gather <axis = 0> (small, i)
        image = Unsqueeze (mask, zero)
        across = Sub (right, left)
        down = Sub (bottom, top)
        columns = Add (across, one)
        rows = Add (down, one)
        sizes = Concat <axis = 0> (one, one, rows, columns)
        enlarged = Resize <mode = "linear", coordinate_transformation_mode = "half_pixel"> (image, , , sizes)
        flat_axes = Concat <axis = 0> (zero, one)
        flat = Squeeze (enlarged, flat_axes)
        x0 = Max (left, zero)
        y0 = Max (top, zero)
        right_end = Add (right, one)
        bottom_end = Add (bottom, one)
        x1 = Min (right_end, width)
        y1 = Min (bottom_end, height)
        begin_y = Sub (y0, top)
        begin_x = Sub (x0, left)
        end_y = Sub (y1, top)
        end_x = Sub (x1, left)
        begins = Concat <axis = 0> (begin_y, begin_x)
        ends = Concat <axis = 0> (end_y, end_x)
        inside = Slice (flat, begins, ends, flat_axes)
        inside_width = Sub (x1, x0)
        above_shape = Concat <axis = 0> (y0, inside_width)
        above = ConstantOfShape (above_shape)
        left_rows = Sub (height, y1)
        below_shape = Concat <axis = 0> (left_rows, inside_width)
        below = ConstantOfShape (below_shape)
        column_of_image = Concat <axis = 0> (above, inside, below)
        before_shape = Concat <axis = 0> (height, x0)
        before = ConstantOfShape (before_shape)
        left_columns = Sub (width, x1)
        behind_shape = Concat <axis = 0> (height, left_columns)
        behind = ConstantOfShape (behind_shape)
        pasted = Concat <axis = 1> (before, column_of_image, behind)
        row = Unsqueeze (pasted, zero)
    }>
}"""


def test_masks_of_the_boxes_that_are_kept_are_pasted_into_an_image():
    rng = np.random.default_rng(5)
    model = parser.parse_model(MASKS)
    weight = rng.standard_normal((1, 3, 3, 3)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weight, "weight"))
    checker.check_model(model)
    engine, reference = lw.Engine(lw.compile(model, jobs=1)), ReferenceEvaluator(model)
    for boxes, size in ((9, (24, 31)), (3, (40, 20)), (1, (16, 16))):
        corners = rng.uniform(-4, 14, (boxes, 2))
        given = {
            "features": rng.standard_normal((1, 3, *size)).astype(np.float32),
            "boxes": np.concatenate([corners, corners + rng.uniform(1, 9, (boxes, 2))], 1).astype(np.float32),
            "scores": rng.uniform(0.25, 1, boxes).astype(np.float32),
            "size": np.array(size),
        }
        kept, masks = engine(given)
        wanted_kept, wanted_masks = reference.run(None, given)
        np.testing.assert_array_equal(kept, wanted_kept)
        assert masks.shape == (len(kept), 1, *size)
        np.testing.assert_allclose(masks[:, 0], wanted_masks, atol=1e-5)


def test_where_no_box_is_kept_there_is_no_mask():
    model = parser.parse_model(MASKS)
    model.graph.initializer.append(numpy_helper.from_array(np.ones((1, 3, 3, 3), np.float32), "weight"))
    features = np.ones((1, 3, 8, 8), np.float32)
    boxes, scores = np.array([[1, 1, 3, 3]], np.float32), np.array([0.1], np.float32)
    kept, masks = lw.Engine(lw.compile(model, jobs=1))([features, boxes, scores, np.array([8, 9])])
    assert kept.shape == (0, 4)
    assert masks.shape[0] == 0
