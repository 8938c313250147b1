"""``loopwright records``: list, compare, prune and copy."""

import json

import pytest

import loopwright as lw
from loopwright.artifact.records.record_file import append_notes
from loopwright.artifact.records.trial import Trial
from loopwright.cli import main

TARGET = lw.resolve_target("llvm -mtriple=x86_64-linux-gnu -mcpu=znver4")
A, B = lw.var("a", (8, 32)), lw.var("b", (32, 16))
PRODUCT, ROWS = lw.nn.matmul(A, B), lw.nn.softmax(A)


def record(call=PRODUCT, seconds=1e-3, implementation="matmul.direct", **more):
    return lw.TuningRecord.of(call, TARGET, implementation, [seconds], **more)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    tiled = record(seconds=5e-4, implementation="matmul.paneled", decisions={"rows": 4})
    lw.TuningRecords.append(one, record(), tiled, record(ROWS, 2e-3, "softmax.rows"))
    append_notes(one, [Trial("key", 1, "matmul.direct", None, "hung")])
    lw.TuningRecords.append(two, record(seconds=1e-3))
    return one, two


def command(capsys, *arguments):
    assert main([*map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_records_are_listed(files, capsys):
    out = command(capsys, "records", "ls", files[0])
    assert "nn.matmul(float32[8, 32], float32[32, 16])" in out
    assert 'matmul.paneled {"rows":4}' in out
    assert out.splitlines()[-1] == "3 records, 1 note of what tuning tried"


def test_the_best_are_listed_as_data(files, capsys):
    found = json.loads(command(capsys, "records", "ls", *files, "--best", "--json"))
    assert [each["implementation"] for each in found] == ["matmul.paneled", "softmax.rows"]


def test_files_are_compared(files, capsys):
    out = command(capsys, "records", "compare", *files)
    assert "0.500×" in out
    assert out.splitlines()[-1] == "1 workload in both, 1 in the first alone, 0 in the second alone"
    rows = json.loads(command(capsys, "records", "compare", *files, "--json"))
    assert [row["second"] is None for row in rows] == [False, True]


def test_prune_leaves_the_best(files, capsys):
    before = files[0].read_bytes()
    assert command(capsys, "records", "prune", files[0], "--dry-run").startswith("would remove 1 record and 1 note")
    assert files[0].read_bytes() == before
    assert command(capsys, "records", "prune", files[0]).startswith("removed 1 record and 1 note")
    left = list(lw.TuningRecords.load(files[0]))
    assert [each.implementation for each in left] == ["matmul.paneled", "softmax.rows"]
    assert "trial" not in files[0].read_text()


def test_the_best_are_copied_once(files, capsys):
    assert command(capsys, "records", "copy", *files).startswith("copied 2 records to")
    assert command(capsys, "records", "copy", *files).startswith("copied 0 records to")
    best = lw.TuningRecords.load(files[1]).best(record().workload, TARGET)
    assert best.record.implementation == "matmul.paneled"


def test_a_file_is_not_copied_to_itself(files, capsys):
    assert main(["records", "copy", str(files[0]), str(files[0])]) == 1
    assert "are one file" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_told(tmp_path, capsys):
    assert main(["records", "ls", str(tmp_path / "none.jsonl")]) == 1
    assert "cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"notes of mine\n", "cannot be written: the file holds something else; give another"),
        (
            b'{"format": 99}\n',
            "line 1: it has format 99, this version reads up to 2: use a newer loopwright; nothing is",
        ),
    ],
)
def test_what_is_not_understood_is_not_pruned(tmp_path, capsys, content, problem):
    path = tmp_path / "kept"
    path.write_bytes(content)
    assert main(["records", "prune", str(path)]) == 1
    assert problem in capsys.readouterr().err
    assert path.read_bytes() == content


def test_records_are_copied_to_no_file_of_something_else(files, tmp_path, capsys):
    path = tmp_path / "kept"
    path.write_bytes(b"notes of mine\n")
    assert main(["records", "copy", str(files[0]), str(path)]) == 1
    assert "the file holds something else" in capsys.readouterr().err
    assert path.read_bytes() == b"notes of mine\n"
