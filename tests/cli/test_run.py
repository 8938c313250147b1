"""``loopwright run``: what it prints and writes, what it checks, and how it fails."""

import json
import os
import subprocess
import sys

import needed_tools
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from terminals import in_terminal

import loopwright as lw
from loopwright.cli import main, run
from loopwright.cli.reference import Reference

WEIGHT = np.random.default_rng(0).standard_normal((8, 5)).astype(np.float32)


def small_model(batch=4):
    """y = relu(x · w), and the place of the largest element of each row."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["s"]),
        helper.make_node("Relu", ["s"], ["y"]),
        helper.make_node("ArgMax", ["y"], ["file"], axis=1, keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 8])],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 5]),
            helper.make_tensor_value_info("file", TensorProto.INT64, [batch]),
        ],
        [numpy_helper.from_array(WEIGHT, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def path(tmp_path):
    onnx.save(small_model(), tmp_path / "small.onnx")
    return tmp_path / "small.onnx"


@pytest.fixture
def open_path(tmp_path):
    onnx.save(small_model("N"), tmp_path / "open.onnx")
    return tmp_path / "open.onnx"


def test_the_first_answer_is_printed_before_the_model_is_compiled(tmp_path, capsys):
    path = tmp_path / "small.onnx"
    onnx.save(small_model(), path)
    assert main(["run", str(path), "--tiered"]) == 0
    printed = capsys.readouterr().out
    assert printed.index("float32[4, 5]") < printed.index("first answer, by") < printed.index("compiled in")
    assert printed.count("float32[4, 5]") == 1
    assert main(["run", str(path), "--tiered", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert 0 < report["seconds_to_first_answer"] <= report["seconds_to_compile"]


def command(*arguments):
    return main(["run", *map(str, arguments)])


def failure(capsys, *arguments):
    assert command(*arguments) == 1
    out, err = capsys.readouterr()
    assert err.startswith("loopwright: error: ")
    assert "Traceback" not in out + err
    return err


def test_it_shows_inputs_outputs_and_latency(path, capsys):
    assert command(path, "--threads", 1) == 0
    out = capsys.readouterr().out
    library = lw.compile(small_model())
    assert f"{len(library.functions)} fused function" in out
    rows = {tuple(line.split()[:2]): line for line in out.splitlines()}
    assert "float32[4, 8]" in rows["input", "x"]
    assert "float32[4, 5]" in rows["output", "y"]
    assert "int64[4]" in rows["output", "file"]
    assert "latency, 1 thread: loopwright " in out
    assert "Loop nest" not in out
    assert "LLVM IR" not in out


def test_statistics_are_those_of_numpy(path, tmp_path, capsys):
    x = np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32)
    x[0, 0] = np.inf
    np.save(tmp_path / "x.npy", x)
    assert command(path, "--input", f"x={tmp_path / 'x.npy'}") == 0
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("input")]
    finite = x[np.isfinite(x)]
    least, mean, largest, odd = map(float, row.split()[-4:])
    np.testing.assert_allclose([least, mean, largest], [finite.min(), finite.mean(), finite.max()], rtol=0.01)
    assert odd == 1


def test_functions_their_implementations_and_code_are_shown_where_asked(path, capsys):
    assert command(path, "--code") == 0
    out = capsys.readouterr().out
    for function in lw.compile(small_model()).functions:
        assert function.name in out
    assert "matmul." in out
    assert "Loop nest of fused_" in out
    assert "LLVM IR" in out


@pytest.mark.parametrize("columns", ["60", "80"])
def test_it_fits_the_width_and_has_no_colours_in_a_pipe(path, tmp_path, columns):
    line = [sys.executable, "-m", "loopwright", "run", str(path)]
    environment = {name: text for name, text in os.environ.items() if name != "FORCE_COLOR"} | {"COLUMNS": columns}
    done = subprocess.run(line, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment, timeout=600)
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= int(columns)


def test_outputs_are_written_by_name_and_are_those_of_the_reference(path, tmp_path, capsys):
    x = np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    assert command(path, "--input", f"x={tmp_path / 'x.npy'}", "--output", tmp_path / "out.npz") == 0
    y, largest = ReferenceEvaluator(small_model()).run(None, {"x": x})
    with np.load(tmp_path / "out.npz") as written:
        assert sorted(written) == ["file", "y"]
        np.testing.assert_allclose(written["y"], y, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(written["file"], largest)


@pytest.mark.parametrize("installed", [False, True])
def test_outputs_can_be_checked(path, capsys, monkeypatch, installed):
    if installed:
        needed_tools.module("onnxruntime")
    for module in ("run", "reference"):
        monkeypatch.setattr(f"loopwright.cli.{module}.onnxruntime_installed", lambda: installed)
    assert command(path, "--check") == 0
    who = "onnxruntime" if installed else "onnx's reference evaluator"
    assert f"checked: {who} differs by at most" in capsys.readouterr().out


def test_a_check_fails_where_the_error_is_ours(path, capsys, monkeypatch):
    right = run.load_reference
    wrong = Reference(lambda inputs: [np.full((4, 5), 7, np.float32), np.zeros(4, np.int64)], "an oracle")
    monkeypatch.setattr(run, "load_reference", lambda *options: wrong)
    assert command(path, "--check") == 0
    assert "beside float64 our largest error is" in capsys.readouterr().out
    monkeypatch.setattr(run.Engine, "__call__", lambda engine, inputs: wrong.run(inputs))
    monkeypatch.setattr(run, "load_reference", right)
    assert "output y differs from onnx" in failure(capsys, path, "--check")


def test_open_extents_come_from_shapes_or_from_arrays(open_path, tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.ones((6, 8), np.float32))
    assert command(open_path, "--shape", "x=3,8") == 0
    assert "float32[3, 5]" in capsys.readouterr().out
    assert command(open_path, "--input", f"x={tmp_path / 'x.npy'}") == 0
    assert "float32[6, 5]" in capsys.readouterr().out


def test_a_model_that_is_no_file_or_garbage_is_an_error(tmp_path, capsys):
    assert "nothing.onnx cannot be read" in failure(capsys, tmp_path / "nothing.onnx")
    (tmp_path / "garbage.onnx").write_bytes(b"\x93NUMPY garbage")
    assert "no ONNX model" in failure(capsys, tmp_path / "garbage.onnx")


def test_inputs_that_are_unknown_unreadable_or_do_not_fit_are_errors(path, tmp_path, capsys):
    assert "no input 'z'; its inputs are x" in failure(capsys, path, "--input", "z=random")
    assert "cannot be read as a .npy file" in failure(capsys, path, "--input", f"x={tmp_path / 'nothing.npy'}")
    assert "cannot be read as a .npy file" in failure(capsys, path, "--input", f"x={path}")
    (tmp_path / "page.html").write_text("<html>")
    assert "it holds no array of numbers" in failure(capsys, path, "--input", f"x={tmp_path / 'page.html'}")
    np.savez(tmp_path / "several.npz", a=np.zeros(3))
    assert "holds several arrays" in failure(capsys, path, "--input", f"x={tmp_path / 'several.npz'}")
    np.save(tmp_path / "x.npy", np.zeros((4, 8)))
    assert "should have dtype float32" in failure(capsys, path, "--input", f"x={tmp_path / 'x.npy'}")


def test_unknown_targets_and_unwritable_outputs_are_errors(path, tmp_path, capsys):
    assert "no cpu 'pentagon'" in failure(capsys, path, "--target", "pentagon")
    assert "cannot be written" in failure(capsys, path, "--output", tmp_path / "no" / "out.npz")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--shape", "x=3,a"),
        ("--shape", "3,8"),
        ("--input", "x"),
        ("--threads", "0"),
        ("--threads", "two"),
        ("--nonsense",),
    ],
    ids=" ".join,
)
def test_usage_errors_end_with_2(path, capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        command(path, *arguments)
    assert ended.value.code == 2
    assert "usage: loopwright" in capsys.readouterr().err


def test_progress_shows_on_a_terminal_and_not_in_a_pipe(path, tmp_path):
    line = [sys.executable, "-m", "loopwright", "run", str(path)]
    piped = subprocess.run(line, check=True, capture_output=True, text=True, cwd=tmp_path, timeout=600)
    assert piped.stderr == ""
    environment = os.environ | {"TERM": "xterm", "LOOPWRIGHT_CACHE_DIR": str(tmp_path / "empty")}
    options = {"stdout": subprocess.PIPE, "cwd": tmp_path, "timeout": 600, "env": environment}
    assert "compiling" in in_terminal(lambda end: subprocess.run(line, check=True, stderr=end, **options))
