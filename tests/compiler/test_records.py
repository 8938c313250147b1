"""Tuning records: what a line holds, what look-ups find, how files are written by several and read when damaged."""

import json
import logging
import subprocess
import sys
from dataclasses import replace

import pytest

import loopwright as lw
from loopwright import te
from loopwright.artifact.records.record import FORMAT
from loopwright.artifact.records.workload import Workload
from loopwright.compiler.selection.records import Level
from loopwright.compiler.selection.workload import workload_of

TARGET = lw.resolve_target("llvm -mtriple=x86_64-linux-gnu -mcpu=znver4")


def matmul(m=8, n=16, k=32):
    return lw.nn.matmul(lw.var("a", (m, k)), lw.var("b", (k, n)))


def record(seconds=(1e-3,), call=None, target=TARGET, implementation="matmul.direct", **more):
    return lw.TuningRecord.of(matmul() if call is None else call, target, implementation, seconds, **more)


def trace():
    x = te.placeholder((8, 16), "float32", name="x")
    y = te.compute((8, 16), lambda i, j: x[i, j] + 1.0, name="y")
    s = lw.create_schedule(y)
    s[y].vectorize(y.op.axis[1])
    return s.trace


# A line.


def test_a_record_says_all_that_its_use_needs():
    made = record((3e-3, 1e-3, 2e-3), decisions={"rows": 4}, time="2026-11-21").to_json()
    assert made["format"] == FORMAT
    arguments = [{"shape": [8, 32], "dtype": "float32"}, {"shape": [32, 16], "dtype": "float32"}]
    assert (made["workload"]["op"], made["workload"]["arguments"]) == ("nn.matmul", arguments)
    assert made["target"]["cpu"] == "znver4"
    assert "+avx2" in made["target"]["line"]
    assert made["target"]["keys"] == ["x86", "cpu", "generic"]
    assert made["implementation"] == "matmul.direct"
    assert made["decisions"] == {"rows": 4}
    assert made["seconds"] == [3e-3, 1e-3, 2e-3]
    assert made["versions"]["loopwright"] == lw.__version__
    assert made["time"] == "2026-11-21"


@pytest.mark.parametrize(
    "more",
    [{}, {"decisions": {"b": 1, "a": "x", "c": True}}, {"trace": trace()}, {"time": "now"}, {"threads": 2}],
    ids=str,
)
def test_what_is_written_reads_back(more):
    made = record(**more)
    assert lw.TuningRecord.from_json(json.loads(json.dumps(made.to_json()))) == made


def test_the_cost_is_the_median():
    assert record((3e-3, 1e-3, 2e-3)).cost == 2e-3


def test_workloads_differ_in_operator_shapes_dtypes_and_attributes():
    x = lw.var("x", (4, 8))
    calls = [
        lw.nn.softmax(x, axis=0),
        lw.nn.softmax(x, axis=1),
        lw.nn.softmax(lw.var("x", (4, 9)), axis=1),
        lw.nn.softmax(lw.var("x", (4, 8), "float64"), axis=1),
        lw.nn.exp(x),
    ]
    found = [workload_of(call) for call in calls]
    assert len(set(found)) == len(found)
    assert [Workload.from_json(w.to_json()) for w in found] == found
    assert workload_of(lw.nn.softmax(lw.var("other", (4, 8)), axis=1)) == found[1]


def test_a_symbolic_shape_has_no_workload():
    assert workload_of(matmul(m=te.var("m"))) is None


# Look-ups.


