"""Every example runs to its end, and says something; the parts of the demo have a file of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples"
DEMO = {"digits", "trained_digits", "resnet50", "read_text"}
EXAMPLES = sorted(path for path in FOLDER.glob("*.py") if path.stem not in DEMO)
TIMEOUT_S = 600
ARGUMENTS = {"searcher": ["0.1"], "tune_on_a_device": ["0.05"], "vectorization_experiment": ["new/pages"]}
"""Minutes of those that search, which are more by default, and the folder of one that writes pages."""


def output_of(example, folder, *arguments):
    command = [sys.executable, str(example), *arguments]
    run = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert run.returncode == 0, f"{command} failed:\n{run.stdout}\n{run.stderr}"
    assert run.stdout.strip(), f"{command} printed nothing"
    return run.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example, tmp_path):
    shown = output_of(example, tmp_path, *ARGUMENTS.get(example.stem, ()))
    if example.stem == "vectorization_experiment":
        pages = sorted((tmp_path / "new" / "pages").glob("*.html"))
        assert [page.name for page in pages] == ["product.html", "softmax.html"]
        assert shown.split() == [str(page.relative_to(tmp_path)) for page in pages]
