"""Every example runs to its end, and says something."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import needed_tools
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples"
DEMO = FOLDER / "resnet50.py"
EXAMPLES = sorted(path for path in FOLDER.glob("*.py") if path != DEMO)
TIMEOUT_S = 300


def output_of(command, folder):
    # What opens a page is to do nothing.
    environment = os.environ | {"BROWSER": "true"}
    run = subprocess.run(
        command, cwd=folder, check=False, capture_output=True, text=True, timeout=TIMEOUT_S, env=environment
    )
    assert run.returncode == 0, f"{command} failed:\n{run.stdout}\n{run.stderr}"
    assert run.stdout.strip(), f"{command} printed nothing"
    return run.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example, tmp_path):
    if "sklearn" in example.read_text(encoding="utf-8"):
        needed_tools.module("sklearn")
    output_of([sys.executable, str(example)], tmp_path)


def test_the_last_line_of_the_demo_opens_a_page_of_its_hottest_function(tmp_path):
    shown = output_of([sys.executable, str(DEMO)], tmp_path)
    hottest = shown.split("=== Loop nest of ")[1].split(",")[0]
    output_of(shlex.split(shown.splitlines()[-1]), tmp_path)
    page = (tmp_path / "resnet50.html").read_text(encoding="utf-8")
    assert hottest.startswith("fused_nn_")
    assert page.split("<title>")[1].split("<")[0] == hottest
