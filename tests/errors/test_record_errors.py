"""Misuse of tuning records, and files of them that are damaged."""

import json

import pytest

import loopwright as lw
from loopwright import te


def call(rows=4):
    return lw.nn.softmax(lw.var("x", (rows, 8)))


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(lw.RecordError, match=r"none\.jsonl cannot be read: No such file"):
        lw.TuningRecords.load(tmp_path / "none.jsonl")


def test_a_file_that_cannot_be_written_is_told(tmp_path):
    made = lw.TuningRecord.of(call(), "native", "softmax.rows", [1e-3])
    with pytest.raises(lw.RecordError, match=r"cannot be written: Is a directory"):
        lw.TuningRecords.append(tmp_path, made)


def test_a_record_of_a_symbolic_shape_is_refused():
    with pytest.raises(lw.RecordError, match=r"known shapes; softmax is called with float32\[n, 8\]"):
        lw.TuningRecord.of(call(te.var("n")), "native", "softmax.rows", [1e-3])


@pytest.mark.parametrize("seconds", [[], [0.0], [-1.0], [float("inf")], [float("nan"), 1.0]])
def test_costs_that_are_none_are_refused(seconds):
    with pytest.raises(lw.RecordError, match="at least one and all positive"):
        lw.TuningRecord.of(call(), "native", "softmax.rows", seconds)


@pytest.mark.parametrize("decisions", [{"tile": object()}, {"tile": 1.5}, {"tile": None}, {"tile": [1]}, {1: 1}, 3])
def test_decisions_that_are_no_plain_values_are_refused(decisions):
    with pytest.raises(lw.RecordError, match="decisions are integers, bools and strings by their names, found"):
        lw.TuningRecord.of(call(), "native", "softmax.rows", [1e-3], decisions=decisions)


@pytest.mark.parametrize("seconds", [1e-3, None, ["fast"]])
def test_costs_that_are_no_list_of_numbers_are_refused(seconds):
    with pytest.raises(lw.RecordError, match="a list of seconds"):
        lw.TuningRecord.of(call(), "native", "softmax.rows", seconds)


def test_a_trace_is_a_trace_and_a_name_a_name():
    with pytest.raises(
        lw.RecordError, match=r"a trace as s\.trace or lw\.Trace\.from_json\(text\) gives it, found 'split'"
    ):
        lw.TuningRecord.of(call(), "native", "softmax.rows", [1e-3], trace="split")
    with pytest.raises(lw.RecordError, match="the name of an implementation"):
        lw.TuningRecord.of(call(), "native", None, [1e-3])


@pytest.mark.parametrize(("threads", "found"), [(0, "1 thread or more, found 0"), ("2", "a number of threads, found")])
def test_threads_that_are_no_number_are_refused(threads, found):
    with pytest.raises(lw.RecordError, match=found):
        lw.TuningRecord.of(call(), "native", "softmax.rows", [1e-3], threads=threads)


def test_a_record_is_of_a_call():
    with pytest.raises(lw.RecordError, match="a record is of a call of an operator"):
        lw.TuningRecord.of(lw.var("x", (4, 8)), "native", "softmax.rows", [1e-3])


def test_what_is_appended_is_a_record(tmp_path):
    made = lw.TuningRecord.of(call(), "native", "softmax.rows", [1e-3])
    with pytest.raises(lw.RecordError, match="only tuning records are appended to a file of them, found 'softmax'"):
        lw.TuningRecords.append(tmp_path / "tuned.jsonl", made, "softmax")
    assert not (tmp_path / "tuned.jsonl").exists()


@pytest.mark.parametrize("implementation", ["softmax.\ud800", "\udfff"])
def test_a_text_without_bytes_is_refused(implementation):
    with pytest.raises(lw.RecordError, match="a text that UTF-8 has no bytes for"):
        lw.TuningRecord.of(call(), "native", implementation, [1e-3])


def test_costs_beyond_all_floats_are_refused():
    with pytest.raises(lw.RecordError, match="a list of seconds"):
        lw.TuningRecord.of(call(), "native", "softmax.rows", [10**400])


@pytest.mark.parametrize(
    "change",
    [
        {"seconds": [10**400]},
        {"implementation": "softmax.\ud800"},
        {"workload": {"op": "softmax", "arguments": [], "attributes": {"axis": "\ud800"}}},
        {"config": {"\ud800": 1}},
        {"time": "\ud800"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_line_that_no_record_can_hold_is_damaged(tmp_path, change):
    """The lines around it are read, and what was read can be written, and has a digest."""
    path = tmp_path / "tuned.jsonl"
    made = lw.TuningRecord.of(call(), "native", "softmax.rows", [1e-3])
    lw.TuningRecords.append(path, made)
    with path.open("a") as file:
        file.write(json.dumps(made.to_json() | change) + "\n")
    lw.TuningRecords.append(path, made)
    records = lw.TuningRecords.load(path)
    assert list(records) == [made, made]
    assert [line.number for line in records.damaged] == [2]
    lw.TuningRecords.append(tmp_path / "copy.jsonl", *records)
    assert records.digest([made.workload], lw.resolve_target("native"))
