"""``loopwright compile``, ``bench``, ``profile``, ``dump``; what ``run`` makes of saved libraries and of .npz files."""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import needed_tools
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import loopwright as lw
from loopwright.cli import main
from loopwright.cli.command_line import SUBCOMMANDS

WEIGHT = np.random.default_rng(0).standard_normal((8, 5)).astype(np.float32)


def small_model(batch=4):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["s"], name="product"), helper.make_node("Softmax", ["s"], ["y"])]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 5])
    graph = helper.make_graph(nodes, "small", [x], [y], [numpy_helper.from_array(WEIGHT, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    onnx.save(small_model(), folder / "small.onnx")
    onnx.save(small_model("N"), folder / "open.onnx")
    lw.compile(small_model(), jobs=1).save(folder / "small.lwlib")
    return folder


def command(capsys, *arguments):
    assert main([*map(str, arguments)]) == 0
    return capsys.readouterr().out


def failure(capsys, *arguments):
    assert main([*map(str, arguments)]) == 1
    out, err = capsys.readouterr()
    assert err.startswith("loopwright: error: ")
    assert "Traceback" not in out + err
    return err


def test_compile_writes_a_library_that_runs(folder, tmp_path, capsys):
    out = command(capsys, "compile", folder / "small.onnx", "-o", tmp_path / "m.lwlib")
    assert re.match(rf"{tmp_path}/m.lwlib \([\d.]+ [KM]iB\): \d fused functions?", out)
    x = np.ones((4, 8), np.float32)
    expected = np.exp(x @ WEIGHT) / np.exp(x @ WEIGHT).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(lw.Engine(lw.load(tmp_path / "m.lwlib"))([x])[0], expected, rtol=1e-5)


def test_compile_keeps_alternatives_where_asked(folder, tmp_path, capsys):
    target = ["--target", "x86-64-v3"]  # where several implementations serve
    command(capsys, "compile", folder / "small.onnx", "-o", tmp_path / "m.lwlib", "--alternatives", *target)
    model = lw.load(tmp_path / "m.lwlib").model
    assert "matmul.paneled" in [f.implementation for others in model.alternatives.values() for f in others]
    line = ["compile", folder / "small.onnx", "-o", tmp_path / "m.o", "--alternatives"]
    assert "--alternatives is for .lwlib" in failure(capsys, *line)
    assert not (tmp_path / "m.o").exists()


def test_compile_leaves_operators_alone_that_are_named(tmp_path, capsys):
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 8]) for name in "xy")
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Exp", ["a"], ["y"])]
    model = helper.make_model(
        helper.make_graph(nodes, "chain", [x], [y]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    onnx.save(model, tmp_path / "chain.onnx")
    line = ["compile", tmp_path / "chain.onnx", "-o", tmp_path / "m.lwlib", "--json"]
    assert json.loads(command(capsys, *line))["functions"] == 1
    assert json.loads(command(capsys, *line, "--unfused", "relu"))["functions"] == 2
    assert "did you mean relu" in failure(capsys, *line, "--unfused", "rellu")


@pytest.fixture(scope="module")
def recurrent(tmp_path_factory):
    """The file of a model whose output ``hn`` is its input ``h`` in the next run."""
    shape = [2, 3]
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "h")]
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("y", "hn")]
    nodes = [helper.make_node("Add", ["x", "h"], ["hn"]), helper.make_node("Tanh", ["hn"], ["y"])]
    graph = helper.make_graph(nodes, "recurrent", given, made)
    file = tmp_path_factory.mktemp("recurrent") / "recurrent.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)
    return file


@pytest.mark.parametrize("state", ["hn=h", "auto"])
def test_a_library_keeps_the_states_that_are_named_or_found(recurrent, tmp_path, capsys, state):
    file = tmp_path / "recurrent.lwlib"
    said = command(capsys, "compile", recurrent, "-o", file, "--state", state)
    assert re.findall(r"^(?:in|out)put +(\w+)", said, re.MULTILINE) == ["x", "y"]
    session = lw.Engine(lw.load(file)).session()
    x = np.full((2, 3), 0.5, np.float32)
    session([x])
    np.testing.assert_allclose(session([x])[0], np.tanh(2 * x), rtol=1e-6)
    for subcommand in ("run", "bench", "profile"):
        said = failure(capsys, subcommand, file)
        assert "keeps the state h" in said
        assert ".session()" in said


