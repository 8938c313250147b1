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
