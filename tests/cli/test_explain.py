"""``loopwright explain``: of models and libraries, as text and as JSON."""

import json

import onnx
import pytest
from onnx import TensorProto, helper

import loopwright as lw
from loopwright.cli import main

TARGET = "x86-64-v3"


@pytest.fixture
def path(tmp_path):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["s"], name="product"), helper.make_node("Relu", ["s"], ["y"])]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 8]),
        helper.make_tensor_value_info("w", TensorProto.FLOAT, [8, 24]),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 24])]
    graph = helper.make_graph(nodes, "small", inputs, outputs)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, tmp_path / "small.onnx")
    return tmp_path / "small.onnx"


def output(capsys, *arguments):
    assert main(["explain", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_a_model_is_explained_for_a_target_and_shapes(path, capsys):
    out = output(capsys, path, "--target", TARGET, "--shape", "x=16,8")
    assert out == f"{lw.explain(path, TARGET, {'x': (16, 8)})}\n"
    assert "fused_nn_dense_relu, for product" in out
    assert "nn.dense(float32[16, 8], float32[8, 24], transposed=False)" in out


def test_records_are_taken_from_a_file(path, capsys, tmp_path):
    call = lw.nn.dense(lw.var("x", (16, 8)), lw.var("w", (8, 24)), transposed=False)
    lw.TuningRecords.append(tmp_path / "t.jsonl", lw.TuningRecord.of(call, TARGET, "dense.direct", [1e-3]))
    out = output(capsys, path, "--target", TARGET, "--shape", "x=16,8", "--records", tmp_path / "t.jsonl")
    assert "→ dense.direct (10): recorded on this target: 1.00 ms" in out


def test_decisions_of_a_record_are_shown_with_what_became_of_them(path, capsys, tmp_path):
    call = lw.nn.dense(lw.var("x", (16, 8)), lw.var("w", (8, 24)), transposed=False)
    decided = lw.TuningRecord.of(call, TARGET, "matmul.paneled", [1e-3], decisions={"rows": 64})
    unknown = lw.TuningRecord.of(call, TARGET, "matmul.paneled", [1e-6], decisions={"tile": 6})
    lw.TuningRecords.append(tmp_path / "t.jsonl", decided, unknown)
    out = output(capsys, path, "--target", TARGET, "--shape", "x=16,8", "--records", tmp_path / "t.jsonl")
    assert "→ matmul.paneled (10): recorded on this target: 1.00 ms" in out
    assert 'passed over the record of matmul.paneled {"tile":6}, 1.00 µs on this target: matmul.paneled has no' in out
    assert "what was recorded for matmul.paneled is not all legal here: rows is 14 here, as 64 is none of 1, 2, " in out
    assert 'with {"rows":64}' in out


def test_json_reads_back(path, capsys):
    data = json.loads(output(capsys, path, "--target", TARGET, "--json"))
    assert data == lw.explain(path, TARGET).to_json()


def test_a_library_is_explained_from_its_file(path, capsys, tmp_path):
    library = lw.compile(path, shapes={"x": (16, 8)}, jobs=1)
    library.save(tmp_path / "small.lwlib")
    assert output(capsys, tmp_path / "small.lwlib") == f"{lw.explain(library)}\n"


def test_what_was_fused_is_told_with_what_was_not(path, capsys):
    assert output(capsys, path, "--fusion", "--shape", "x=16,8") == "fused_nn_dense_relu: %0 nn.dense, %1 relu\n"
    data = json.loads(output(capsys, path, "--fusion", "--json"))
    assert data == lw.fusion_report(path).to_json()
    assert data["groups"][0]["calls"][1] == {"number": 1, "op": "relu"}


@pytest.mark.parametrize(("option", "message"), [("--target", "no cpu 'nowhere'"), ("--records", "nowhere")])
def test_the_fusion_is_that_for_the_target_and_by_the_records(path, capsys, option, message):
    assert main(["explain", str(path), "--fusion", option, "nowhere"]) == 1
    assert message in capsys.readouterr().err


def test_the_fusion_of_a_library_is_not_told(path, capsys, tmp_path):
    lw.compile(path, shapes={"x": (16, 8)}, jobs=1).save(tmp_path / "small.lwlib")
    assert main(["explain", str(tmp_path / "small.lwlib"), "--fusion"]) == 1
    assert "give the model it was made of" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_an_error(tmp_path, capsys):
    assert main(["explain", str(tmp_path / "none.onnx")]) == 1
    assert "none.onnx" in capsys.readouterr().err
