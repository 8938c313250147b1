"""Resize and Upsample whose scales, sizes or region are inputs of the model: one compilation for several settings."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from pairs import each_value

import loopwright as lw

rng = np.random.default_rng(5)
IMAGE = rng.standard_normal((1, 2, 6, 7)).astype(np.float32)
SCALES = ([1, 1, 2, 3], [1, 1, 0.6, 0.45], [1, 1, 1.7, 0.83], [1, 2, 1, 1.35])
"""None of which has half_pixel_symmetric meet an element, or another one a half between them, where rounding decides
which one the reference takes."""
SIZES = ([1, 2, 12, 21], [1, 2, 3, 5], [1, 2, 9, 4], [1, 2, 6, 7])
KINDS = {
    np.dtype("float32"): TensorProto.FLOAT,
    np.dtype("int64"): TensorProto.INT64,
    np.dtype("int32"): TensorProto.INT32,
}


def model_of(op, opset, operands, image=IMAGE, open_axes=(), **attributes):
    """``operands`` are arrays by name, which are fed, in the order of the inputs; the others are left out."""
    shape = [f"n{k}" if k in open_axes else extent for k, extent in enumerate(image.shape)]
    infos = [helper.make_tensor_value_info("x", KINDS[image.dtype], shape)]
    infos += [helper.make_tensor_value_info(n, KINDS[v.dtype], v.shape) for n, v in operands.items()]
    order = {"Upsample": ["scales"]}.get(op) or (["scales"] if opset == 10 else ["roi", "scales", "sizes"])
    names = [name if name in operands else "" for name in order]
    node = helper.make_node(op, ["x", *names], ["y"], name="the_node", **attributes)
    graph = helper.make_graph([node], "g", infos, [onnx.ValueInfoProto(name="y")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def check(settings, opset=19, images=(IMAGE,), **options):
    """One compilation for all settings and images, against onnx's reference evaluator."""
    settings = [
        {n: np.array(v, np.int64 if n == "sizes" else np.float32) for n, v in each.items()} for each in settings
    ]
    model = model_of("Resize", opset, settings[0], images[0], **options)
    engine, reference = lw.Engine(lw.compile(model, jobs=1)), ReferenceEvaluator(model)
    for image in images:
        for operands in settings:
            (found,) = engine({"x": image} | operands)
            (wanted,) = reference.run(None, {"x": image} | operands)
            assert found.shape == wanted.shape
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    return engine


@pytest.mark.parametrize(
    "coordinates", ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]
)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_scales(mode, coordinates):
    check([{"scales": scales} for scales in SCALES], mode=mode, coordinate_transformation_mode=coordinates)


@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_sizes_of_nearest_elements(rounding):
    check([{"sizes": sizes} for sizes in SIZES], nearest_mode=rounding)


@each_value(mode=["linear", "cubic"], antialias=[0, 1], exclude_outside=[0, 1])
def test_sizes_of_weighted_elements(mode, antialias, exclude_outside):
    check([{"sizes": sizes} for sizes in SIZES], mode=mode, antialias=antialias, exclude_outside=exclude_outside)


@pytest.mark.parametrize("axes", [[2, 3], [3, 2], [3]])
def test_axes(axes):
    check([{"sizes": sizes[-len(axes) :]} for sizes in SIZES], axes=axes, mode="linear")
    check([{"scales": scales[-len(axes) :]} for scales in SCALES], axes=axes)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_one_scale_for_all_axes(policy, mode):
    sizes = [{"sizes": each} for each in ([7, 8], [3, 3], [12, 5], [20, 21])]
    check(sizes, axes=[2, 3], keep_aspect_ratio_policy=policy, mode=mode)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_a_region_of_the_run(mode):
    regions = [0.0, 0.0, 1.0, 1.0], [0.41, 0.62, 0.6, 0.8], [-0.2, 0.1, 1.3, 0.9]
    options = {"mode": mode, "axes": [2, 3], "coordinate_transformation_mode": "tf_crop_and_resize"}
    settings = [{"roi": region, "sizes": sizes} for region in regions for sizes in ([3, 3], [6, 7], [9, 2])]
    check(settings, extrapolation_value=10.0, **options)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_images_of_open_extents(mode):
    images = [IMAGE, *(rng.standard_normal((2, 2, *size)).astype(np.float32) for size in ((3, 9), (1, 4), (8, 8)))]
    settings = [{"sizes": sizes} for sizes in ([4, 9], [6, 7], [1, 1])]
    check(settings, images=images, open_axes=[0, 2, 3], axes=[2, 3], mode=mode)


