"""Extents that a model leaves open: which numbers they get, by what the dimensions are, and what is said of it."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import loopwright as lw
from loopwright.artifact.extents import Formula
from loopwright.cli import main
from loopwright.cli.default_shapes import candidate_shapes, shape_options
from loopwright.cli.model_inputs import ModelInput, inputs_of_graph


def inputs(**shapes):
    return [ModelInput(name, "float32", extents, {}) for name, extents in shapes.items()]


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def weight(name, *shape):
    return numpy_helper.from_array(np.random.default_rng(0).standard_normal(shape).astype(np.float32), name)


def model(nodes, fed, given, weights=()):
    graph = helper.make_graph(nodes, "m", fed, given, list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def convolution(*batch_and_image, channels=3, kernel=3):
    """A convolution, whose input has these extents beside the channels."""
    batch, *image = batch_and_image
    node = helper.make_node("Conv", ["x", "w"], ["y"])
    return model(
        [node], [value("x", [batch, channels, *image])], [value("y", None)], [weight("w", 4, 3, kernel, kernel)]
    )


def run(capsys, path, made, *arguments, command="run"):
    """The parsed JSON, and what the command said on the standard error."""
    onnx.save(made, path)
    assert main([command, str(path), *arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    return json.loads(out), err


@pytest.mark.parametrize(
    ("extents", "shape"),
    [
        (("batch_size", 3, "height", "width"), (1, 3, 224, 224)),
        (("N", 3, "H", "W"), (1, 3, 224, 224)),
        (("unk__214", 3, "unk__215", "unk__216"), (1, 3, 224, 224)),
        (("p", "q", "r", "u"), (1, 3, 224, 224)),
        (("p", "q", "r", 3), (1, 224, 224, 3)),
        (("p", 32, "r", 3), (1, 32, 224, 3)),
        ((3, "p", "q"), (3, 224, 224)),
        (("p", 64, "q", "width"), (1, 64, 20, 20)),
        (("batch", "sequence"), (1, 128)),
        (("p", "q"), (1, 128)),
        (("p", 80, "frames"), (1, 80, 128)),
        (("seq_len", "batch", 64), (128, 1, 64)),
        (("batch", 12, "past_sequence_length", 64), (1, 12, 128, 64)),
        (("p", 1, "q", "r", "u"), (1, 1, 16, 16, 16)),
        (("p",), (1,)),
    ],
    ids=str,
)
def test_an_open_dimension_gets_the_usual_extent_of_its_name_or_place(extents, shape):
    assert next(candidate_shapes(inputs(x=extents), {})) == {"x": shape}


def test_a_shape_that_is_known_is_no_matter_of_choice():
    assert list(candidate_shapes(inputs(x=(1, 3)), {})) == [{}]


def test_what_is_given_holds_for_all_dimensions_of_the_same_name():
    both = inputs(ids=("batch", "seq"), mask=("batch", "seq"), scale=("batch",))
    assert next(candidate_shapes(both, {"ids": (4, None)})) == {"ids": (4, 128), "mask": (4, 128), "scale": (4,)}
    assert all(shapes["mask"][0] == 4 for shapes in candidate_shapes(both, {"ids": (4, None)}))


def test_names_that_are_sums_follow_their_parts():
    both = inputs(x=("batch", "seq"), mask=("batch", "past + seq + 1"), past=("batch", "past"))
    assert next(candidate_shapes(both, {"past": (2, 7), "x": (2, 5)})) == {"x": (2, 5), "mask": (2, 13), "past": (2, 7)}
    assert next(candidate_shapes(inputs(x=("batch", "a + b")), {})) == {"x": (1, 128)}


def test_formulas_of_a_library_follow_their_dimensions():
    found = candidate_shapes(inputs(x=("n", "seq"), y=(Formula("*", "seq", 2),)), {"x": (1, 10)})
    assert next(found) == {"x": (1, 10), "y": (20,)}


def test_further_candidates_differ_by_role_and_by_dimension():
    found = [shapes["x"] for shapes in candidate_shapes(inputs(x=("batch", 3, "height", "width")), {})]
    assert (1, 3, 640, 640) in found
    assert (1, 3, 48, 224) in found
    assert (2, 3, 224, 224) in found
    assert len(found) < 40


@pytest.mark.parametrize(
    ("nodes", "shape", "weights", "expected"),
    [
        ([("Conv", ["x", "w"])], ["a", "b", "c", "d"], {"w": (4, 5, 3, 3)}, {1: 5}),
        ([("Conv", ["x", "w"])], ["a", "b", "c"], {"w": (4, 80, 3)}, {1: 80}),
        ([("Gemm", ["x", "w"])], ["a", "b"], {"w": (13, 4)}, {1: 13}),
        ([("MatMul", ["x", "w"])], ["a", "b", "c"], {"w": (7, 4)}, {2: 7}),
        ([("MatMul", ["w", "x"])], ["a", "b"], {"w": (7, 4)}, {}),
        ([("Cast", ["x"]), ("Sub", ["0", "m"]), ("Gemm", ["1", "w"])], ["a", "b"], {"w": (9, 4), "m": (9,)}, {1: 9}),
        ([("Add", ["x", "x"]), ("Gemm", ["0", "w"])], ["a", "b"], {"w": (9, 4)}, {1: 9}),
        ([("Add", ["x", "m"]), ("Gemm", ["0", "w"])], ["a"], {"w": (9, 4), "m": (5, 9)}, {}),
        ([("Transpose", ["x"]), ("MatMul", ["0", "w"])], ["a", "b"], {"w": (9, 4)}, {0: 9}),
        ([("Reshape", ["x", "w"]), ("Gemm", ["0", "v"])], ["a", "b"], {"w": (2,), "v": (9, 4)}, {}),
    ],
    ids=lambda value: str(value)[:40],
)
def test_weights_tell_the_extents_that_they_multiply(nodes, shape, weights, expected):
    made = [helper.make_node(op, names, [str(k)]) for k, (op, names) in enumerate(nodes)]
    graph = model(
        made, [value("x", shape)], [value(str(len(made) - 1), None)], [weight(n, *s) for n, s in weights.items()]
    )
    (found,) = inputs_of_graph(graph.graph)
    assert found.asked == expected
    chosen = next(candidate_shapes([found], {}))["x"]
    assert all(chosen[axis] == number for axis, number in expected.items())


def test_run_fills_in_what_is_open_and_says_how_to_repeat_it(tmp_path, capsys):
    told, err = run(capsys, tmp_path / "m.onnx", convolution("batch", "height", "width"))
    assert told["outputs"][0]["shape"] == [1, 4, 222, 222]
    assert err == "loopwright: extents that are open are taken as --shape x=1,3,224,224\n"
    again, err = run(capsys, tmp_path / "m.onnx", convolution("batch", "height", "width"), "--shape", "x=1,3,224,224")
    assert again["outputs"][0]["shape"] == [1, 4, 222, 222]
    assert err == ""


def test_other_extents_are_tried_where_a_model_refuses_the_usual_ones(tmp_path, capsys):
    nodes = [helper.make_node("Reshape", ["x", "s"], ["r"]), helper.make_node("MatMul", ["r", "w"], ["y"])]
    shape = numpy_helper.from_array(np.array([0, 784], np.int64), "s")
    made = model(nodes, [value("x", ["n", 1, "h", "w"])], [value("y", None)], [shape, weight("w", 784, 10)])
    told, err = run(capsys, tmp_path / "m.onnx", made)
    assert told["outputs"][0]["shape"] == [1, 10]
    assert "--shape x=1,1,28,28" in err


def test_a_question_mark_keeps_an_extent_open(tmp_path, capsys):
    path, library = tmp_path / "m.onnx", tmp_path / "m.lwlib"
    onnx.save(convolution("batch", "height", "width"), path)
    assert main(["compile", str(path), "--shape", "x=?,3,32,32", "-o", str(library)]) == 0
    assert lw.load(library).inputs[0].shape == ("batch", 3, 32, 32)
    capsys.readouterr()
    told, err = run(capsys, path, convolution("batch", "height", "width"), "--shape", "x=?,3,?,?")
    assert told["outputs"][0]["shape"] == [1, 4, 222, 222]
    assert "--shape x=1,3,224,224" in err
    told, err = run(capsys, path, convolution("batch", "height", "width"), "--shape", "x=?,3,12,12")
    assert told["outputs"][0]["shape"] == [1, 4, 10, 10]


def test_extents_of_arrays_are_known(tmp_path, capsys):
    np.save(tmp_path / "a.npy", np.zeros((6, 5), np.float32))
    nodes = [helper.make_node("Add", ["a", "b"], ["y"])]
    made = model(nodes, [value("a", ["n", "m"]), value("b", ["n", "m"])], [value("y", None)])
    told, err = run(capsys, tmp_path / "m.onnx", made, "--input", f"a={tmp_path / 'a.npy'}")
    assert told["outputs"][0]["shape"] == [6, 5]
    assert "--shape b=6,5" in err


def test_a_library_runs_on_the_usual_extents_that_it_allows(tmp_path, capsys):
    node = helper.make_node("Conv", ["x", "w"], ["y"])
    made = model([node], [value("x", ["batch", 3, "seq"])], [value("y", None)], [weight("w", 4, 3, 300)])
    lw.compile(made).save(tmp_path / "m.lwlib")
    assert main(["run", str(tmp_path / "m.lwlib"), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["outputs"][0]["shape"] == [1, 4, 213]
    assert "--shape x=1,3,512" in err


def test_an_error_that_no_shape_mends_is_told_as_it_is(tmp_path, capsys):
    node = helper.make_node("TfIdfVectorizer", ["x"], ["y"])
    onnx.save(model([node], [value("x", ["n", "m"])], [value("y", None)]), tmp_path / "m.onnx")
    assert main(["run", str(tmp_path / "m.onnx")]) == 1
    err = capsys.readouterr().err
    assert "TfIdfVectorizer" in err
    assert "on the command line" not in err


def test_a_batch_leaves_the_other_extents_to_their_roles(tmp_path, capsys):
    options = ["--batch", "3", "--warmup", "0", "--seconds", "0"]
    _, err = run(capsys, tmp_path / "m.onnx", convolution("batch", "height", "width"), *options, command="bench")
    assert "--shape x=3,3,224,224" in err


@pytest.mark.parametrize(
    "command", [["dump", "--stage", "graph"], ["explain"], ["explain", "--fusion"], ["compile", "-o"]]
)
def test_what_a_model_cannot_leave_open_is_filled_in(tmp_path, capsys, command):
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], output_shape=[300, 300], auto_pad="SAME_UPPER")
    made = model([node], [value("x", ["n", 3, "h", "w"])], [value("y", None)], [weight("w", 3, 4, 3, 3)])
    onnx.save(made, tmp_path / "m.onnx")
    extra = [str(tmp_path / "m.lwlib")] if command[0] == "compile" else []
    name, *options = command
    assert main([name, str(tmp_path / "m.onnx"), *options, *extra]) == 0
    assert "--shape x=1,3,224,224" in capsys.readouterr().err
    assert main([name, str(tmp_path / "m.onnx"), *options, *extra, "--shape", "x=?,3,?,32"]) == 1
    assert "(on the command line: --shape 'x=?,3,224,32')" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["dump", "--stage", "graph"], ["explain"]])
def test_what_can_stay_open_stays_open(tmp_path, capsys, command):
    onnx.save(convolution("batch", "height", "width"), tmp_path / "m.onnx")
    name, *options = command
    assert main([name, str(tmp_path / "m.onnx"), *options]) == 0
    assert capsys.readouterr().err == ""


def test_shapes_of_no_input_or_of_another_rank_show_the_inputs(tmp_path, capsys):
    path = tmp_path / "m.onnx"
    onnx.save(convolution("batch", "height", None), path)
    shown = "x: float32[batch, 3, height, ?]"
    for command in ("run", "dump"):
        assert main([command, str(path), "--shape", "y=1,3,8,8"]) == 1
        assert f"--shape: {path} has no input 'y'; its inputs are {shown}" in capsys.readouterr().err
        assert main([command, str(path), "--shape", "x=1,3"]) == 1
        assert f"--shape: 2 extents are given for the input {shown}, which has 4" in capsys.readouterr().err
    assert main(["run", str(path), "--input", "y=random"]) == 1
    assert f"the model has no input 'y'; its inputs are {shown}" in capsys.readouterr().err


def test_an_input_of_any_rank_needs_a_shape(tmp_path, capsys):
    node = helper.make_node("Add", ["x", "z"], ["y"])
    made = model([node], [value("x", None), value("z", ["n", 8])], [value("y", None)])
    told, err = run(capsys, tmp_path / "m.onnx", made, "--shape", "x=4,8", "--shape", "z=4,?")
    assert told["outputs"][0]["shape"] == [4, 8]
    assert err == "loopwright: extents that are open are taken as --shape z=4,8\n"
    assert main(["run", str(tmp_path / "m.onnx")]) == 1
    assert "--shape z=1,8 --shape x=…, with as many extents as it is to have" in capsys.readouterr().err


def test_options_are_quoted_for_the_shell():
    assert shape_options({"x:0": (1, 3), "a b": (None, 2)}) == "--shape x:0=1,3 --shape 'a b=?,2'"
