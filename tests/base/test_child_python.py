"""Children that run Python import what their parent would, and nothing else that lies in the working folder."""

import subprocess
import sys
from pathlib import Path

import numpy as np

import loopwright as lw
from loopwright.base.child_python import python_command
from loopwright.compiler.model.workers import _Worker


def test_a_program_gets_its_arguments_and_the_paths_of_its_parent(monkeypatch, tmp_path):
    (tmp_path / "only_here.py").write_text("VALUE = 7")
    monkeypatch.syspath_prepend(str(tmp_path))
    command = python_command("import only_here; print(only_here.VALUE, sys.argv[1:], sys.path)", "a b", "'c'")
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout == f"7 ['a b', \"'c'\"] {sys.path}\n"


def test_what_is_no_text_among_the_paths_is_left_out(monkeypatch):
    folders = list(sys.path)
    monkeypatch.setattr(sys, "path", [*folders, Path("elsewhere"), np.str_("text")])
    run = subprocess.run(python_command("print(sys.path)"), capture_output=True, text=True, check=True)
    assert run.stdout == f"{[*folders, 'text']}\n"


def test_nothing_is_imported_from_the_working_folder(monkeypatch, tmp_path):
    for name in ("llvmlite", "pickle", "loopwright", "numpy"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'taken')!r}, 'w')\nraise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    worker = _Worker()
    worker._process.stdin.close()
    assert worker._process.wait(600) == 0
    worker._process.stdout.close()
    try:
        lw.resolve_target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64 -mattr=+avx2,+fma")
    finally:
        assert not (tmp_path / "taken").exists()
