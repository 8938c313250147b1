"""The parts of `make demo`: what they show is short, fits the terminal, and stands beside others' results."""

import os
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import needed_tools
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples"
CODE_LINES = {"digits": 35, "trained_digits": 0, "resnet50": 25, "read_text": 0}
"""What each may show of code; 60 in all."""
MOST_LINES = 50
TIMEOUT_S = 600
WIDTH = 80


def output_of(command, folder):
    """What it prints where nothing is a terminal; what opens a page is to do nothing."""
    environment = os.environ | {"BROWSER": "true", "COLUMNS": ""}
    run = subprocess.run(
        command, cwd=folder, check=False, capture_output=True, text=True, timeout=TIMEOUT_S, env=environment
    )
    assert run.returncode == 0, f"{command} failed:\n{run.stdout}\n{run.stderr}"
    return run.stdout


def run_part(part, folder, *peers):
    """The lines that a part of the demo prints, with the times of ours and of these peers; its files go to new/demo."""
    for name in ("sklearn", "onnxruntime"):
        needed_tools.module(name)
    lines = output_of([sys.executable, str(FOLDER / f"{part}.py"), "new/demo"], folder).splitlines()
    title, underline = lines[1:3]
    assert underline == "=" * len(title)
    code = [line for line in lines if line.startswith("│")]
    assert len(code) <= CODE_LINES[part]
    assert len(lines) <= MOST_LINES
    prose = [line for line in lines if "-m loopwright" not in line]  # a command to copy is never cut
    assert max(map(len, prose)) <= WIDTH
    assert any(len(line) == WIDTH and line.endswith("…") for line in code) == bool(code)
    contenders = [line.split()[0] for line in lines if line.endswith(("FLOP/s", "× the time", " µs", " ms"))]
    assert contenders == ["loopwright", *peers]
    return lines


def test_digits_shows_its_schedule_beside_numpy_and_scikit_learn(tmp_path):
    lines = run_part("digits", tmp_path, "numpy", "scikit-learn")
    assert "<title>nearest_digit" in (tmp_path / "new/demo/digits.html").read_text(encoding="utf-8")
    assert any(line.startswith("new/demo/digits.html") for line in lines)


def test_trained_digits_tells_functions_apart_by_shapes_and_keeps_its_model(tmp_path):
    lines = run_part("trained_digits", tmp_path, "onnxruntime", "scikit-learn")
    functions = [line.strip().split("  ", 2)[2] for line in lines if " → " in line]
    assert len(set(functions)) == len(functions) == 5  # with the heads of the columns
    assert (tmp_path / "new/demo/trained_digits.onnx").exists()
    assert any(line.startswith("new/demo/trained_digits.onnx") for line in lines)


@pytest.mark.slow
def test_the_last_line_of_resnet50_opens_a_page_of_its_hottest_function(tmp_path):
    lines = run_part("resnet50", tmp_path, "onnxruntime")
    for name in ("resnet50.onnx", "resnet50.lwlib"):
        assert (tmp_path / "new/demo" / name).exists()
    command = shlex.split(lines[-1])
    output_of(command, tmp_path)
    hottest = command[-1]
    assert hottest.startswith("fused_nn_")
    assert f"<title>{hottest}<" in (tmp_path / f"{hottest}.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_read_text_prints_the_boxes_and_words_of_a_table(tmp_path):
    if find_spec("rapidocr_onnxruntime") is None:  # it is not imported, and need not be importable
        needed_tools.missing("rapidocr_onnxruntime", needed_tools.EXTRAS)
    lines = run_part("read_text", tmp_path, "onnxruntime")
    begin = next(number for number, line in enumerate(lines) if line.startswith("text "))
    words = {line[:20].strip() for line in lines[begin + 1 : lines.index("", begin)]}
    assert {"naive", "106 ms", "0.43 %", "register tile", "numpy", "1.13 ms", "40 %"} <= words
