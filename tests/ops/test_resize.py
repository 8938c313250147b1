"""resize and repeat: values against onnx's reference evaluator, forms, dtypes, misuse."""

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from pairs import each_pair

import loopwright as lw
from loopwright import TypeInferenceError, te
from loopwright.ops.families.repeat import repeat
from loopwright.ops.families.resample import resample
from loopwright.ops.families.resize import Interpolation, Resized, resize, resize_axes


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_repeat(ops, axis):
    x = np.arange(24, dtype=np.int64).reshape(2, 3, 4)
    np.testing.assert_array_equal(ops.apply(repeat, x, times=3, axis=axis), np.repeat(x, 3, axis))


def test_repeat_of_a_symbolic_axis(ops):
    x = ops.var((te.var("n"), 3))
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(ops.evaluate(repeat(x, 2, 0), {x: data}), np.repeat(data, 2, 0))
    columns = ops.var((2, te.var("n")))
    np.testing.assert_array_equal(ops.evaluate(repeat(columns, 2, 0), {columns: data}), np.repeat(data, 2, 0))


def test_whole_factors_repeat_without_a_table(ops):
    made = resize_axes(
        ops.var((1, 2, 3, 4)), [Resized(2, 6, 2.0)], Interpolation(coordinates="asymmetric", nearest="floor")
    )
    assert made.op.name == "repeat"
    assert resize_axes(ops.var((1, 2, 3, 4)), [Resized(2, 3, 1.0)], Interpolation()).name == "x"


def test_integers_are_truncated(ops):
    x = np.array([[0, 10, 20]], np.int32)
    found = ops.apply(resize_axes, x, axes=[Resized(1, 5, 5 / 3)], how=Interpolation("linear", "align_corners"))
    np.testing.assert_array_equal(found, [[0, 5, 10, 15, 20]])


def test_sizes_and_scales_are_of_the_spatial_axes_unless_axes_are_given(ops):
    x = ops.var((2, 3, 4, 6))
    assert resize(x, (8, 9)).type.static_shape == (2, 3, 8, 9)
    assert resize(x, scales=1.4).type.static_shape == (2, 3, 5, 8)
    assert resize(x, scales=(2, 0.5), axes=(1, -1), mode="cubic").type.static_shape == (2, 6, 4, 3)
    data = np.array([[[0, 2, 4]]], np.float32)
    found = ops.apply(resize, data, sizes=(5,), mode="linear", coordinates="align_corners")
    np.testing.assert_array_equal(found, [[[0, 1, 2, 3, 4]]])
    cropped = {"coordinates": "tf_crop_and_resize", "regions": [(0.5, 1.5)], "extrapolation_value": 9.0}
    np.testing.assert_array_equal(ops.apply(resize, data, sizes=(3,), mode="linear", **cropped), [[[2, 4, 9]]])


@pytest.mark.parametrize("sizes", [(0, 16), (16, 0), (3, 0)], ids=str)
def test_an_axis_may_be_resized_to_nothing(ops, sizes):
    assert ops.apply(resize, np.ones((1, 2, 32, 32), np.float32), sizes=sizes, mode="linear").shape == (1, 2, *sizes)


def test_a_region_of_which_nothing_is_inside_is_filled(ops):
    beyond = {"coordinates": "tf_crop_and_resize", "regions": [(2.0, 3.0)] * 2, "extrapolation_value": 7.0}
    x = np.ones((1, 1, 32, 32), np.float32)
    found = ops.apply(resize, x, sizes=(16, 16), mode="linear", exclude_outside=True, **beyond)
    np.testing.assert_array_equal(found, np.full((1, 1, 16, 16), 7, np.float32))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "resize\\(x: float32\\[1, 1, 3, 4\\]\\): either sizes or scales must be given"),
        ({"sizes": (8, 8), "scales": 2.0}, "either sizes or scales"),
        ({"sizes": (8,)}, "sizes needs a value for each of 2 axes, found \\(8,\\)"),
        ({"scales": -1.0}, "scales must be above 0"),
        ({"scales": 2.0, "axes": (7,)}, "axis 7 is not one of a tensor of rank 4"),
        ({"scales": 2.0, "regions": [(0, 1)]}, "regions needs a value for each of 2 axes"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(ops, given, message):
    with pytest.raises(TypeInferenceError, match=message):
        resize(ops.var((1, 1, 3, 4)), **given)


def test_misuse_is_refused(ops):
    x = ops.var((1, 1, 3, 4))
    for how, message in (
        (Interpolation("bilinear"), "no mode 'bilinear'"),
        (Interpolation(coordinates="corners"), "no coordinate transformation 'corners'"),
        (Interpolation(nearest="round"), "no rounding 'round'"),
    ):
        with pytest.raises(TypeInferenceError, match=message):
            resize_axes(x, [Resized(2, 5, 5 / 3)], how)
    axis = ops.var((te.var("n"),))
    with pytest.raises(TypeInferenceError, match=r"axis 0 of .* needs known extents for the coordinates tf_crop"):
        resize_axes(axis, [Resized(0, 5, 2.0)], Interpolation(coordinates="tf_crop_and_resize"), [axis])
    with pytest.raises(TypeInferenceError, match="needs a known scale to be resized with antialias"):
        resize_axes(axis, [Resized(0, 5, None)], Interpolation("linear", antialias=True), [axis])
    with pytest.raises(TypeInferenceError, match="is empty"):
        resize_axes(ops.var((0,)), [Resized(0, 5, 2.0)], Interpolation())


BEFORE, AFTER = (4, 7), (6, 3)
COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_crop_and_resize",
)
REGION = ((-0.2, 0.9), (0.1, 1.15))