@pytest.mark.parametrize(
    ("states", "said"),
    [
        (["hn"], "OUTPUT=INPUT"),
        (["hn=h", "hn=x"], "each output once"),
        (["auto", "hn=h"], "OUTPUT=INPUT"),
        (["hm=h"], "no output"),
        (["hn=k"], "no input"),
    ],
)
def test_states_that_are_none_are_refused(recurrent, tmp_path, capsys, states, said):
    options = [word for state in states for word in ("--state", state)]
    assert said in failure(capsys, "compile", recurrent, "-o", tmp_path / "r.lwlib", *options)
    assert not (tmp_path / "r.lwlib").exists()


def test_code_for_programs_of_c_takes_no_state(recurrent, tmp_path, capsys):
    assert "--state is for .lwlib" in failure(capsys, "compile", recurrent, "-o", tmp_path / "r.so", "--state", "hn=h")


def test_compile_tells_in_json_what_it_wrote(folder, tmp_path, capsys):
    facts = json.loads(command(capsys, "compile", folder / "small.onnx", "-o", tmp_path / "m.lwlib", "--json"))
    assert facts["files"] == {str(tmp_path / "m.lwlib"): (tmp_path / "m.lwlib").stat().st_size}
    assert facts["inputs"] == ["x: float32[4, 8]"]


def test_compile_tells_what_its_stages_took(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("LOOPWRIGHT_CACHE_MODELS", "0")
    line = ["compile", folder / "small.onnx", "-o", tmp_path / "m.lwlib", "--timings", "--target", "x86-64-v2"]
    assert re.search(r"^ +lower_variants .*%", command(capsys, *line), re.MULTILINE)
    timings = json.loads(command(capsys, *line, "--json"))["timings"]
    assert timings["name"] == "compile"
    assert "plan_layouts" in str(timings)
    command(capsys, *line, "--flame-graph", tmp_path / "flame.html")
    assert "plan_layouts" in (tmp_path / "flame.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("output", "files"), [("m.o", ["m.h", "m.o"]), ("m.ll", ["m.h", "m.ll", "m.weights"])])
def test_compile_writes_code_for_programs_of_c(folder, tmp_path, capsys, output, files):
    facts = json.loads(command(capsys, "compile", folder / "small.onnx", "-o", tmp_path / output, "--json"))
    assert sorted(file.name for file in tmp_path.iterdir()) == files
    assert sorted(facts["files"]) == [str(tmp_path / file) for file in files]


def test_compile_refuses_libraries_and_places_it_cannot_write(folder, tmp_path, capsys):
    assert "compiled already" in failure(capsys, "compile", folder / "small.lwlib", "-o", tmp_path / "m.lwlib")
    assert "cannot be written" in failure(capsys, "compile", folder / "small.onnx", "-o", tmp_path / "no" / "m.lwlib")
    line = ["compile", folder / "small.onnx", "-o"]
    assert "--weights is for .o, .so" in failure(capsys, *line, tmp_path / "m.lwlib", "--weights", "beside")
    assert "should end in .lwlib, .o" in failure(capsys, *line, tmp_path / "m.obj")
    assert f"take {tmp_path}/my_net.o" in failure(capsys, *line, tmp_path / "my-net.o")
    assert "end in .so" in failure(capsys, *line, tmp_path / "m.dylib", "--target", "llvm -mtriple=x86_64-linux-gnu")
    assert "weights stay out of the text" in failure(capsys, *line, tmp_path / "m.ll", "--weights", "inside")
    assert list(tmp_path.iterdir()) == []


def test_run_takes_a_saved_library_and_several_inputs_from_one_file(folder, tmp_path, capsys):
    x = np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32)
    np.savez(tmp_path / "inputs.npz", x=x)
    out = tmp_path / "out.npz"
    line = ["--input", tmp_path / "inputs.npz", "--output", out]
    assert "loaded in" in command(capsys, "run", folder / "small.lwlib", *line)
    with np.load(out) as written:
        np.testing.assert_allclose(written["y"].sum(axis=1), np.ones(4), rtol=1e-5)
    assert "needs the model that it was made of" in failure(capsys, "run", folder / "small.lwlib", "--check")
    np.savez(tmp_path / "other.npz", z=x)
    assert "no input 'z'" in failure(capsys, "run", folder / "small.onnx", "--input", tmp_path / "other.npz")


def test_inputs_that_cannot_be_read_are_errors(folder, tmp_path, capsys):
    np.savez_compressed(tmp_path / "damaged.npz", x=np.ones((4, 8), np.float32))
    data = bytearray((tmp_path / "damaged.npz").read_bytes())
    data[60:80] = bytes(20)
    (tmp_path / "damaged.npz").write_bytes(data)
    assert "cannot be read" in failure(capsys, "run", folder / "small.onnx", "--input", tmp_path / "damaged.npz")


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': ('",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4,",
        "{'descr': '<f4', 'fortran_order': False,\n  'shape'\n 3",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1" + "0" * 30 + ",)}",
        "{'descr': (), 'fortran_order': False, 'shape': (4, 8)}",
        "{1: 2, 'descr': '<f4'}",
        "(" * 900,
        "",
    ],
    ids=lambda header: header[:60],
)
def test_arrays_with_damaged_headers_are_errors(folder, tmp_path, capsys, header):
    data = (header + "\n").encode()
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(data).to_bytes(2, "little") + data + bytes(128))
    line = ["run", folder / "small.onnx", "--input", f"x={tmp_path / 'x.npy'}"]
    assert "input x: " in (told := failure(capsys, *line))
    assert "x.npy cannot be read as a .npy file" in told


