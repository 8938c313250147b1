"""Sequences and optionals that do not fit: what is said of them."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import loopwright as lw

FLOAT = TensorProto.FLOAT


def model_of(nodes, inputs, outputs, stored=None):
    constants = [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in (stored or {}).items()]
    infos = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph(nodes, "g", inputs, infos, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def sequence(name, shape=None):
    return helper.make_value_info(name, helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, shape)))


def at(position=None):
    given = [sequence("s", ["n", 2])]
    if position is None:
        given.append(helper.make_tensor_value_info("p", TensorProto.INT64, []))
    node = helper.make_node("SequenceAt", ["s", "p"], ["y"], name="pick")
    return model_of([node], given, ["y"], {} if position is None else {"p": np.array(position)})


def raises(message, error=lw.ModelError):
    return pytest.raises(error, match=message)


def test_a_sequence_whose_rank_is_not_declared_needs_shapes():
    model = model_of([helper.make_node("SequenceLength", ["s"], ["n"])], [sequence("s")], ["n"])
    with raises(r"rank is not declared: give the shapes.*\{'s': \[\(3,\), \(4,\)\]\}"):
        lw.from_onnx(model)


def test_shapes_of_a_sequence_are_a_list_of_shapes():
    for given in (3, "ab"):
        with raises("it is a sequence, write the shapes of its tensors"):
            lw.from_onnx(at(), {"s": given})
    with raises("gives the input 's.0' the shape"):
        lw.from_onnx(at(), {"s": (3, 2)})


def test_a_position_outside_of_a_known_sequence():
    with raises(r"node 'pick' \(SequenceAt\): the position 2 lies outside of a sequence of 2 tensors"):
        lw.from_onnx(at(2), {"s": [(1, 2), (1, 2)]})


def test_a_position_outside_of_a_sequence_of_a_run():
    engine = lw.Engine(lw.compile(at(), jobs=1, progress=False))
    x = np.zeros((1, 2), np.float32)
    for position in (1, -2):
        with raises("the position in a sequence", lw.RuntimeArgumentError):
            engine({"s": [x], "p": np.array(position)})
    assert engine({"s": [x], "p": np.array(-1)})[0].shape == (1, 2)


def test_a_tensor_where_a_sequence_is_wanted():
    given = [helper.make_tensor_value_info("x", FLOAT, [2])]
    with raises(r"input 0, 'x', should be a sequence, it is a float32\[2\]"):
        lw.from_onnx(model_of([helper.make_node("SequenceLength", ["x"], ["n"])], given, ["n"]))


def test_a_sequence_where_a_tensor_is_wanted():
    with raises(r"input 0, 's', should be a tensor, it is a sequence of 1 tensor"):
        lw.from_onnx(model_of([helper.make_node("Relu", ["s"], ["y"])], [sequence("s", [2])], ["y"]), {"s": [(2,)]})


def test_the_value_of_an_empty_optional():
    kind = helper.make_tensor_type_proto(FLOAT, [2])
    nodes = [
        helper.make_node("Optional", [], ["o"], type=kind),
        helper.make_node("OptionalGetElement", ["o"], ["y"]),
    ]
    with raises("takes the value of an optional that is empty"):
        lw.from_onnx(model_of(nodes, [], ["y"]))


def test_tensors_of_different_ranks_at_a_position_of_the_run():
    nodes = [
        helper.make_node("SequenceConstruct", ["a", "b"], ["s"]),
        helper.make_node("SequenceAt", ["s", "p"], ["y"]),
    ]
    given = [
        helper.make_tensor_value_info("a", FLOAT, [2]),
        helper.make_tensor_value_info("b", FLOAT, [2, 2]),
        helper.make_tensor_value_info("p", TensorProto.INT64, []),
    ]
    with raises("of different ranks or dtypes"):
        lw.from_onnx(model_of(nodes, given, ["y"]))


def test_branches_of_different_ranks():
    def branch(op, **attributes):
        node = helper.make_node(op, ["x", *attributes.pop("more", [])], ["y"], **attributes)
        return helper.make_graph([node], "b", [], [onnx.ValueInfoProto(name="y")])

    node = helper.make_node("If", ["c"], ["z"], then_branch=branch("Relu"), else_branch=branch("ReduceSum", keepdims=0))
    given = [
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
        helper.make_tensor_value_info("x", FLOAT, [2, 2]),
    ]
    with raises(r"a float32\[2, 2\] in one branch and a float32\[\] in the other"):
        lw.from_onnx(model_of([node], given, ["z"]))


def test_values_of_another_form_than_the_model_takes():
    model = model_of([helper.make_node("SequenceInsert", ["s", "t"], ["y"])],
                     [sequence("s", ["n", 2]), helper.make_tensor_value_info("t", FLOAT, [1, 2])], ["y"])  # fmt: skip
    t = np.zeros((1, 2), np.float32)
    engine = lw.Engine(lw.compile(model, jobs=1, progress=False))
    known = lw.Engine(lw.compile(model, shapes={"s": [(1, 2)]}, jobs=1, progress=False))
    for given, message in (
        ({"s": t, "t": t}, "input s should be a list of arrays, found a value of type ndarray"),
        ({"s": [t.astype(np.float64)], "t": t}, r"input s\[0\] should have dtype float32"),
        ({"s": [t[0]], "t": t}, r"input s\[0\] should have the extents \(any, any\), found \(2,\)"),
        ({"s": [t]}, "takes a mapping with the inputs s, t, or a list of as many"),
        ([t], "takes a mapping with the inputs s, t, or a list of as many"),
    ):
        with raises(message, lw.RuntimeArgumentError):
            engine(given)
    with raises("is a list of 1 array in the model as it was compiled, found 2", lw.RuntimeArgumentError):
        known({"s": [t, t], "t": t})
    with raises("leave out= out", lw.RuntimeArgumentError):
        known({"s": [t], "t": t}, out=[t.copy(), t.copy()])
    with raises("has no input 'u'", lw.RuntimeArgumentError):
        engine.set_input("u", t)