def test_the_cheapest_of_the_closest_level_comes_first():
    other_features = replace(TARGET, features=TARGET.features - {"avx512f"})
    other_cpu = lw.resolve_target("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake")
    other_keys = lw.resolve_target("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1")
    records = lw.TuningRecords(
        [
            record((1e-6,), target=other_keys),
            record((1e-5,), target=other_cpu),
            record((1e-4,), target=other_features),
            record((3e-3,)),
            record((2e-3,), implementation="matmul.paneled"),
            record((1e-7,), call=matmul(m=9)),
        ]
    )
    found = records.lookup(workload_of(matmul()), TARGET)
    assert [(m.level, m.record.cost) for m in found] == [
        (Level.TARGET, 2e-3),
        (Level.TARGET, 3e-3),
        (Level.MODEL, 1e-4),
        (Level.KEYS, 1e-5),
    ]
    assert records.best(workload_of(matmul()), TARGET) == found[0]
    assert records.best(workload_of(matmul(m=10)), TARGET) is None


def test_records_of_other_threads_do_not_count_where_the_target_says_its_own():
    records = lw.TuningRecords([record((1e-3,), threads=1), record((2e-3,), threads=2), record((3e-3,))])
    for threads, costs in ((0, [1e-3, 2e-3, 3e-3]), (1, [1e-3, 3e-3]), (2, [2e-3, 3e-3])):
        found = records.lookup(workload_of(matmul()), replace(TARGET, threads=threads))
        assert [match.record.cost for match in found] == costs


def test_of_equal_costs_the_first_written_comes_first():
    records = lw.TuningRecords([record(implementation="one"), record(implementation="two")])
    assert records.best(workload_of(matmul()), TARGET).record.implementation == "one"


def test_caches_of_another_size_are_another_target_of_the_same_model():
    records = lw.TuningRecords([record(target=replace(TARGET, l2_bytes=1 << 24))])
    assert records.best(workload_of(matmul()), TARGET).level is Level.MODEL


def test_the_digest_tells_what_look_ups_give_and_nothing_else():
    workloads = [workload_of(matmul())]
    some = lw.TuningRecords([record()])
    assert lw.TuningRecords().digest(workloads, TARGET) == ""
    unrelated = lw.TuningRecords([record(), record(call=matmul(m=9))])
    assert some.digest(workloads, TARGET) == unrelated.digest(workloads, TARGET) != ""
    changed = lw.TuningRecords([record((2e-3,))])
    assert some.digest(workloads, TARGET) != changed.digest(workloads, TARGET)
    assert some.about(workloads).digest(workloads, TARGET) == some.digest(workloads, TARGET)


# Files.


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tuned.jsonl"


def test_what_is_appended_is_loaded_in_order(path):
    made = [record((1e-3,)), record((2e-3,), decisions={"rows": 2}), record((3e-3,))]
    lw.TuningRecords.append(path, made[0])
    lw.TuningRecords.append(path, *made[1:])
    assert list(lw.TuningRecords.load(path)) == made
    assert len(path.read_text().splitlines()) == 3


