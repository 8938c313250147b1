"""Convolutions of half types: by the schedules of float32, summed in float32, rounded once."""

import ml_dtypes
import numpy as np
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import loopwright as lw
from loopwright.artifact.options import CodegenOptions
from loopwright.base.dtype import dtype as dtype_of
from loopwright.compiler.passes.graph_passes import run_graph_passes
from loopwright.compiler.passes.share_widened import share_widened
from loopwright.compiler.settings import CompileSettings
from loopwright.graph.node import Call
from loopwright.graph.visit import post_order, users

TARGET = lw.resolve_target("x86-64-v3")
EPSILON = {np.dtype(np.float16): 2.0**-11, np.dtype(ml_dtypes.bfloat16): 2.0**-8}
"""Half a unit in the last place, of 1."""
FAMILIES = {
    "3x3": ((1, 16, 12, 12), (24, 16, 3, 3), {"pads": [1, 1, 1, 1]}),
    "strided": ((2, 8, 11, 9), (16, 8, 3, 3), {"strides": [2, 2]}),
    "pointwise": ((1, 32, 7, 7), (16, 32, 1, 1), {}),
    "depthwise": ((1, 24, 9, 9), (24, 1, 3, 3), {"group": 24, "pads": [1, 1, 1, 1]}),
    "grouped": ((1, 16, 9, 9), (32, 4, 3, 3), {"group": 4, "dilations": [2, 2]}),
    "1-D": ((1, 8, 40), (16, 8, 5), {"pads": [2, 2]}),
    "3-D": ((1, 4, 6, 6, 6), (8, 4, 3, 3, 3), {}),
    "transposed": ((1, 8, 6, 6), (8, 12, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "transposed 1-D": ((1, 8, 9), (8, 4, 3), {"strides": [3]}),
}


def model_of(name, kind):
    """A convolution with its bias, and relu behind it; the input; and the same model in float64."""
    rng = np.random.default_rng(0)
    x_shape, w_shape, attributes = FAMILIES[name]
    op = "ConvTranspose" if name.startswith("transposed") else "Conv"
    filters = w_shape[1] if op == "ConvTranspose" else w_shape[0]
    x, w, b = (rng.standard_normal(shape).astype(kind) for shape in (x_shape, w_shape, (filters,)))
    nodes = [helper.make_node(op, ["x", "w", "b"], ["c"], **attributes), helper.make_node("Relu", ["c"], ["y"])]

    def made(cast):
        tensors = [numpy_helper.from_array(cast(v), n) for n, v in (("w", w), ("b", b))]
        element = helper.np_dtype_to_tensor_dtype(cast(x).dtype)
        ends = [helper.make_tensor_value_info(n, element, s) for n, s in (("x", x_shape), ("y", None))]
        graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], tensors)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)

    return made(lambda v: v), x, made(lambda v: v.astype(np.float64))


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("name", FAMILIES)
def test_sums_are_of_float32_and_rounded_once(name, kind):
    model, x, exact = model_of(name, kind)
    library = lw.compile(model, target=TARGET, jobs=1)
    (y,) = lw.Engine(library, threads=1)({"x": x})
    (expected,) = ReferenceEvaluator(exact).run(None, {"x": x.astype(np.float64)})
    assert y.dtype == kind
    bound = 1.02 * EPSILON[y.dtype] * np.exp2(np.ceil(np.log2(np.abs(expected) + 1e-9))) + 1e-4
    assert np.all(np.abs(y.astype(np.float64) - expected) <= bound)
    names = {function.implementation for function in library.functions}
    assert not names & {"conv.direct", "conv_transpose.direct"}


def convolutions(function):
    return [n for n in post_order(function.body) if isinstance(n, Call) and n.op.name.startswith("nn.conv")]


def test_under_strict_precision_only_a_convolutions_own_bias_is_added_before_it_is_rounded():
    x, w = lw.var("x", (1, 4, 5, 5), "float16"), lw.const(np.ones((4, 4, 3, 3), np.float16))
    bias = lw.const(np.ones((4, 1, 1), np.float16))
    function = lw.Function([x], lw.nn.add(lw.nn.conv2d(x, w), bias))
    for precision, dtype in (("strict", "float16"), ("standard", "float32")):
        planned = run_graph_passes(function, CompileSettings(TARGET, CodegenOptions(precision)))
        (addition,) = (n for n in post_order(planned.body) if isinstance(n, Call) and n.op.name == "add")
        assert str(addition.type.dtype) == dtype
        assert [str(c.type.dtype) for c in convolutions(planned)] == ["float32"]


