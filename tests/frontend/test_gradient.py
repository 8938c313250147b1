"""Gradient of ai.onnx.preview.training: at the values of the graph and at others, twice, and what is refused."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import loopwright as lw

TRAINING = "ai.onnx.preview.training"


def gradient(inputs, outputs, y, xs, zs=()):
    named = {"zs": list(zs)} if zs else {}
    return helper.make_node("Gradient", inputs, outputs, name="slope", domain=TRAINING, y=y, xs=list(xs), **named)


def model_of(nodes, inputs, outputs, stored=()):
    def info(name, shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    graph = helper.make_graph(
        nodes, "g", [info(*each) for each in inputs.items()], [info(name, None) for name in outputs], list(stored)
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(TRAINING, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def run(model, *arrays):
    return lw.Engine(lw.compile(model, jobs=1))([np.asarray(a, np.float32) for a in arrays])


ADD_AND_MUL = [helper.make_node("Add", ["a", "b"], ["c"]), helper.make_node("Mul", ["c", "a"], ["d"])]


def test_of_a_sum_and_a_product():
    nodes = [*ADD_AND_MUL, gradient(["a", "b"], ["da", "db"], "d", ["a", "b"])]
    found = run(model_of(nodes, {"a": [], "b": []}, ["d", "da", "db"]), 1.0, 2.0)
    assert [float(x) for x in found] == [3.0, 4.0, 1.0]


def test_at_other_values_than_those_of_the_graph():
    nodes = [*ADD_AND_MUL, gradient(["p", "b"], ["da"], "d", ["a"], ["b"])]
    found = run(model_of(nodes, {"a": [], "b": [], "p": []}, ["d", "da"]), 1.0, 2.0, 5.0)
    assert [float(x) for x in found] == [3.0, 12.0]


def test_at_one_value_for_two_variables():
    nodes = [*ADD_AND_MUL, gradient(["p", "p"], ["da", "db"], "d", ["a", "b"])]
    found = run(model_of(nodes, {"a": [], "b": [], "p": []}, ["d", "da", "db"]), 1.0, 2.0, 5.0)
    assert [float(x) for x in found] == [3.0, 15.0, 5.0]


def test_at_a_value_that_the_result_is_computed_from_by_itself():
    """Where a is 2, as b is, d moves with a alone."""
    nodes = [*ADD_AND_MUL, gradient(["b"], ["da"], "d", ["a"])]
    found = run(model_of(nodes, {"a": [], "b": []}, ["d", "da"]), 1.0, 2.0)
    assert [float(x) for x in found] == [3.0, 6.0]


def test_by_a_value_in_between_and_by_one_that_nothing_else_needs():
    """d is wanted by its gradient alone, and c stands for itself there: it does not move with a."""
    nodes = [*ADD_AND_MUL, gradient(["c", "a"], ["dc", "da"], "d", ["c", "a"])]
    found = run(model_of(nodes, {"a": [], "b": []}, ["dc", "da"]), 1.0, 2.0)
    assert [float(x) for x in found] == [1.0, 3.0]


def test_of_a_gradient():
    """The second derivative of a³."""
    cube = [helper.make_node("Mul", ["a", "a"], ["s"]), helper.make_node("Mul", ["s", "a"], ["y"])]
    nodes = [*cube, gradient(["a"], ["first"], "y", ["a"]), gradient(["a"], ["second"], "first", ["a"])]
    found = run(model_of(nodes, {"a": [2]}, ["first", "second"]), [2.0, 3.0])
    np.testing.assert_allclose(found, [[12, 27], [12, 18]])


def test_a_step_of_training_lowers_the_loss():
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Tanh", ["h"], ["t"]),
        helper.make_node("Sub", ["t", "label"], ["error"]),
        helper.make_node("Mul", ["error", "error"], ["square"]),
        helper.make_node("ReduceMean", ["square"], ["loss"], keepdims=0),
        gradient(["w", "x", "label"], ["dw"], "loss", ["w"], ["x", "label"]),
        helper.make_node("Mul", ["dw", "rate"], ["change"]),
        helper.make_node("Sub", ["w", "change"], ["better"]),
    ]
    rng = np.random.default_rng(0)
    x, w, label = rng.random((8, 4)), rng.random((4, 2)) - 0.5, rng.random((8, 2)) - 0.5
    rate = numpy_helper.from_array(np.array(0.5, np.float32), "rate")
    inputs = {"x": ["n", 4], "w": [4, 2], "label": ["n", 2]}
    engine = lw.Engine(lw.compile(model_of(nodes, inputs, ["loss", "dw", "better"], [rate]), jobs=1))
    x, w, label = (a.astype(np.float32) for a in (x, w, label))
    losses = []
    for _ in range(5):
        loss, slope, better = engine([x, w, label])
        t = np.tanh(x.astype(np.float64) @ w)
        wanted = x.T.astype(np.float64) @ ((1 - t * t) * 2 * (t - label) / label.size)
        np.testing.assert_allclose(slope, wanted, rtol=1e-4, atol=1e-6)
        losses.append(float(loss))
        w = better
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0]


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([gradient(["a"], ["da"], "missing", ["a"])], "uses the value 'missing', which nothing produces"),
        ([*ADD_AND_MUL, gradient(["a"], ["da"], "d", ["a", "b"])], "1 inputs, where xs and zs name 2 and 0 values"),
        ([*ADD_AND_MUL, gradient(["w"], ["da"], "d", ["w"])], "the derivative by 'w', which the file stores"),
        (
            [helper.make_node("CumSum", ["a", "axis"], ["y"]), gradient(["a"], ["da"], "y", ["a"])],
            "node 'slope'.*: cumsum has no rule for gradients",
        ),
    ],
)
def test_what_is_refused(nodes, message):
    stored = [numpy_helper.from_array(np.ones(2, np.float32), "w"), numpy_helper.from_array(np.array(0), "axis")]
    with pytest.raises(lw.ModelError, match=message):
        lw.from_onnx(model_of(nodes, {"a": [2], "b": [2]}, ["da"], stored))
