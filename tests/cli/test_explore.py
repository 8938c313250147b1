"""``loopwright explore``: pages of Python files and of models, and what it refuses."""

import base64
import json
import re
import zlib

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import loopwright as lw
from loopwright.cli import main

SCHEDULES = """
import loopwright as lw
from loopwright import te

X = te.placeholder((6, 16), name="X")
Y = te.compute((6, 16), lambda i, j: X[i, j] * 2.0, name="Y")
plain, vectors = lw.create_schedule(Y), lw.create_schedule(Y)
vectors[Y].vectorize(Y.op.axis[1])
"""
PICKED = """
schedules = {"in vectors": vectors}
peers = {"numpy": lambda x: x * 2}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explore")
    weight = np.random.default_rng(0).standard_normal((8, 5)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["s"]), helper.make_node("Softmax", ["s"], ["y"])]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["N", e]) for n, e in (("x", 8), ("y", 5))]
    graph = helper.make_graph(nodes, "small", values[:1], values[1:], [numpy_helper.from_array(weight, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "small.onnx")
    lw.compile(model, jobs=1).save(folder / "small.lwlib")
    (folder / "two-schedules.py").write_text(SCHEDULES)
    (folder / "picked.py").write_text(SCHEDULES + PICKED)
    return folder


def explored(capsys, *arguments):
    assert main(["explore", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def failure(capsys, *arguments):
    assert main(["explore", *map(str, arguments)]) == 1
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return err


def data_of(page):
    packed = re.search(r'id="document">(.*?)</script>', page.read_text(encoding="utf-8"))[1]
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def test_a_file_shows_all_of_its_schedules(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert explored(capsys, folder / "two-schedules.py", "--no-times") == "two_schedules.html: plain, vectors\n"
    data = data_of(tmp_path / "two_schedules.html")
    assert data["title"] == "two_schedules"
    assert [schedule["name"] for schedule in data["schedules"]] == ["plain", "vectors"]
    assert [schedule["seconds"] for schedule in data["schedules"]] == [None, None]
    texts = {pane["id"]: pane["text"] for pane in data["panes"]}
    assert "for j in vectorized(16):" in texts[data["schedules"][1]["nests"][-1]]
    assert "two_schedules:" in texts[data["schedules"][1]["assembly"]]


def test_a_file_can_say_which_schedules_and_what_to_compare_with(folder, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert explored(capsys, folder / "picked.py", "-o", page) == f"{page}: in vectors\n"
    data = data_of(page)
    (schedule,) = data["schedules"]
    assert schedule["seconds"] > 0
    assert [peer["name"] for peer in data["peers"]] == ["numpy"]
    assert data["work"] == {"operations": 96, "bytes": 768, "rate_unit": "GFLOP/s"}
    assert data["machine"]["least_seconds"] > 0


def test_json_has_the_times_and_the_verdicts_of_the_page(folder, tmp_path, capsys):
    page = tmp_path / "page.html"
    found = json.loads(explored(capsys, folder / "picked.py", "-o", page, "--json"))
    (schedule,), (peer,) = found["schedules"], found["peers"]
    assert found["page"] == str(page)
    shown = data_of(page)
    assert schedule["seconds"] == shown["schedules"][0]["seconds"]
    assert schedule["rate"] == pytest.approx(96 / schedule["seconds"] / 1e9)
    assert peer["of_roofline"] == pytest.approx(shown["machine"]["least_seconds"] / peer["seconds"])
    nest = next(pane for pane in shown["panes"] if pane["id"] == shown["schedules"][0]["nests"][-1])["text"].split("\n")
    assert [nest[loop["line"] - 1].strip(" :") for loop in schedule["loops"]] == [s["loop"] for s in schedule["loops"]]
    assert schedule["loops"][-1]["became"].startswith("16 lanes of float32")
    untimed = json.loads(explored(capsys, folder / "two-schedules.py", "-o", page, "--json", "--no-times"))
    assert [entry["seconds"] for entry in untimed["schedules"]] == [None, None]
    assert "scalar" in untimed["schedules"][0]["loops"][1]["costs"][0]


def test_json_stands_alone_where_the_file_prints(folder, tmp_path, capsys):
    path = tmp_path / "talks.py"
    path.write_text(f"{SCHEDULES}{PICKED}\nprint('of the file')\npeers['loud'] = lambda x: print('of a peer')\n")
    assert main(["explore", str(path), "-o", str(tmp_path / "page.html"), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["title"] == "talks"
    assert "of the file" in err
    assert "of a peer" in err


def test_a_target_of_another_machine_is_shown_without_times(folder, tmp_path, capsys):
    page = tmp_path / "page.html"
    target = "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"
    explored(capsys, folder / "picked.py", "-o", page, "--target", target)
    data = data_of(page)
    assert data["schedules"][0]["seconds"] is None
    assert data["machine"] is None
    assembly = next(pane["text"] for pane in data["panes"] if pane["role"] == "assembly")
    assert re.search(r"\tf(add|mul)\tv\d", assembly)
    found = failure(capsys, folder / "small.onnx", "-o", page, "--target", target, "--shape", "x=4,8")
    assert "compiled for aarch64" in found
    assert "name the function to explore by --function" in found


def test_a_model_shows_one_fused_function(folder, tmp_path, capsys):
    page = tmp_path / "page.html"
    line = [folder / "small.onnx", "-o", page, "--shape", "x=4,8"]
    out = explored(capsys, *line, "--function", "fused_softmax")
    assert out == f"{page}: softmax.generic\n"
    assert data_of(page)["title"] == "fused_softmax"
    explored(capsys, *line)
    library = lw.compile(folder / "small.onnx", shapes={"x": (4, 8)}, jobs=1)
    assert data_of(page)["title"] in {code.symbol for code in library.functions}


def test_a_function_for_any_shape_is_shown_without_times(folder, tmp_path, capsys):
    page = tmp_path / "page.html"
    explored(capsys, folder / "small.onnx", "-o", page, "--function", "fused_softmax")
    assert data_of(page)["schedules"][0]["seconds"] is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\ny = x / 0\n", "line 2: ZeroDivisionError: division by zero"),
        ("x = (\n", "SyntaxError"),
        ("raise SystemExit(3)\n", "line 1: SystemExit: 3"),
        ("x = 1\n", "names no schedule: give it a global dict `schedules`"),
        ("schedules = 7\n", "gives, or specialize(…).schedule of a kernel function"),
        ("schedules = {'a': 7}\n", "expected schedules by their names, found {'a': 7}"),
        (f"{SCHEDULES}\npeers = [1]\n", "should be a dict from names to functions"),
        (f"{SCHEDULES}\nY = te.compute((4, 4), lambda i, j: X[0])\n", "line 10: ExpressionError: X: float32[6, 16]"),
    ],
)
def test_files_without_schedules_are_refused(tmp_path, capsys, text, message):
    (tmp_path / "bad.py").write_text(text)
    assert message in failure(capsys, tmp_path / "bad.py", "-o", tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_files_that_cannot_be_read_or_written_are_refused_before_anything_runs(folder, tmp_path, capsys):
    (tmp_path / "folder.py").mkdir()
    for name, why in (("nowhere.py", "No such file or directory"), ("folder.py", "Is a directory")):
        assert failure(capsys, tmp_path / name).endswith(f"the file {tmp_path / name} cannot be read: {why}\n")
    (tmp_path / "loud.py").write_text("print('it ran')\n")
    for page, why in (("no/page.html", "there is no folder"), (".", "it is a folder")):
        assert main(["explore", str(tmp_path / "loud.py"), "-o", str(tmp_path / page)]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert f"the page cannot be written to {tmp_path / page}: {why}" in err


def test_options_and_models_that_do_not_fit_are_refused(folder, tmp_path, capsys):
    assert "a Python file: it takes no --function" in failure(capsys, folder / "picked.py", "--function", "x")
    assert "which has no schedules; give the model" in failure(capsys, folder / "small.lwlib")
    assert "its functions are fused_" in failure(capsys, folder / "small.onnx", "--function", "nowhere")
    assert "leave out --function" in failure(
        capsys, folder / "small.onnx", "--function", "fused_softmax", "--input", "x=random"
    )
