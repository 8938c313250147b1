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
PAIRS = graph([node("Identity", ["k"], ["k2"]), node("SequenceConstruct", ["x", "x"], ["b"])], ("i", "k"), ("k2", "b"))
PAIR_OF_ROWS = graph([node("SequenceConstruct", ["r", "r"], ["b"])], ("r",))
TREE_NUMBERS = ("tree_roots", "nodes_featureids", "nodes_truenodeids", "nodes_falsenodeids", "leaf_targetids")
TREE = {
    "n_targets": 1,
    "nodes_trueleafs": [1],
    "nodes_falseleafs": [1],
    **{name: [0] for name in TREE_NUMBERS},
    **{name: helper.make_tensor("t", FLOAT, [1], [0.5]) for name in ("nodes_splits", "leaf_weights")},
}

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
    "past of a length": (
        model(
            node("Attention", ["x", "w", "", "", "", "", "n"], ["y"], domain="com.microsoft", num_heads=2),
            inputs=[value(shape=(1, 3, 4)), value("n", (), TensorProto.INT32)],
            w=np.ones((4, 12), np.float32),
        ),
        "past_sequence_length, which is about buffers that past and present share, is not supported",
    ),
    "elements": (
        model(node("SequenceConstruct", ["x", "t"], ["y"]), inputs=[value(), value("t", kind=STRING)]),
        "the elements of a sequence are of one type, found numbers beside strings or maps",
    ),
    "inserted": (
        model(
            node("SequenceConstruct", ["t", "t"], ["s"]),
            node("SequenceInsert", ["s", "x"], ["y"]),
            inputs=[value(), value("t", kind=STRING)],
        ),
        "the elements of a sequence are of one type, found numbers beside strings or maps",
    ),
    "axes": (model(node("Unsqueeze", ["x", ""], ["y"])), "input 1 is missing"),
    "experts": (
        model(node("QMoE", ["x", "r", *[""] * 12], ["y"], domain="com.microsoft"), r=np.ones((3, 2), np.float32)),
        "a mixture without weights is not supported",
    ),
    "modes": (model(of_ml("TreeEnsemble", "x", **TREE)), "attribute nodes_modes is missing"),
    "rows of a loop": (
        model(node("Loop", ["n", ""], ["y"], body=PAIRS), inputs=[value(), value("n", (), INT64)]),
        "a body that stacks anything but tensors is not supported",
    ),
    "rows of iterations": (
        model(node("Loop", ["n", ""], ["y"], body=PAIRS), n=np.array(3)),
        "a body that stacks anything but tensors is not supported",
    ),
    "rows of a scan": (
        model(node("Scan", ["x"], ["y"], body=PAIR_OF_ROWS, num_scan_inputs=1)),
        "a body that gives a sequence of 2 tensors is not supported",
    ),
    "ranks": (
        model(
            node("GRU", ["x", "w", "r"], ["y"], hidden_size=4),
            inputs=[value(shape=(5, 2, 3)), value("w", ()), value("r", (1, 12, 4))],
        ),
        r"cannot be converted for a float32\[5, 2, 3\], a float32\[\], a float32\[1, 12, 4\]: IndexError",
    ),
    "padding by a window": (
        model(
            node("ConvTranspose", ["x", "w"], ["y"], auto_pad="SAME_UPPER"),
            inputs=[value(shape=(1, 3, 8, 8)), value("w", (3, 4, "height", "width"))],
        ),
        "auto_pad or output_shape with a weight whose window or channels are open is not supported",
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