def test_scalars_stay_scalars(tmp_path, capsys):
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, []) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "scalar", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "s.onnx")
    np.save(tmp_path / "x.npy", np.float32(3))
    report = json.loads(command(capsys, "run", tmp_path / "s.onnx", "--input", f"x={tmp_path / 'x.npy'}", "--json"))
    assert report["outputs"][0]["largest"] == 3.0


def test_a_library_takes_no_options_of_the_compiler(folder, capsys):
    for name in ("run", "bench", "profile", "dump", "explain"):
        assert "it takes no --target" in failure(capsys, name, folder / "small.lwlib", "--target", "native")


def test_a_library_takes_no_shapes_that_it_was_not_compiled_for(folder, capsys):
    told = failure(capsys, "run", folder / "small.lwlib", "--shape", "x=2,8")
    assert "small.lwlib was compiled for x: float32[4, 8]; other shapes need the model" in told
    command(capsys, "run", folder / "small.lwlib", "--shape", "x=4,?")
    for name in ("dump", "explain"):
        assert "it takes no --shape" in failure(capsys, name, folder / "small.lwlib", "--shape", "x=4,8")


@pytest.mark.parametrize(
    ("name", "option"),
    [("run", "--output"), ("bench", "--svg"), ("profile", "--svg"), ("profile", "--trace"), ("compile", "-o")],
)
def test_places_that_cannot_be_written_are_told_before_anything_is_compiled(
    folder, tmp_path, capsys, monkeypatch, name, option
):
    step = "with_shapes" if name == "compile" else "open_program"
    monkeypatch.setattr(f"loopwright.cli.{name}.{step}", pytest.fail)
    line = [name, folder / "small.onnx", option]
    assert "there is no folder" in failure(capsys, *line, tmp_path / "no" / "file.lwlib")
    (tmp_path / "folder.lwlib").mkdir()
    assert "it is a folder" in failure(capsys, *line, tmp_path / "folder.lwlib")


