"""Outputs that Python sees as strings and maps, and native code as numbers."""

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_cases import floats, ints, make_model, ml_case, model_of

import loopwright as lw
from loopwright.cli import main

SCORES = np.array([[0.25, 0.75], [0.5, 0.125]], np.float32)
NAMES = ["cat", "dog", "emu"]
CASES = [
    ml_case("ZipMap", (1,), SCORES, classlabels_strings=NAMES[:2]),
    ml_case("LabelEncoder", (1,), ints(2, 0, 7, -1), classes_strings=NAMES, default_string="none"),
]
MAPS, ENCODER = (model_of(case, 1) for case in CASES)


def found(model, *inputs):
    return lw.Engine(lw.compile(model))(inputs)


def classifier(*more):
    """A linear classifier of three names, whose labels and scores other nodes may take."""
    node = helper.make_node(
        "LinearClassifier",
        ["x"],
        ["label", "scores"],
        domain="ai.onnx.ml",
        coefficients=[1.0, 0, 0, 1, -1, -1],
        intercepts=[0.0, 0, 0],
        classlabels_strings=NAMES,
    )
    outputs = [more[-1].output[0]] if more else ["label", "scores"]
    return make_model([node, *more], {"x": (np.float32, ("n", 2))}, outputs, 1, domain="ai.onnx.ml")


X = np.array([[3, 1], [-2, -2], [0, 5]], np.float32)


def test_maps_have_the_names_or_numbers_of_classes():
    assert found(MAPS, SCORES) == [[{"cat": 0.25, "dog": 0.75}, {"cat": 0.5, "dog": 0.125}]]
    numbered = model_of(ml_case("ZipMap", (1,), SCORES, classlabels_int64s=[7, -3]), 1)
    assert found(numbered, SCORES)[0][1] == {7: 0.5, -3: 0.125}


def test_labels_are_arrays_of_strings():
    (names,) = found(ENCODER, ints(2, 0, 7, -1))
    assert names.dtype == object
    assert names.tolist() == ["emu", "cat", "none", "none"]
    label, scores = found(classifier(), X)
    assert label.tolist() == ["cat", "emu", "dog"]
    np.testing.assert_array_equal(scores, np.stack([X[:, 0], X[:, 1], -X.sum(1)], 1))


@pytest.mark.parametrize("version", [2, 4])
def test_keys_become_strings(version):
    more = {"values_strings": NAMES, "default_string": "other"}
    case = ml_case("LabelEncoder", (version,), ints(), keys_int64s=[5, 6, 1000], **more)
    assert found(model_of(case, version), ints())[0].tolist() == []
    case = ml_case("LabelEncoder", (version,), ints(6, 1, 1000), keys_int64s=[5, 6, 1000], **more)
    assert found(model_of(case, version), ints(6, 1, 1000))[0].tolist() == ["dog", "other", "emu"]


def test_forms_stay_in_a_saved_library(tmp_path):
    lw.compile(classifier()).save(tmp_path / "model.lwlib")
    label, _ = lw.Engine(lw.load(tmp_path / "model.lwlib"))([X])
    assert label.tolist() == ["cat", "emu", "dog"]


def test_buffers_of_callers_and_bound_engines_have_the_numbers():
    engine = lw.Engine(lw.compile(classifier()))
    buffers = [np.empty(3, np.int64), np.empty((3, 3), np.float32)]
    engine([X], out=buffers)
    assert buffers[0].tolist() == [0, 2, 1]
    assert engine.bind([X])()[0].tolist() == [0, 2, 1]
    request = engine.init().request()
    request.set_input("x", X)
    request.run()
    assert request.get_output("label").tolist() == ["cat", "emu", "dog"]


def test_strings_can_be_moved():
    columns = helper.make_node("Identity", ["label"], ["same"])
    assert found(classifier(columns), X)[0].tolist() == ["cat", "emu", "dog"]
    picked = helper.make_node("ArrayFeatureExtractor", ["names", "at"], ["picked"], domain="ai.onnx.ml")
    model = make_model([picked], {"at": (np.int64, ("n",))}, ["picked"], 1, domain="ai.onnx.ml")
    model.graph.initializer.append(helper.make_tensor("names", TensorProto.STRING, [3], [n.encode() for n in NAMES]))
    assert found(model, ints(1, 1, 0))[0].tolist() == [["dog", "dog", "cat"]]


