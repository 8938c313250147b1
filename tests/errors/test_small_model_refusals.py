"""Nodes of models that are refused for one attribute, input or body of theirs, in words that name it."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import loopwright as lw

FLOAT, INT64, BOOL, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING
node = helper.make_node


def value(name="x", shape=(3, 4), kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def named(name):
    return onnx.ValueInfoProto(name=name)


def graph(nodes, inputs=(), outputs=("b",)):
    return helper.make_graph(nodes, "body", [named(i) for i in inputs], [named(o) for o in outputs])


def model(*nodes, inputs=(), **constants):
    made = helper.make_graph(
        nodes,
        "test",
        inputs or [value()],
        [named("y")],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    domains = {"": 23, "ai.onnx.ml": 5, "com.microsoft": 1}
    return helper.make_model(made, opset_imports=[helper.make_opsetid(*each) for each in domains.items()])


def of_ml(op, *inputs, **attributes):
    return node(op, list(inputs), ["y"], domain="ai.onnx.ml", **attributes)


CONDITION = value("c", (), BOOL)
TWO = graph([node("Identity", ["x"], ["b"]), node("Identity", ["x"], ["d"])], outputs=("b", "d"))
ONE = graph([node("Identity", ["x"], ["b"])])
SEQUENCE = node("SequenceConstruct", ["x", "x"], ["s"])
SVM = {"coefficients": [1.0], "support_vectors": [1.0] * 4, "n_supports": 1, "kernel_type": "POLY"}
FLOAT16 = TensorProto.FLOAT16

CASES = {
    "branches": (
        model(node("If", ["c"], ["y"], then_branch=TWO, else_branch=ONE), inputs=[CONDITION, value()]),
        "its branches give 2 and 1 values",
    ),
    "sums of RMS": (
        model(node("RMSNormalization", ["x", "w"], ["y"], stash_type=FLOAT16), w=np.ones(4, np.float32)),
        "another stash_type than float",
    ),
    "classes": (
        model(node("Multinomial", ["x"], ["y"]), inputs=[value(shape=(2, 3, 4))]),
        r"it draws integers of rows \[batch, classes\], found int32 of float32\[2, 3, 4\]",
    ),
    "pads of axes": (model(node("Pad", ["x", "p", "", "a"], ["y"]), p=[1, 1, 1, 1], a=[0]), "axes need 2 pads"),
    "pads": (model(node("Pad", ["x", "p"], ["y"]), p=[1, 1]), "2 axes need 4 pads, found 2"),
    "case": (
        model(node("StringNormalizer", ["x"], ["y"], case_change_action="TITLE"), inputs=[value(kind=STRING)]),
        "the case_change_action 'TITLE'",
    ),
    "no strings": (model(node("StringNormalizer", ["x"], ["y"])), r"input 0 must be strings, found float32\[3, 4\]"),
    "kernel": (
        model(of_ml("SVMRegressor", "x", **SVM, rho=[0.0], kernel_params=[1.0])),
        "kernel_params are gamma, coef0 and degree, found 1 numbers",
    ),
    "rho": (model(of_ml("SVMRegressor", "x", **SVM)), "attribute rho is missing"),
    "sequences": (
        model(SEQUENCE, node("SequenceMap", ["s"], ["y"], body=graph([node("Add", ["a", "e"], ["b"])], ("a", "e")))),
        "its body takes 2 values, it has 1 inputs",
    ),
    "lengths": (
        model(
            SEQUENCE,
            node("SequenceConstruct", ["x"], ["t"]),
            node("SequenceMap", ["s", "t"], ["y"], body=graph([node("Add", ["a", "e"], ["b"])], ("a", "e"))),
        ),
        "its sequences have different lengths, 1, 2",
    ),
    "shape": (model(node("Relu", ["x"], ["y"]), inputs=[value(shape=None)]), "is declared without a shape"),
    "keys": (
        model(
            of_ml("CastMap", "m"),
            inputs=[
                helper.make_value_info(
                    "m", helper.make_map_type_proto(TensorProto.INT32, helper.make_tensor_type_proto(FLOAT, []))
                )
            ],
        ),
        "are of INT32; int64 and strings are supported",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_error_names_what_is_wrong(name):
    made, problem = CASES[name]
    with pytest.raises(lw.ModelError, match=problem):
        lw.from_onnx(made)


def test_two_shapes_of_one_dimension():
    made = model(node("Add", ["x", "z"], ["y"]), inputs=[value(shape=("n", 4)), value("z", ("n", 4))])
    with pytest.raises(lw.ModelError, match="the shapes given make dimension 'n' both 2 and 3"):
        lw.from_onnx(made, shapes={"x": (2, 4), "z": (3, 4)})