def test_run_tells_in_json(folder, capsys):
    report = json.loads(command(capsys, "run", folder / "small.onnx", "--json", "--check"))
    assert report["outputs"][0]["shape"] == [4, 5]
    assert report["outputs"][0]["not_finite"] == 0
    assert report["checked"]["largest_error"] < 1e-5
    assert {"function", "calls", "ms", "implementation", "why"} == report["functions"][0].keys()


def test_bench_gives_percentiles_for_each_number_of_threads(folder, capsys):
    line = ["bench", folder / "small.onnx", "--threads", 1, 2, "--warmup", 0, "--seconds", 0.01]
    rows = json.loads(command(capsys, *line, "--json"))["latencies"]
    assert [row["threads"] for row in rows] == [1, 2]
    for row in rows:
        assert row["contender"] == "loopwright"
        assert row["calls"] >= 5
        assert 0 < row["least_ms"] <= row["p50_ms"] <= row["p90_ms"] <= row["p99_ms"]
    out = command(capsys, *line)
    assert "p99" in out
    assert "2 threads; 12 rounds" in out


def test_bench_sets_other_libraries_beside_ours(folder, tmp_path, capsys):
    needed_tools.module("onnxruntime")
    line = ["bench", folder / "open.onnx", "--batch", 3, "--threads", 1, "--warmup", 0, "--seconds", 0]
    line += ["--against", "onnxruntime", "--svg", tmp_path / "bench.svg"]
    ours, theirs = json.loads(command(capsys, *line, "--json"))["latencies"]
    assert (ours["contender"], theirs["contender"], theirs["agrees"]) == ("loopwright", "onnxruntime", True)
    assert theirs["ratio"]["low"] <= theirs["ratio"]["median"] <= theirs["ratio"]["high"]
    assert "onnxruntime, 1 thread" in (tmp_path / "bench.svg").read_text()
    out = command(capsys, *line)
    assert max(map(len, out.splitlines()[1:])) <= 80
    assert re.search(r"onnxruntime +12 .*× \(.*–.*\)", out)


def test_bench_against_others_needs_their_packages_and_the_model(folder, capsys, monkeypatch):
    line = ["--warmup", 0, "--seconds", 0, "--against"]
    needed_tools.module("onnxruntime")
    assert "needs the model that it was made of" in failure(
        capsys, "bench", folder / "small.lwlib", *line, "onnxruntime"
    )
    monkeypatch.setattr("loopwright.runtime.contenders.contest.find_spec", lambda name: None)
    assert "pip install openvino" in failure(capsys, "bench", folder / "small.onnx", *line, "openvino")


def test_a_batch_fills_first_extents_that_are_open(folder, capsys):
    line = ["bench", "--batch", 3, "--warmup", 0, "--seconds", 0]
    command(capsys, *line, folder / "open.onnx")
    told = failure(capsys, *line, folder / "small.onnx")
    assert "first extent is open, and there is none: its inputs are x: float32[4, 8]" in told


def test_profile_prints_a_table_and_writes_trace_and_chart(folder, tmp_path, capsys):
    files = ["--trace", tmp_path / "trace.json", "--svg", tmp_path / "chart.svg"]
    out = command(capsys, "profile", folder / "small.onnx", "--threads", 1, *files)
    assert "roof" in out
    assert "4×5 of product" in out
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert ET.fromstring((tmp_path / "chart.svg").read_text()).tag.endswith("svg")


def test_compare_names_the_first_function_beyond_the_tolerance(folder, capsys):
    assert "all within" in command(capsys, "compare", folder / "small.onnx")
    line = ["compare", folder / "small.lwlib"]
    assert "--reference gives the model" in failure(capsys, *line)
    assert json.loads(command(capsys, *line, "--reference", folder / "small.onnx", "--json"))["first"] is None
    other = small_model()
    other.graph.initializer[0].CopyFrom(numpy_helper.from_array(2 * WEIGHT, "w"))
    onnx.save(other, folder / "other.onnx")
    assert main([*map(str, line), "--reference", str(folder / "other.onnx")]) == 3
    assert "the first: " in capsys.readouterr().out
    with np.errstate(all="ignore"):
        other.graph.initializer[0].CopyFrom(numpy_helper.from_array(WEIGHT * np.float32("inf"), "w"))
    onnx.save(other, folder / "infinite.onnx")
    assert main([*map(str, line), "--reference", str(folder / "infinite.onnx"), "--json"]) == 3
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert found["first"]["largest"] is None