def test_a_damaged_line_is_told_by_its_number_and_skipped(path, caplog):
    lw.TuningRecords.append(path, record((1e-3,)))
    no_costs = json.dumps(record().to_json() | {"seconds": []}).encode()
    with path.open("ab") as file:
        file.write(b"no json\n\n[1]\n" + no_costs + b"\n\x7b\xff\n")
    lw.TuningRecords.append(path, record((2e-3,)))
    with caplog.at_level(logging.WARNING, "loopwright.records"):
        records = lw.TuningRecords.load(path)
    assert [r.cost for r in records] == [1e-3, 2e-3]
    assert [line.number for line in records.damaged] == [2, 4, 5, 6]
    assert [f"{path}, line {n}" in m for n, m in zip((2, 4, 5, 6), caplog.messages, strict=True)] == [True] * 4


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda r: r.pop("implementation"), "the record has no field 'implementation'"),
        (lambda r: r.update(confg={}), "the record has an unknown field 'confg'"),
        (lambda r: r.update(implementation=3), "'implementation' of the record should be a string, found 3"),
        (lambda r: r.update(seconds=["1"]), "'seconds' of the record should be an array of (a number), found [\"1\"]"),
        (lambda r: r.update(seconds=[]), "at least one and all positive"),
        (lambda r: r.update(seconds=[0.0]), "at least one and all positive"),
        (lambda r: r.update(seconds=[float("nan")]), "at least one and all positive"),
        (lambda r: r.update(config=[]), "'config' of the record should be an object, found []"),
        (lambda r: r.update(trace={"version": 1}), "its trace is none"),
        (lambda r: r.update(decisions=3), "'decisions' of the record should be an object, found 3"),
        (lambda r: r.update(decisions={}, trace=json.loads(trace().to_json())), "decisions or a trace, not both"),
        (lambda r: r.update(config={}, trace=json.loads(trace().to_json())), "decisions or a trace, not both"),
        (lambda r: r.update(config={}, decisions={}), "decisions or, of format 1, a config, not both"),
        (lambda r: r["workload"].pop("op"), "the workload has no field 'op'"),
        (lambda r: r["workload"]["arguments"].append(7), "the argument should be an object, found 7"),
        (
            lambda r: r["workload"]["arguments"][0].update(shape=[True]),
            "'shape' of the argument should be an array of (an integer), found [true]",
        ),
        (lambda r: r["target"].update(l1_bytes="32K"), "'l1_bytes' of the target should be an integer, found \"32K\""),
        (lambda r: r.update(threads=0), "a record is of 1 thread or more, found 0"),
        (lambda r: r.update(format="1"), "a number from 1 as its 'format'"),
        (lambda r: r.update(format=-3), "a number from 1 as its 'format'"),
        (lambda r: r.update(config={"rows": float("nan")}), "not JSON compliant"),
        (lambda r: r["workload"].update(attributes={"alpha": float("inf")}), "not JSON compliant"),
    ],
)
def test_what_is_wrong_with_a_line_is_told(path, change, problem):
    data = record().to_json()
    change(data)
    path.write_text(json.dumps(data) + "\n")
    records = lw.TuningRecords.load(path)
    assert len(records) == 0
    assert problem in records.damaged[0].problem


def test_a_line_of_a_format_to_come_is_skipped_with_a_message(path, caplog):
    path.write_text(json.dumps({"format": FORMAT + 1, "anything": 1}) + "\n")
    lw.TuningRecords.append(path, record())
    records = lw.TuningRecords.load(path)
    assert len(records) == 1
    assert records.damaged == ()
    assert records.skipped[0].why == "newer"
    assert f"line 1: it has format {FORMAT + 1}, this version reads up to {FORMAT}" in caplog.text


def test_half_a_line_of_a_writer_that_crashed_does_not_spoil_the_next(path):
    lw.TuningRecords.append(path, record((1e-3,)))
    with path.open("a") as file:
        file.write('{"format": 1, "work')
    lw.TuningRecords.append(path, record((2e-3,)))
    records = lw.TuningRecords.load(path)
    assert [r.cost for r in records] == [1e-3, 2e-3]
    assert [line.number for line in records.damaged] == [2]


WRITER = """
import sys
import loopwright as lw
call = lw.nn.matmul(lw.var("a", (8, 32)), lw.var("b", (32, 16)))
for number in range(40):
    padding = {"writer": int(sys.argv[2]), "number": number, "text": "x" * 3000}
    made = lw.TuningRecord.of(call, "x86-64-v3", "matmul.direct", [1e-3], decisions=padding)
    lw.TuningRecords.append(sys.argv[1], made)
"""


def test_processes_that_write_at_once_lose_and_mix_nothing(path):
    command = [sys.executable, "-c", WRITER, str(path)]
    writers = [subprocess.Popen([*command, str(number)]) for number in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    records = lw.TuningRecords.load(path)
    assert records.skipped == ()
    written = [(known["writer"], known["number"]) for known in (json.loads(r.decisions) for r in records)]
    assert sorted(written) == [(writer, number) for writer in range(3) for number in range(40)]
    for writer in range(3):
        assert [number for who, number in written if who == writer] == list(range(40))
