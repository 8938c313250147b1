"""What a branch of an If asks of dimensions: a run that takes the other branch need not have it."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnx_cases import compare

import loopwright as lw


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, name=f"{op}_{outputs[0]}", **attributes)


def graph(nodes, inputs, outputs):
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(np.dtype(k)), s)
        for n, (k, s) in inputs.items()
    ]
    return helper.make_graph(nodes, "inner", infos, [onnx.ValueInfoProto(name=name) for name in outputs])


WEIGHT = np.arange(12, dtype=np.float32).reshape(3, 4)


def model_of(nodes, inputs):
    kinds = {"c": TensorProto.BOOL, "most": TensorProto.INT64}
    infos = [helper.make_tensor_value_info(n, kinds.get(n, TensorProto.FLOAT), shape) for n, shape in inputs.items()]
    results = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    stored = [helper.make_tensor("w", TensorProto.FLOAT, (3, 4), WEIGHT.ravel())]
    made = helper.make_graph(nodes, "model", infos, results, stored)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def branches(then, otherwise, following):
    """An If of these nodes, each branch of which gives the last one's result as t; and what follows."""
    parts = (graph(nodes, {}, [nodes[-1].output[0]]) for nodes in (then, otherwise))
    names = ("then_branch", "else_branch")
    return [node("If", ["c"], ["t"], **dict(zip(names, parts, strict=True))), *following]


def by_onnx(model, feeds):
    return ReferenceEvaluator(model).run(None, feeds)


def draw(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


def engine_and_model(then, otherwise, inputs):
    model = model_of(branches(then, otherwise, [node("ReduceSum", ["t"], ["y"])]), inputs)
    return lw.Engine(lw.compile(model)), model


def test_a_number_that_one_branch_asks_for():
    then, otherwise = [node("Mul", ["x", "w"], ["a"])], [node("Mul", ["x", "x"], ["b"])]
    engine, model = engine_and_model(then, otherwise, {"x": ("N", 4), "c": ()})
    for holds, n in ((True, 3), (True, 1), (False, 3), (False, 2), (False, 1), (False, 0)):
        feeds = {"x": draw(n, 4), "c": np.array(holds)}
        compare(engine(feeds), by_onnx(model, feeds))
    with pytest.raises(lw.KernelError, match="should be 1 or 3"):
        engine({"x": draw(2, 4), "c": np.array(True)})


def test_a_product_in_one_branch_asks_for_a_number_of_columns():
    then, otherwise = [node("MatMul", ["x", "w"], ["a"])], [node("Abs", ["x"], ["b"])]
    engine, model = engine_and_model(then, otherwise, {"x": ("N", "K"), "c": ()})
    for holds, shape in ((True, (5, 3)), (False, (5, 3)), (False, (2, 7))):
        feeds = {"x": draw(*shape), "c": np.array(holds)}
        compare(engine(feeds), by_onnx(model, feeds))
    with pytest.raises(lw.KernelError, match="should be 3"):
        engine({"x": draw(2, 7), "c": np.array(True)})


@pytest.mark.parametrize("joined", [False, True])
def test_dimensions_of_two_names_are_equal_in_one_branch(joined):
    meeting = [node("Concat", ["x", "z"], ["xz"], axis=0)] if joined else []
    then = [*meeting, node("Add", ["xz" if joined else "x", "y0"], ["s"]), node("Exp", ["s"], ["a"])]
    otherwise = [node("ReduceSum", ["y0"], ["r"], keepdims=1), node("Add", ["x", "r"], ["b"])]
    engine, model = engine_and_model(then, otherwise, {"x": ("N", 4), "y0": ("M", 4), "z": ("P", 4), "c": ()})
    for holds, n, m in ((True, 3, 5 if joined else 3), (False, 3, 7), (False, 1, 2)):
        feeds = {"x": draw(n, 4), "y0": draw(m, 4), "z": draw(2, 4), "c": np.array(holds)}
        compare(engine(feeds), by_onnx(model, feeds))
    with pytest.raises(lw.KernelError, match="should be"):
        engine({"x": draw(3, 4), "y0": draw(4, 4), "z": draw(2, 4), "c": np.array(True)})


def test_dimensions_of_two_names_broadcast_in_one_branch():
    """What is computed of the shorter operand mixes its rows, so that it can't be repeated before the branch."""
    then = [
        node("ReduceSum", ["x"], ["r"], keepdims=1),
        node("Add", ["x", "y0"], ["s"]),
        node("Mul", ["s", "r"], ["a"]),
    ]
    otherwise = [node("Concat", ["x", "y0"], ["b"], axis=0)]
    engine, model = engine_and_model(then, otherwise, {"x": ("N", 4), "y0": ("M", 4), "c": ()})
    for holds in (True, False):
        for n, m in ((1, 5), (5, 1), (3, 3), (1, 1), (1, 0)):
            feeds = {"x": draw(n, 4), "y0": draw(m, 4), "c": np.array(holds)}
            compare(engine(feeds), by_onnx(model, feeds))
    with pytest.raises(lw.KernelError, match="should be 1 or"):
        engine({"x": draw(2, 4), "y0": draw(5, 4), "c": np.array(True)})


def test_a_loop_in_a_branch_asks_for_a_number():
    body = graph(
        [node("Identity", ["go"], ["on"]), node("Mul", ["x", "w"], ["p"]), node("Add", ["p", "s"], ["more"])],
        {"k": (np.int64, ()), "go": (np.bool_, ()), "s": (np.float32, (3, 4))},
        ["on", "more"],
    )
    then, otherwise = [node("Loop", ["most", "", "w"], ["a"], body=body)], [node("Neg", ["x"], ["b"])]
    engine, _ = engine_and_model(then, otherwise, {"x": ("N", 4), "c": (), "most": ()})
    for holds, n in ((True, 3), (True, 1), (False, 3), (False, 2)):
        feeds = {"x": draw(n, 4), "c": np.array(holds), "most": np.array(2)}
        wanted = WEIGHT + 2 * feeds["x"] * WEIGHT if holds else -feeds["x"]
        compare(engine(feeds), [np.sum(wanted, keepdims=True)])
    with pytest.raises(lw.KernelError, match="should be 1 or 3"):
        engine({"x": draw(2, 4), "c": np.array(True), "most": np.array(2)})
