"""Notes of tuning between records: trials, by which nothing is chosen, and records that were taken back."""

import json
import logging
from dataclasses import replace

import pytest

import loopwright as lw
from loopwright.artifact.records.record_file import append_notes, read_trials, rewrite_records
from loopwright.artifact.records.trial import Trial
from loopwright.artifact.records.withdrawal import Withdrawal

TARGET = lw.resolve_target("llvm -mtriple=x86_64-linux-gnu -mcpu=znver4")
CALL = lw.nn.matmul(lw.var("a", (8, 32)), lw.var("b", (32, 16)))
TRIAL = Trial("key", 2, "matmul.direct", '{"rows":3}', "measured", 1.5, 1.25, 1.75, (1e-3, 2e-3), "nest", "", "znver4")
FAILED = Trial("key", 1, "matmul.direct", None, "hung", detail="it gave no answer in time")


def record(seconds=1e-3, time=None):
    return lw.TuningRecord.of(CALL, TARGET, "matmul.direct", [seconds], time=time)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tuned.jsonl"


@pytest.mark.parametrize("trial", [TRIAL, FAILED], ids=["measured", "failed"])
def test_a_trial_reads_back(path, trial):
    append_notes(path, [trial])
    assert read_trials(path) == (trial,)
    assert json.loads(path.read_text())["format"] == 3


def test_trials_are_no_records_and_records_are_no_trials(path, caplog):
    append_notes(path, [TRIAL])
    lw.TuningRecords.append(path, record())
    append_notes(path, [FAILED])
    with caplog.at_level(logging.WARNING, "loopwright.records"):
        known = lw.TuningRecords.load(path)
    assert (list(known), known.skipped, caplog.text) == ([record()], (), "")
    assert read_trials(path) == (TRIAL, FAILED)


def test_a_record_that_was_taken_back_does_not_count_wherever_that_stands(path):
    first, second = record(1e-3, "now"), record(1e-3, "then")
    append_notes(path, [Withdrawal.of(first, "it did not help")])
    lw.TuningRecords.append(path, first, second)
    assert list(lw.TuningRecords.load(path)) == [second]


def test_what_was_taken_back_may_be_recorded_anew(path):
    lw.TuningRecords.append(path, record(1e-3, "now"))
    append_notes(path, [Withdrawal.of(record(1e-3, "now"), "it did not help")])
    lw.TuningRecords.append(path, record(2e-3, "later"))
    assert [known.cost for known in lw.TuningRecords.load(path)] == [2e-3]


def test_a_note_cut_short_is_passed_over_and_spoils_nothing(path):
    append_notes(path, [TRIAL])
    for length in range(1, 120, 7):
        with path.open("ab") as file:
            file.write(json.dumps(TRIAL.to_json()).encode()[:length])
        append_notes(path, [replace(TRIAL, task=f"after {length}")])
    assert [trial.task for trial in read_trials(path)] == ["key", *(f"after {n}" for n in range(1, 120, 7))]


def test_a_note_of_another_kind_is_of_a_format_to_come(path):
    path.write_text('{"format": 3, "kind": "dream"}\n')
    (line,) = lw.TuningRecords.load(path).skipped
    assert line.why == "newer"


@pytest.mark.parametrize("change", [{"threads": 0}, {"threads": "2"}, {"ratio": "fast"}, {"more": 1}, {"task": None}])
def test_a_damaged_note_is_skipped(path, change):
    path.write_text(json.dumps({**TRIAL.to_json(), **change}) + "\n")
    assert read_trials(path) == ()
    assert len(lw.TuningRecords.load(path).damaged) == 1


def test_a_file_is_rewritten_as_a_whole(path):
    append_notes(path, [TRIAL, Withdrawal.of(record(3e-3), "slow")])
    lw.TuningRecords.append(path, record(1e-3), record(2e-3), record(3e-3))
    rewrite_records(path, lambda records: records[:1])
    assert list(lw.TuningRecords.load(path)) == [record(1e-3)]
    assert len(path.read_text().splitlines()) == 1
    assert {each.name for each in path.parent.iterdir()} == {"tuned.jsonl", "tuned.jsonl.lock"}