def test_dump_prints_each_stage(folder, capsys):
    model = folder / "small.onnx"
    assert "softmax(%0, axes=(1,))" in command(capsys, "dump", model, "--stage", "graph")
    te_text = command(capsys, "dump", model, "--stage", "te")
    assert "for " in te_text
    assert "s[" in te_text
    assert "linalg.generic" in command(capsys, "dump", model, "--stage", "linalg")
    assert "scf." in command(capsys, "dump", model, "--stage", "mlir", "--function", "fused_softmax")
    assert "for " in command(capsys, "dump", model)
    assert "define " in command(capsys, "dump", model, "--stage", "llvm", "--function", "fused_softmax")
    assert ".text" in command(capsys, "dump", folder / "small.lwlib", "--stage", "asm")
    texts = json.loads(command(capsys, "dump", model, "--json"))
    assert {text["name"] for text in texts} == {f.name for f in lw.compile(model).functions}


def test_dump_names_what_it_does_not_have(folder, capsys):
    assert "its functions are fused_" in failure(capsys, "dump", folder / "small.onnx", "--function", "nonsense")
    assert "mlir needs the model" in failure(capsys, "dump", folder / "small.lwlib", "--stage", "mlir")
    assert "te needs the model" in failure(capsys, "dump", folder / "small.lwlib", "--stage", "te")
    with pytest.raises(
        lw.RuntimeArgumentError, match="a stage is one of graph, te, linalg, loop, mlir, llvm, asm, found 'mir'"
    ):
        lw.dump(small_model(), "mir")


@pytest.mark.parametrize(
    "arguments",
    [
        ("compile", "m.onnx"),
        ("bench", "m.onnx", "--seconds", "-1"),
        ("bench", "m.onnx", "--batch", "0"),
        ("bench", "m.onnx", "--against", "tvm"),
        ("bench", "m.onnx", "--warmup", "nan"),
        ("dump", "m.onnx", "--stage", "mir"),
        ("compare", "m.onnx", "--tolerance", "nan"),
        ("compare", "m.onnx", "--tolerance", "-1"),
        ("profile",),
    ],
    ids=" ".join,
)
def test_usage_errors_end_with_2(capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert ended.value.code == 2
    assert "usage: loopwright" in capsys.readouterr().err


def test_a_reader_that_has_seen_enough_is_no_traceback(folder):
    line = f"{sys.executable} -m loopwright dump {folder / 'small.onnx'} --stage asm | head -1"
    done = subprocess.run(["sh", "-c", line], check=False, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0
    assert done.stderr == ""


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_help_has_an_example(name, capsys):
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert re.search(rf"example: .*loopwright {name}", capsys.readouterr().out)


@pytest.mark.parametrize("stage", ["linalg", "mlir"])
def test_mlir_opt_reads_what_dump_prints(folder, capsys, stage):
    text = command(capsys, "dump", folder / "small.onnx", "--stage", stage)
    assert text.count("// -----") == text.count("module {") - 1 > 0
    line = [needed_tools.program("mlir-opt-19", "mlir-opt", package="mlir-19-tools"), "--split-input-file"]
    done = subprocess.run(line, input=text, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("func.func @") == text.count("func.func @") > 0


def test_run_refuses_a_model_that_gives_lists(tmp_path, capsys):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 8])
    node = helper.make_node("SplitToSequence", ["x"], ["parts"], name="split")
    graph = helper.make_graph([node], "lists", [x], [onnx.ValueInfoProto(name="parts")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "lists.onnx")
    assert "parts are lists of arrays, or may be absent" in failure(capsys, "run", tmp_path / "lists.onnx")