def test_integers_are_truncated():
    image = rng.integers(-50, 50, (1, 1, 4, 4)).astype(np.int32)
    check([{"sizes": sizes} for sizes in ([1, 1, 7, 9], [1, 1, 3, 2])], images=[image])


def test_no_elements_are_made_where_none_are_wanted():
    engine = lw.Engine(lw.compile(model_of("Resize", 19, {"sizes": np.array([0, 5])}, axes=[2, 3], mode="linear")))
    assert engine([IMAGE, np.array([0, 5])])[0].shape == (1, 2, 0, 5)
    with pytest.raises(lw.RuntimeArgumentError, match=r"an extent of the result \(node the_node\) should be 0 or more"):
        engine([IMAGE, np.array([-1, 5])])


@pytest.mark.parametrize(("op", "opset"), [("Resize", 10), ("Upsample", 9)])
def test_older_forms(op, opset):
    """A scale below 1 has Resize 10 take the element above."""
    for mode in ("nearest", "linear"):
        model = model_of(op, opset, {"scales": np.ones(4, np.float32)}, mode=mode)
        engine = lw.Engine(lw.compile(model, jobs=1))
        for scales in ([1, 1, 2, 3], [1, 1, 2.5, 1.5], *([[1, 1, 0.5, 0.7]] if opset == 10 else [])):
            factors = np.array(scales, np.float32)
            fixed = model_of(op, opset, {"scales": factors}, mode=mode)
            fixed.graph.initializer.append(onnx.numpy_helper.from_array(factors, "scales"))
            del fixed.graph.input[1]
            (wanted,) = lw.Engine(lw.compile(fixed, jobs=1))([IMAGE])
            np.testing.assert_allclose(engine([IMAGE, factors])[0], wanted, rtol=1e-5, atol=1e-5)


def test_scales_that_are_known_in_part_leave_the_other_axes_alone():
    nodes = [
        helper.make_node("Concat", ["ones", "factors"], ["scales"], axis=0),
        helper.make_node("Resize", ["x", "", "scales"], ["y"], name="the_node"),
    ]
    infos = [helper.make_tensor_value_info("x", 1, IMAGE.shape), helper.make_tensor_value_info("factors", 1, [2])]
    ones = helper.make_tensor("ones", 1, [2], [1.0, 1.0])
    graph = helper.make_graph(nodes, "g", infos, [onnx.ValueInfoProto(name="y")], [ones])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=10)
    library = lw.compile(model, jobs=1)
    assert [str(extent) for extent in library.outputs[0].shape[:2]] == ["1", "2"]
    factors = np.array([2, 3], np.float32)
    np.testing.assert_array_equal(lw.Engine(library)([IMAGE, factors])[0], IMAGE.repeat(2, 2).repeat(3, 3))


@pytest.mark.parametrize(
    ("operands", "options", "message"),
    [
        ({"sizes": np.array([3, 3])}, {}, "sizes must have 4 numbers"),
        ({"sizes": np.array([3, 3]), "scales": np.ones(2, np.float32)}, {"axes": [2, 3]}, "either scales or sizes"),
        ({"sizes": np.array([3, 3])}, {"axes": [2, 3], "keep_aspect_ratio_policy": "best"}, "policy 'best'"),
        (
            {"roi": np.ones(3, np.float32), "sizes": np.array([3, 3])},
            {"axes": [2, 3], "coordinate_transformation_mode": "tf_crop_and_resize"},
            "roi must have 4 numbers",
        ),
    ],
)
def test_operands_that_do_not_fit_are_refused(operands, options, message):
    with pytest.raises(lw.ModelError, match=message):
        lw.from_onnx(model_of("Resize", 19, operands, **options))