@pytest.mark.parametrize("operator", ["Concat", "Where"])
def test_labels_of_several_lists_become_those_of_one(operator):
    """So that no run writes the bytes of all, as where each tree of a forest has its own list of paths."""
    nodes = [
        helper.make_node("LabelEncoder", ["x"], [name], domain="ai.onnx.ml", keys_int64s=[0, 1], default_string="?",
                         values_strings=names)
        for name, names in {"a": NAMES[:2], "b": ["x", "y"], "c": NAMES[:2]}.items()
    ]  # fmt: skip
    if operator == "Concat":
        nodes.append(helper.make_node("Concat", ["a", "b", "c"], ["joined"], axis=0))
        positions, expected = [0, 1, 2, 3, 4, 5, 0, 1, 2], ["cat", "dog", "?", "x", "y", "?", "cat", "dog", "?"]
    else:
        nodes.append(helper.make_node("Cast", ["x"], ["chosen"], to=TensorProto.BOOL))
        nodes.append(helper.make_node("Where", ["chosen", "a", "b"], ["joined"]))
        positions, expected = [3, 1, 2], ["x", "dog", "?"]
    model = make_model(nodes, {"x": (np.int64, ("n",))}, ["joined"], 2, domain="ai.onnx.ml")
    engine = lw.Engine(lw.compile(model))
    assert engine([ints(0, 1, 7)])[0].tolist() == expected
    buffer = np.empty(len(expected), np.int64)
    engine([ints(0, 1, 7)], out=[buffer])
    assert buffer.tolist() == positions


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (helper.make_node("Add", ["label", "label"], ["y"]), "strings are not the inputs of Add"),
        (helper.make_node("TopK", ["label", "label"], ["y", "z"]), "strings are not the inputs of TopK"),
    ],
)
def test_what_looks_at_strings_is_refused(node, message):
    with pytest.raises(lw.ModelError, match=message):
        lw.from_onnx(classifier(node))


@pytest.mark.parametrize("columns", [1, 2, 16, 17])
@pytest.mark.parametrize("rows", [0, 1, 100])
def test_each_row_of_scores_is_a_map_however_many_there_are(rows, columns):
    scores = floats(rows, columns)
    model = model_of(ml_case("ZipMap", (1,), scores, classlabels_int64s=[3 * k for k in range(columns)]), 1)
    (maps,) = lw.Engine(lw.compile(model))([scores])
    assert maps == [{3 * k: float(score) for k, score in enumerate(row)} for row in scores]


def test_maps_may_have_any_texts_for_keys():
    names = ['it\'s "quoted"', "{brace}\n\\", "größe", "", "__import__('os')"]
    scores = floats(2, len(names))
    (maps,) = found(model_of(ml_case("ZipMap", (1,), scores, classlabels_strings=names), 1), scores)
    assert maps == [dict(zip(names, map(float, row), strict=True)) for row in scores]


def test_maps_of_other_widths_are_refused():
    with pytest.raises(lw.ModelError, match="there are 3 class labels for 2 columns"):
        lw.from_onnx(model_of(ml_case("ZipMap", (1,), SCORES, classlabels_strings=NAMES), 1))


@pytest.mark.parametrize("model", [classifier(), MAPS], ids=["strings", "maps"])
def test_the_command_line_checks_strings_and_maps(model, tmp_path, capsys):
    model.ir_version = 10
    for value in model.graph.output:
        kind = TensorProto.STRING if value.name == "label" else TensorProto.FLOAT
        if value.name in ("label", "scores"):
            value.CopyFrom(helper.make_tensor_value_info(value.name, kind, None))
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    assert main(["run", str(path), "--check", "--shape", f"{model.graph.input[0].name}=2,2"]) == 0
    assert "checked: " in capsys.readouterr().out