def reference(x, scales, how):
    """By onnx's evaluator."""
    attributes = {
        "mode": how.mode,
        "coordinate_transformation_mode": how.coordinates,
        "nearest_mode": how.nearest,
        "cubic_coeff_a": how.cubic_a,
        "exclude_outside": int(how.exclude_outside),
        "antialias": int(how.antialias),
        "extrapolation_value": how.extrapolation_value,
    }
    node = helper.make_node("Resize", ["x", "roi", "scales"], ["y"], axes=[0, 1], **attributes)
    inputs = {"x": x, "roi": np.float32(REGION).T.ravel(), "scales": np.float32(scales)}
    infos = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, v.shape) for name, v in inputs.items()]
    graph = helper.make_graph([node], "g", infos, [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)])
    return ReferenceEvaluator(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])).run(None, inputs)[
        0
    ]


def check(ops, how):
    """Rows become more, columns fewer, by scales whose products with the extents are rounded down."""
    x = np.random.default_rng(0).normal(size=BEFORE).astype(np.float32)
    scales = [float(np.float32((after + 0.37) / before)) for before, after in zip(BEFORE, AFTER, strict=True)]
    axes = [Resized(k, AFTER[k], scales[k], REGION[k]) for k in range(2)]
    found = ops.apply(resize_axes, x, axes=axes, how=how)
    np.testing.assert_allclose(found, reference(x, scales, how), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
@pytest.mark.parametrize("coordinates", COORDINATES)
def test_nearest_is_as_in_onnx(ops, coordinates, rounding):
    check(ops, Interpolation("nearest", coordinates, rounding, extrapolation_value=7.0))


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_interpolation_is_as_in_onnx(ops, mode, coordinates):
    check(ops, Interpolation(mode, coordinates, extrapolation_value=7.0))
    check(ops, Interpolation(mode, coordinates, exclude_outside=True, cubic_a=-0.5))
    check(ops, Interpolation(mode, coordinates, antialias=True))
    check(ops, Interpolation(mode, coordinates, antialias=True, exclude_outside=True))


def test_resampling_needs_indices_and_weights_alike(ops):
    x, indices = ops.var((2, 5)), ops.var((2, 4), "int64")
    with pytest.raises(TypeInferenceError, match=r"one shape \[summands, elements\], found \(2, 4\) and \(4, 2\)"):
        resample(x, indices, ops.var((4, 2)), 1)
    with pytest.raises(TypeInferenceError, match="of one float, found float32 and float64"):
        resample(x, indices, ops.var((2, 4), "float64"), 1)


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [("linear", lambda x: x.reshape(2, 3, 5, 2, 32, 2).mean((3, 5))), ("nearest", lambda x: x[..., ::2, ::2])],
)
def test_half_the_size_is_one_function_that_gathers_nothing(mode, wanted):
    x = lw.var("x", (2, 3, 10, 64))
    library = lw.compile(lw.Function([x], resize(x, scales=0.5, mode=mode)), target="native", jobs=1)
    (function,) = library.functions
    assert "gather" not in function.llvm_ir
    image = np.random.default_rng(0).standard_normal((2, 3, 10, 64)).astype(np.float32)
    np.testing.assert_allclose(lw.Engine(library)([image])[0], wanted(image), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric"])
@pytest.mark.parametrize("times", [2, 3, 4])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_open_axes_that_shrink_by_a_whole_factor_are_as_in_onnx(ops, mode, times, coordinates):
    """Those of which all elements are made alike are sums of slices, the others are made by tables."""
    how, scale = Interpolation(mode, coordinates), 1 / times
    x = ops.var((te.var("h"), te.var("w")))
    made = resize_axes(x, [Resized(k, extent // times, scale) for k, extent in enumerate(x.type.shape)], how, [x])
    library = lw.compile(lw.Function([x], made), target="native", jobs=1)
    engine = lw.Engine(library)
    for extents in ((times, 2 * times), (7, 8), (13, 64), (31, 33), (16, 97)):
        image = np.random.default_rng(0).standard_normal(extents).astype(np.float32)
        wanted = reference(image, [scale, scale], how)
        np.testing.assert_allclose(engine([image])[0], wanted, rtol=1e-4, atol=1e-5)


@each_pair(
    coordinates=["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"],
    rounding=["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"],
    times=[2, 3],
)
def test_open_axes_that_grow_by_a_whole_factor_are_as_in_onnx(ops, coordinates, rounding, times):
    """Those of which each element is taken as often are repeated, the others gathered by tables."""
    how = Interpolation("nearest", coordinates, rounding)
    x = ops.var((te.var("h"), te.var("w")))
    changes = [Resized(k, extent * times, float(times)) for k, extent in enumerate(x.type.shape)]
    library = lw.compile(lw.Function([x], resize_axes(x, changes, how, [x])), target="x86-64-v3", jobs=1)
    engine, repeats = lw.Engine(library), True
    for extents in ((1, 2), (7, 8), (13, 64)):
        image = np.random.default_rng(0).standard_normal(extents).astype(np.float32)
        wanted = reference(image, [times, times], how)
        np.testing.assert_array_equal(engine([image])[0], wanted)
        repeats &= np.array_equal(wanted, image.repeat(times, 0).repeat(times, 1))
    assert (len(library.functions) == 1) is (repeats and coordinates != "align_corners")


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_open_images_of_half_the_size_are_one_function_without_tables(mode):
    h, w = te.var("h"), te.var("w")
    x = lw.var("x", (2, 3, h, w))
    axes = [Resized(2, h // 2, 0.5), Resized(3, w // 2, 0.5)]
    library = lw.compile(lw.Function([x], resize_axes(x, axes, Interpolation(mode), [x])), target="native", jobs=1)
    (function,) = library.functions
    assert "gather" not in function.llvm_ir