@pytest.mark.parametrize("limited", [lw.nn.relu, lambda x: lw.nn.clip(lw.nn.relu(x), 0.0, 6.0)])
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_limits_that_halves_have_go_before_the_rounding_and_change_nothing(kind, limited):
    x = lw.var("x", (1, 4, 5, 5), kind)
    sums = lw.nn.conv2d(x, lw.const(np.full((4, 4, 3, 3), 0.3, dtype_of(kind).to_numpy())))
    planned = run_graph_passes(lw.Function([x], limited(sums)), CompileSettings(TARGET))
    limits = [n for n in post_order(planned.body) if isinstance(n, Call) and n.op.name in ("relu", "clip")]
    assert {str(n.type.dtype) for n in limits} == {"float32"}
    value = 5 * np.random.default_rng(0).standard_normal((1, 4, 5, 5)).astype(dtype_of(kind).to_numpy())
    y, rounded = (
        lw.Engine(lw.compile(lw.Function([x], r), target=TARGET, jobs=1), threads=1)({"x": value})[0]
        for r in (limited(sums), sums)
    )
    most = np.inf if limited is lw.nn.relu else 6
    np.testing.assert_array_equal(y, np.clip(rounded.astype(np.float32), 0, most).astype(y.dtype))


def test_a_limit_that_halves_do_not_have_stays_behind_the_rounding():
    x = lw.var("x", (1, 4, 5, 5), "float16")
    sums = lw.nn.conv2d(x, lw.const(np.ones((4, 4, 3, 3), np.float16)))
    planned = run_graph_passes(lw.Function([x], lw.nn.clip(sums, 0.1, 6.0)), CompileSettings(TARGET))
    (clip,) = (n for n in post_order(planned.body) if isinstance(n, Call) and n.op.name == "clip")
    assert str(clip.type.dtype) == "float16"


def test_a_value_that_several_read_is_rounded_for_each():
    x, w = lw.var("x", (1, 4, 5, 5), "float16"), lw.const(np.full((4, 4, 1, 1), 0.3, np.float16))
    sums = lw.nn.conv2d(x, w)
    function = lw.Function([x], lw.nn.subtract(lw.nn.add(sums, lw.const(np.ones((4, 1, 1), np.float16))), sums))
    values = np.random.default_rng(0).standard_normal((1, 4, 5, 5)).astype(np.float16)
    rounded = np.einsum("nchw,kc->nkhw", values.astype(np.float64), np.full((4, 4), np.float16(0.3), np.float64))
    rounded = rounded.astype(np.float16)
    (y,) = lw.Engine(lw.compile(function, target=TARGET, jobs=1), threads=1)({"x": values})
    np.testing.assert_array_equal(y, (rounded + np.float16(1)) - rounded)


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
def test_a_half_that_one_reader_widens_is_read_widened_by_all(kind):
    name = np.dtype(kind).name
    x = lw.var("x", (4, 32), name)
    half = lw.nn.multiply(x, x)
    function = lw.Function([x], lw.op.Tuple((lw.nn.sqrt(lw.nn.cast(half, "float32")), lw.nn.add(half, half))))
    shared = share_widened(function)
    square = next(n for n in post_order(shared.body) if isinstance(n, Call) and n.op.name == "multiply")
    (reader,) = users(shared.body)[square]
    assert str(reader.type.dtype) == "float32"
    assert len(users(shared.body)[reader]) == 2
    value = np.random.default_rng(0).standard_normal((4, 32)).astype(kind)
    root, double = lw.Engine(lw.compile(shared, target=TARGET, jobs=1), threads=1)([value])
    rounded = (value.astype(np.float32) ** 2).astype(kind)
    np.testing.assert_allclose(root, np.sqrt(rounded.astype(np.float64)), rtol=1e-6)
    np.testing.assert_array_equal(double, rounded + rounded)


def test_a_half_stays_where_others_do_more_with_it_than_elements():
    x = lw.var("x", (4, 32), "float16")
    half = lw.nn.multiply(x, x)
    sums = lw.Function([x], lw.op.Tuple((lw.nn.sqrt(lw.nn.cast(half, "float32")), lw.nn.sum(half, 1))))
    assert share_widened(sums) is sums
    once = lw.Function([x], lw.nn.sqrt(lw.nn.cast(half, "float32")))
    assert share_widened(once) is once


def test_a_convolution_with_a_wider_result_is_not_rounded_and_open_extents_stay_open():
    n = lw.te.var("n")
    x, w = lw.var("x", (n, 4, 5, 5), "float16"), lw.var("w", (8, 4, 3, 3), "float16")
    function = lw.Function([x, w], lw.nn.conv2d(x, w, out_dtype="float32"))
    library = lw.compile(function, target=TARGET, jobs=1)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((3, 4, 5, 5), (8, 4, 3, 3)))
    (y,) = lw.Engine(library, threads=1)({"x": a, "w": b})
    node = helper.make_node("Conv", ["x", "w"], ["y"])
    (expected,) = ReferenceEvaluator(node).run(None, {"x": a.astype(np.float64), "w": b.astype(np.float64)})
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)


def test_models_of_halves_compare_with_their_values():
    """Each value of the model is found again behind the rounding."""
    model, x, _ = model_of("3x3", np.float16)
    library = lw.compile(model, target=TARGET, jobs=1)
    names = {result.name for step in library.model.steps for result in step.results}
    assert "y" in names
    assert lw.Engine(library, threads=1)({"x": x})[0].dtype == np.float16
