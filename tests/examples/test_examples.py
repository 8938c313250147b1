"""Every example runs to its end, and says something."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))
TIMEOUT_S = 300


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example, tmp_path):
    if "sklearn" in example.read_text(encoding="utf-8") and importlib.util.find_spec("sklearn") is None:
        pytest.skip("needs scikit-learn, which the extra `examples` brings")
    command = [sys.executable, str(example)]
    run = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert run.returncode == 0, f"{example.name} failed:\n{run.stdout}\n{run.stderr}"
    assert run.stdout.strip(), f"{example.name} printed nothing"
