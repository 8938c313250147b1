"""Operands that only a run knows, whose length the model leaves open: how many numbers there have to be follows from
the operator, and each run checks it."""

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import loopwright as lw

rng = np.random.default_rng(5)
X = rng.standard_normal((2, 3, 4)).astype(np.float32)
IMAGE = rng.standard_normal((1, 1, 4, 6)).astype(np.float32)
BOXES = np.array([[[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]]], np.float32)
SCORES = np.array([[[0.9, 0.8, 0.7]]], np.float32)


def model_of(op, inputs, outputs=1, opset=21, **attributes):
    """A model of one node, whose first input has its shape, and the others have open extents."""
    names = [f"i{k}" for k in range(len(inputs))]
    shapes = [
        inputs[0].shape,
        *([f"{n}_{a}" for a in range(x.ndim)] for n, x in zip(names[1:], inputs[1:], strict=True)),
    ]
    given = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), shape)
        for name, x, shape in zip(names, inputs, shapes, strict=True)
    ]
    made = [helper.make_tensor_value_info(f"y{k}", TensorProto.UNDEFINED, None) for k in range(outputs)]
    node = helper.make_node(op, names, [y.name for y in made], name="the_node", **attributes)
    graph = helper.make_graph([node], "operands", given, made)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def check(op, *settings, **options):
    """One compilation for all settings of the inputs, against onnx's reference evaluator."""
    settings = [[np.asarray(x) for x in inputs] for inputs in settings]
    model = model_of(op, settings[0], **options)
    engine, reference = lw.Engine(lw.compile(model, jobs=1)), ReferenceEvaluator(model)
    for inputs in settings:
        wanted = reference.run(None, {f"i{k}": x for k, x in enumerate(inputs)})
        for ours, theirs in zip(engine(inputs), wanted, strict=True):
            assert (ours.shape, ours.dtype) == (np.shape(theirs), np.asarray(theirs).dtype)
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    return engine


@pytest.mark.parametrize(
    ("op", "inputs", "options"),
    [
        ("TopK", [X, [2]], {"outputs": 2}),
        ("Tile", [X, [1, 2, 1]], {}),
        ("Pad", [X, [0, 1, 0, 2, 0, 1]], {}),
        ("Split", [X, [1, 2]], {"outputs": 2, "axis": 1}),
        ("Upsample", [IMAGE, np.array([1, 1, 2, 3], np.float32)], {"opset": 9}),
        ("Resize", [IMAGE, np.zeros(0, np.float32), np.array([1, 1, 2, 3], np.float32)], {}),
        ("AffineGrid", [np.ascontiguousarray(X[:, :2, :3]), [2, 1, 4, 5]], {}),
        ("NonMaxSuppression", [BOXES, SCORES, [2], np.array([0.5], np.float32), np.array([0.1], np.float32)], {}),
        (
            "RoiAlign",
            [IMAGE, np.array([[0, 0, 3, 3]], np.float32), np.array([0])],
            {"output_height": 2, "output_width": 2},
        ),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_operators_tell_how_many_numbers_an_operand_has(op, inputs, options):
    check(op, inputs, **options)


def test_another_number_is_an_error_of_the_run():
    engine = check("TopK", [X, [2]], outputs=2)
    with pytest.raises(lw.RuntimeArgumentError, match=r"i1 should have shape \(1,\), found \(2,\)"):
        engine([X, np.array([1, 2])])


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceLogSumExp", "ReduceMean"])
def test_a_reduction_over_no_axes_is_one_over_all(op):
    settings = [[X, np.array(axes, np.int64)] for axes in ([1], [], [0, -1], [0, 1, 2])]
    check(op, *settings)
    check(op, *settings, noop_with_empty_axes=1)


def test_an_affine_grid_tells_the_matrices_of_an_open_theta():
    theta = np.ascontiguousarray(X[:, :2, :3])
    model = model_of("AffineGrid", [theta, np.array([2, 1, 4, 5])])
    for k in range(2):
        model.graph.input[k].type.tensor_type.shape.dim[0].dim_param = "n"
        model.graph.input[0].type.tensor_type.shape.dim[k + 1].dim_param = f"t{k}"
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_value = 4
    (found,) = lw.Engine(lw.compile(model, jobs=1))([theta, np.array([2, 1, 4, 5])])
    wanted = ReferenceEvaluator(model).run(None, {"i0": theta, "i1": np.array([2, 1, 4, 5])})[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_updates_tell_how_many_axes_an_index_is_of():
    check("ScatterND", [X, [[0, 1], [1, 2]], rng.standard_normal((2, 4)).astype(np.float32)], opset=18)


def test_a_split_into_parts_of_formulas_over_open_extents():
    """The parts are n // 2 and the rest, which no run has to compute."""
    nodes = [
        helper.make_node("Shape", ["x"], ["n"], start=1, end=2),
        helper.make_node("Div", ["n", "two"], ["half"]),
        helper.make_node("Sub", ["n", "half"], ["rest"]),
        helper.make_node("Concat", ["half", "rest"], ["parts"], axis=0),
        helper.make_node("Split", ["x", "parts"], ["a", "b"], axis=1),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, "n"])
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "ab"]
    two = helper.make_tensor("two", TensorProto.INT64, [1], [2])
    graph = helper.make_graph(nodes, "halves", [x], made, [two])
    engine = lw.Engine(lw.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), jobs=1))
    for n in (1, 7, 8):
        given = rng.standard_normal((2, n)).astype(np.float32)
        for found, wanted in zip(engine([given]), np.split(given, [n // 2], 1), strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_operands_of_empty_axes():
    """No elements are sliced backwards, or padded, as often as others."""
    empty = X[:, :0]
    for op, *numbers in (("Slice", [2], [-9], [1], [-1]), ("Slice", [1], [9], [1], [2]), ("Pad", [0, 2, 1, 0, 1, 0])):
        operands = [np.array(some, np.int64) for some in numbers]
        model = model_of(op, [X, *operands])
        for axis in range(3):
            model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = f"x{axis}"
        engine = lw.Engine(lw.compile(model, jobs=1))
        for x in (X, np.ascontiguousarray(empty)):
            given = {f"i{k}": operand for k, operand in enumerate([x, *operands])}
            (wanted,) = ReferenceEvaluator(model).run(None, given)
            np.testing.assert_array_equal(engine([x, *operands])[0], wanted)


def test_updates_are_as_many_as_indices():
    """Extents of both are open, where those of the data are known: indices may be fewer, updates may not."""
    data, indices = np.zeros((3, 5), np.float32), np.array([[0, 1, 2, 3], [1, 2, 3, 4]])
    engine = check("ScatterElements", [data, indices, np.ones((2, 4), np.float32)], opset=18, axis=1)
    for shape in ((2, 2), (1, 4), (2, 5)):
        with pytest.raises(lw.RuntimeArgumentError, match="should have extent"):
            engine([data, indices, np.ones(shape, np.float32)])
