"""The first session of somebody new, as text: every command with a good model, a missing and a damaged one, wrong
options, a narrow terminal, and none. ``first_session.txt`` is what a reader found good; ``--update-golden`` writes it.

What differs from run to run and from machine to machine stands as a sign: ``#`` for a number, ``#%`` for those of a
function.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import needed_tools
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from loopwright.cli import main
from loopwright.ops.definition import foreign_code

GOLDEN = Path(__file__).with_name("first_session.txt")
SESSION = """
loopwright --version
loopwright --help
loopwright run digits.onnx
loopwright run digits.onnx --shape image=32,64
loopwright run digits.onnx --check --code --target x86-64 | head -12
loopwright run missing.onnx
loopwright run damaged.onnx
loopwright run digits.onnx --shape picture=1,64
loopwright run digits.onnx --shape image=1,63
loopwright run digits.onnx --shape image=two
loopwright run digits.onnx --chekc
loopwright run
loopwright rum digits.onnx
loopwright compile digits.onnx -o digits.lwlib
loopwright compile missing.onnx -o missing.lwlib
loopwright compile digits.onnx -o nowhere/digits.lwlib
loopwright run digits.lwlib
loopwright bench digits.onnx --seconds 0.05 --warmup 0 --threads 1
loopwright bench digits.onnx --seconds 0.05 --warmup 0 --threads 1 --against onnxruntime
loopwright bench digits.onnx --threads none
loopwright bench damaged.onnx
loopwright profile digits.onnx
COLUMNS=60 loopwright profile digits.onnx | head -1
loopwright profile missing.onnx
loopwright compare digits.onnx | head -1
loopwright compare damaged.onnx
loopwright explain digits.onnx --target x86-64-v3
loopwright explain digits.onnx --target x86-64-v9
loopwright explain missing.onnx
loopwright dump digits.onnx --stage graph --target x86-64-v3
loopwright dump digits.onnx --target x86-64-v3 | head -8
loopwright dump digits.onnx --stage assembly
loopwright dump damaged.onnx
loopwright explore digits.onnx -o page.html
loopwright explore missing.onnx
loopwright ops relu
loopwright ops rleu
loopwright ops | head -3
COLUMNS=60 loopwright cache ls | tail -2
loopwright cache list
loopwright completion bash | head -3
loopwright completion tcsh
"""


def digits():
    """A layer and the place of its largest output, for any number of images of 64 pixels."""
    weights = np.random.default_rng(0).standard_normal((64, 256)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["image", "weights"], ["sums"], name="layer"),
        helper.make_node("Relu", ["sums"], ["hidden"], name="positive"),
        helper.make_node("ArgMax", ["hidden"], ["digit"], name="decide", axis=1, keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 64])],
        [helper.make_tensor_value_info("digit", TensorProto.INT64, ["N"])],
        [numpy_helper.from_array(weights, "weights")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    model = digits().SerializeToString()
    (tmp_path / "digits.onnx").write_bytes(model)
    (tmp_path / "damaged.onnx").write_bytes(model[: len(model) // 2])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(foreign_code, "_digests", {})  # no other test has registered code from outside
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("LOOPWRIGHT_NUM_THREADS", "2")
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def in_shell(line):
    """What a shell shows of a line that is more than one command of ours."""
    own = f"{shlex.quote(sys.executable)} -m loopwright"
    ran = subprocess.run(
        ["bash", "-c", line.replace("loopwright", own, 1)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
    )
    return ran.returncode, ran.stdout + ran.stderr


def in_this_process(line, capsys, monkeypatch):
    words = shlex.split(line)
    with monkeypatch.context() as patch:
        while "=" in words[0]:
            patch.setenv(*words.pop(0).split("=", 1))
        try:
            code = main(words[1:])
        except SystemExit as ended:
            code = ended.code
    out, err = capsys.readouterr()
    return code, out + err


PROGRESS = re.compile(r": \d+ of \d+, ")
"""Which of these lines there are depends on how long the work takes."""


def plain(text):
    """The text with signs in the places of what differs from run to run."""
    text = re.sub(r"-?\d[\d,]*\.\d+(e[+-]?\d+)?|\b\d+(?= ?(ns|µs|ms|s|B|KiB|MiB|GFLOP/s|GB/s|%)(?!\w))", "#", text)
    text = re.sub(r"# (ns|µs|ms|s)\b", "# s", re.sub(r"# (B|KiB|MiB)\b", "# B", text))
    text = re.sub(r"(?<![A-Za-z0-9])[0-9a-f]{9,12}\b|^\d+(?= entries)", "#", text, flags=re.MULTILINE)
    return "\n".join(map(plain_line, (line for line in text.splitlines() if not PROGRESS.search(line))))


def plain_line(line):
    if "#%" in line:  # a function's row of a profile
        line = re.sub(r".*#%.*?(?=fused|engine|a call|$)", "#%  ", line)
    if line.startswith(("loopwright  ", "onnxruntime  ")):
        line = re.sub(r"(?<=\s)\d+(?=\s)", "#", line)
    return re.sub(r" {2,}", "  ", re.sub("─+", "──", line)).rstrip()


@needed_tools.needs("onnxruntime", package=needed_tools.EXTRAS)
def test_a_first_session_shows_what_a_reader_found_good(folder, capsys, monkeypatch, request):
    shown = []
    for line in SESSION.strip().splitlines():
        is_plain = "|" not in line and "bench" not in line
        code, text = in_this_process(line, capsys, monkeypatch) if is_plain else in_shell(line)
        assert "Traceback" not in text, f"{line}\n{text}"
        assert max(map(len, text.splitlines()), default=0) <= 200
        shown.append(f"$ {line}\n{plain(text.replace(str(folder), '.'))}\n[{code}]\n")
    found = "\n".join(shown)
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(found, encoding="utf-8")
    assert found == GOLDEN.read_text(encoding="utf-8")
