"""Maps as inputs: a row of features from a dict, against onnxruntime and scikit-learn; what is refused."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx_cases import ml_case

import loopwright as lw

DOMAIN = "ai.onnx.ml"
KINDS = {int: TensorProto.INT64, str: TensorProto.STRING, float: TensorProto.FLOAT, np.float64: TensorProto.DOUBLE}


def model_of(op, key, value, **attributes):
    """A model with one operator on a map from ``key`` to ``value``."""
    proto = helper.make_value_info("x", helper.make_map_type_proto(
        KINDS[key], helper.make_tensor_type_proto(KINDS[value], [])))  # fmt: skip
    node = helper.make_node(op, ["x"], ["y"], domain=DOMAIN, **attributes)
    graph = helper.make_graph([node], "map", [proto], [helper.make_empty_tensor_value_info("y")])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(DOMAIN, 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def in_onnxruntime(model, given):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": given})[0]


NAMES, NUMBERS = ["cat", "dög", "emu", ""], [7, -2, 40, 1000]
MODELS = {
    "strings": (model_of("DictVectorizer", str, float, string_vocabulary=NAMES), [
        {"emu": 2.5, "cat": -1.0, "bird": 9.0}, {}, {"": 1.0}, dict.fromkeys(NAMES, 0.5)]),
    "doubles": (model_of("DictVectorizer", str, np.float64, string_vocabulary=NAMES), [{"emu": 0.1, "dög": 3.0}]),
    "whole": (model_of("DictVectorizer", str, int, string_vocabulary=NAMES), [{"emu": 1 << 40, "bird": 2}]),
    "integers": (model_of("DictVectorizer", int, float, int64_vocabulary=NUMBERS), [
        {7: 1.0, 1000: 2.0, 3: 4.0}, {}, {-2: 0.5}]),
    "neighbours": (model_of("DictVectorizer", int, float, int64_vocabulary=[3, 1, 2]), [{1: 1.0, 2: 2.0, 9: 4.0}]),
    "dense": (model_of("CastMap", int, float), [{5: 1.5, -1: 2.5, 3: 0.25}]),
    "dense whole": (model_of("CastMap", int, float, cast_to="TO_INT64"), [{5: 1.5, -1: 2.5}]),
    "dense strings": (model_of("CastMap", int, str, cast_to="TO_STRING"), [{5: "a", -1: "öb"}]),
    "sparse": (model_of("CastMap", int, float, map_form="SPARSE", max_map=6), [{5: 1.5, 0: 2.5}, {2: 1.0}]),
}  # fmt: skip

CASES = [ml_case(model.graph.node[0].op_type, (1,)) for model, _ in MODELS.values()]
"""What is tested here, for the test of all converters."""


def expected(model, entries):
    """What the standard says, in the dtype of the map's values or of what they are cast to."""
    node = model.graph.node[0]
    given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    kind = model.graph.input[0].type.map_type.value_type.tensor_type.elem_type
    if node.op_type == "DictVectorizer":
        keys = [k.decode() for k in given.get("string_vocabulary", [])] or given["int64_vocabulary"]
        return np.array([[entries.get(key, 0) for key in keys]], helper.tensor_dtype_to_np_dtype(kind))
    target = {b"TO_INT64": np.int64, b"TO_STRING": object}.get(given.get("cast_to"), np.float32)
    if given.get("map_form") == b"SPARSE":
        return np.array([[entries.get(key, 0) for key in range(given["max_map"])]], target)
    return np.array([[entries[key] for key in sorted(entries)]]).astype(target)


@pytest.mark.parametrize("name", MODELS)
def test_maps_give_what_the_standard_says(name):
    model, given = MODELS[name]
    engine = lw.Engine(lw.compile(model))
    value = model.graph.input[0].type.map_type.value_type.tensor_type.elem_type
    for entries in given:
        (found,) = engine({"x": entries})
        wanted = [expected(model, entries)]
        if entries and value == TensorProto.FLOAT:  # what onnxruntime's Python takes
            wanted.append(in_onnxruntime(model, entries))
        for each in wanted:
            assert found.dtype == each.dtype
            np.testing.assert_array_equal(found, each)


def test_the_arrays_of_a_map_serve_as_well():
    engine = lw.Engine(lw.compile(MODELS["integers"][0]))
    assert engine.library.inputs.names == ("x.keys", "x.values")
    (found,) = engine({"x.keys": np.array([-2, 7]), "x.values": np.array([3, 4], np.float32)})
    np.testing.assert_array_equal(found, [[4.0, 3.0, 0.0, 0.0]])


@pytest.mark.parametrize(
    ("name", "given", "problem"),
    [
        ("strings", [1.0, 2.0], "should be a dict, found a value of type list"),
        ("strings", {1: 2.0}, "has keys that are strings, found 1"),
        ("integers", {"a": 2.0}, "has keys that are integers, found 'a'"),
        ("integers", {1: "b"}, "numbers of float32 as values"),
        ("integers", {1: [1.0, 2.0]}, "numbers of float32 as values"),
        ("integers", {None: 1.0}, "has keys that are integers, found None"),
        ("integers", {1 << 70: 1.0}, "should have keys of int64"),
        ("dense strings", {1: 2.0}, "should have strings as values, found 2.0"),
        ("dense strings", {1: 0}, "should have strings as values, found 0"),
    ],
)
def test_what_is_no_such_map_is_told(name, given, problem):
    with pytest.raises(lw.RuntimeArgumentError, match=problem):
        lw.Engine(lw.compile(MODELS[name][0]))({"x": given})


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (model_of("DictVectorizer", str, float, int64_vocabulary=NUMBERS), "are of two types"),
        (model_of("DictVectorizer", str, float), "either string_vocabulary or int64_vocabulary"),
        (model_of("DictVectorizer", int, str, int64_vocabulary=NUMBERS), "a map whose values are strings"),
        (model_of("CastMap", str, float), "a map whose keys are strings"),
        (model_of("CastMap", int, float, cast_to="TO_STRING"), "TO_STRING of values that are numbers"),
        (model_of("CastMap", int, str, cast_to="TO_STRING", map_form="SPARSE", max_map=4), "a sparse map of strings"),
    ],
)
def test_what_is_refused(model, problem):
    with pytest.raises(lw.ModelError, match=problem):
        lw.compile(model)


def test_a_map_is_no_input_of_operators_on_tensors():
    model = model_of("DictVectorizer", int, float, int64_vocabulary=NUMBERS)
    model.graph.node[0].CopyFrom(helper.make_node("Relu", ["x"], ["y"]))
    with pytest.raises(lw.ModelError, match="should be a tensor, it is a map"):
        lw.compile(model)


def test_a_map_in_one_branch_and_an_optional_in_the_other_is_refused():
    model = model_of("DictVectorizer", int, float, int64_vocabulary=NUMBERS)
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    empty = helper.make_node("Optional", [], ["t"], type=tensor)
    then = helper.make_graph([empty], "then", [], [helper.make_empty_tensor_value_info("t")])
    same = helper.make_node("Identity", ["x"], ["e"])
    otherwise = helper.make_graph([same], "else", [], [helper.make_empty_tensor_value_info("e")])
    node = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=otherwise)
    model.graph.node[0].CopyFrom(node)
    model.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    with pytest.raises(lw.ModelError, match="empty in one branch and a map in the other"):
        lw.compile(model)
