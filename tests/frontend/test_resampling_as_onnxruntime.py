"""Resize and GridSample where the standard leaves rounding open, against onnxruntime: nearest elements beside a half,
extents that a scale rounds, scales that are no simple fraction of an open extent, cubics at the border."""

import numpy as np
import pytest
from contrib_cases import in_onnxruntime
from onnx import helper, numpy_helper
from onnx_cases import compare, run
from pairs import each_pair, each_value

ROUNDINGS = ("floor", "ceil", "round_prefer_floor")
COORDINATES = ("asymmetric", "half_pixel", "pytorch_half_pixel")
SCALES = ((0.6, 0.7), (1.7, 0.3), (2.5, 1.0 / 3.0))
SIZES = ((24, 7), (1, 33), (10, 1))


def model(op, attrs, image, stored=(), fed=()):
    inputs = {"scales": ["x", "", "scales"], "sizes": ["x", "", "", "sizes"]}
    names = inputs[stored[0][0]] if stored else ["x", "grid"]
    node = helper.make_node(op, names, ["y"], **attrs)
    infos = [helper.make_tensor_value_info("x", 1, image), *(helper.make_tensor_value_info("grid", 1, f) for f in fed)]
    weights = [numpy_helper.from_array(value, name) for name, value in stored]
    graph = helper.make_graph([node], "test", infos, [helper.make_empty_tensor_value_info("y")], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def check(made, feeds):
    compare(run(made, feeds), in_onnxruntime(made, feeds), 1e-5)


def resize(image, given, mode, coordinates, rounding="floor", **more):
    attrs = {"mode": mode, "coordinate_transformation_mode": coordinates, "nearest_mode": rounding, **more}
    return model("Resize", attrs, image, [given])


def given_of(name, values):
    kind = np.float32 if name == "scales" else np.int64
    return name, np.array([1, 1 if name == "scales" else 2, *values], kind)


@each_pair(image=[(1, 2, 40, 57), (1, 2, 10, 19), (1, 2, "h", "w")], coordinates=COORDINATES, rounding=ROUNDINGS)
def test_the_nearest_element_is_onnxruntimes(image, coordinates, rounding):
    extents = ((10, 19), (40, 57), (3, 30)) if "h" in image else (image[2:],)
    for given in [*(given_of("scales", s) for s in SCALES), *(given_of("sizes", s) for s in SIZES)]:
        made = resize(image, given, "nearest", coordinates, rounding)
        for height, width in extents:
            rng = np.random.default_rng(height)
            check(made, {"x": rng.standard_normal((1, 2, height, width)).astype(np.float32)})


@each_value(mode=["linear", "cubic"], coordinates=COORDINATES, values=[*SCALES, *SIZES])
def test_open_images_are_interpolated_by_any_scale(mode, coordinates, values):
    name = "sizes" if isinstance(values[0], int) else "scales"
    made = resize((1, 2, "h", "w"), given_of(name, values), mode, coordinates)
    for height, width in ((10, 19), (8, 31), (1, 4)):
        rng = np.random.default_rng(height)
        check(made, {"x": rng.standard_normal((1, 2, height, width)).astype(np.float32)})


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_open_images_shrink_to_known_sizes_without_aliases(mode):
    made = resize((1, 2, "h", "w"), given_of("sizes", (5, 9)), mode, "half_pixel", antialias=1)
    for height, width in ((16, 17), (40, 9), (5, 33), (3, 4)):
        rng = np.random.default_rng(height)
        check(made, {"x": rng.standard_normal((1, 2, height, width)).astype(np.float32)})


def test_a_scale_rounds_extents_down_from_float32():
    """Ten times 0.7 is less than 7 in float64, of the 0.7 that is a float32, and 7 in float32."""
    made = resize((1, 2, 10, 10), ("scales", np.array([1, 1, 0.7, 0.7], np.float32)), "nearest", "asymmetric")
    (found,) = run(made, {"x": np.ones((1, 2, 10, 10), np.float32)})
    assert found.shape == (1, 2, 7, 7)


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [0, 1])
def test_a_grid_reads_beyond_the_border_as_onnxruntime_does(mode, padding, align):
    attrs = {"mode": mode, "padding_mode": padding, "align_corners": align}
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 2, 5, 6)).astype(np.float32)
    grid = rng.uniform(-2, 2, (1, 9, 11, 2)).astype(np.float32)
    check(model("GridSample", attrs, (1, 2, "h", "w"), fed=[(1, "p", "q", 2)]), {"x": x, "grid": grid})
