"""The README is short, its links lead to the project wherever it is shown, and its programs run, as do models.md's."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from documented_programs import GIVEN, PROGRAMS
from onnx import TensorProto, helper, save

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SOURCE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Source"]
RAW = SOURCE.replace("github.com", "raw.githubusercontent.com")
LINKS = re.findall(r"\]\(([^)\s]+)\)", README)


def test_its_links_are_absolute_since_package_indexes_show_it_too():
    assert len(LINKS) > 10
    assert [link for link in LINKS if not link.startswith((f"{SOURCE}/blob/main/", f"{RAW}/main/"))] == []


def test_its_pictures_are_files_and_not_pages():
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README)
    assert pictures
    assert [picture for picture in pictures if not picture.startswith(RAW)] == []


def test_it_fits_two_screens_and_says_what_to_type_in_a_clone():
    assert len(README.splitlines()) <= 100
    assert "\nmake demo " in README
    assert "\nmake test " in README


@pytest.fixture
def folder(tmp_path):
    """A folder with a model of one input ``x``."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 3, 224, 224]) for name in ("x", "y"))
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "small", [x], [y])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), tmp_path / "model.onnx")
    return tmp_path


@pytest.mark.parametrize("program", [code for _, code in PROGRAMS], ids=[page for page, _ in PROGRAMS])
def test_its_programs_run(folder, program):
    environment = os.environ | {"LOOPWRIGHT_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-W", "error", "-c", GIVEN + program]
    run = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, timeout=600, env=environment)
    assert run.returncode == 0, run.stdout + run.stderr
    if "model.lwlib" in program:
        assert (folder / "model.lwlib").exists()
