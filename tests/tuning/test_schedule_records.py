"""Schedules of tensor expressions in files of records: kept, found again, and what searches of others begin with."""

import json
import logging

import numpy as np
import pytest
from te_computes import CASES

import loopwright as lw
from loopwright import te
from loopwright.compiler.selection.recorded_schedule import compute_workload
from loopwright.schedules.auto.candidates import Scheduling
from loopwright.tuning.compute_space import BY_RULES
from loopwright.tuning.journal import Journal
from loopwright.tuning.outcome import Outcome, OutcomeKind
from loopwright.tuning.report import listener_of
from loopwright.tuning.schedule_search import ScheduleSearch

V3, V4 = (lw.resolve_target(f"llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-{level}") for level in ("v3", "v4"))
END_OF_TIME = float("inf")


def product(rows=13, columns=16, steps=8):
    A, B = te.placeholder((rows, steps), name="A"), te.placeholder((steps, columns), name="B")
    r = te.reduce_axis((0, steps), name="r")
    return te.compute((rows, columns), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")


class MadeUpBench:
    """Two rows are the best, twice as fast as the first schedule; ``confirmed`` is what new processes say."""

    def __init__(self, confirmed=2.0):
        self.confirmed, self.tried = confirmed, []

    def try_all(self, schedules):
        self.tried += schedules
        return [self.outcome(2.0 if self.rows(schedule) == 2 else 0.5) for schedule in schedules]

    def confirm(self, schedule):
        assert self.rows(schedule) == 2
        return self.outcome(self.confirmed)

    @staticmethod
    def rows(schedule):
        return {decision.name: decision.value for decision in schedule.decisions}.get("C.rows")

    @staticmethod
    def outcome(ratio):
        return Outcome(OutcomeKind.MEASURED, ratio, ratio, ratio, (1e-6,) * 3, (ratio,) * 36)


def by_rows(space, rng):
    """A searcher that proposes what the space begins with, then tiles of 1, 2, 3, … rows."""
    settled = (space.settle(BY_RULES, {"C.rows": rows}) for rows in range(1, 11))
    found = {candidate.key: candidate for candidate in (*space.starts, *(each.candidate for each in settled))}

    class ByRows:
        def __init__(self):
            self.left = list(found.values())

        def propose(self, count):
            taken, self.left = self.left[:2], self.left[2:]
            return taken

        def observe(self, results):
            """It knows what comes next."""

    return ByRows()


def search(output, path, bench, target=V3, measurements=6):
    of = Scheduling([output], target, lw.schedule_rules())
    first = lw.autoschedule(output, target, candidates=2)
    workload, journal = compute_workload([output], True), Journal(path, 1)
    searching = ScheduleSearch(of, workload, first, bench, journal, by_rows, 0, listener_of(None))
    return searching.run(measurements, END_OF_TIME)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """A file with the record of a product, and the run that wrote it."""
    path = tmp_path_factory.mktemp("records") / "tuned.jsonl"
    return path, search(product(), path, MadeUpBench())


def test_the_winner_is_recorded_and_given_again(tuned):
    path, found = tuned
    (record,) = lw.TuningRecords.load(path)
    assert (record.workload.op, record.implementation, record.threads) == ("te:C", BY_RULES, 1)
    assert [a.shape for a in record.workload.arguments] == [(13, 8), (8, 16), (13, 16)]
    assert found.gain == 2.0
    assert MadeUpBench.rows(found.schedule) == 2
    again = lw.autoschedule(product(), V3, records=path)
    assert again.trace == found.schedule.trace
    assert lw.autoschedule([product()], V3, records=lw.TuningRecords.load(path)).trace == again.trace


@pytest.mark.parametrize(
    "asked",
    [
        {"outputs": product(14)},
        {"target": V3.with_threads(2)},
        {"target": lw.resolve_target("llvm -mtriple=aarch64-linux-gnu")},
        {"reassociate": False},
    ],
    ids=lambda given: next(iter(given)),
)
def test_what_was_recorded_for_something_else_is_not_taken(tuned, asked):
    path, found = tuned
    asked = {"outputs": product(), "target": V3, "candidates": 2} | asked
    assert lw.autoschedule(**asked, records=path).trace == lw.autoschedule(**asked).trace != found.schedule.trace


def test_a_trace_that_is_refused_is_told_and_passed_over(tuned, tmp_path, caplog):
    path, _ = tuned
    (line,) = (line for line in path.read_text().splitlines() if '"workload"' in line)
    data = json.loads(line)
    data["trace"]["steps"][-1] = {"primitive": "compute_inline", "stage": "C"}
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_text(json.dumps(data) + "\n")
    with caplog.at_level(logging.WARNING, "loopwright.records"):
        made = lw.autoschedule(product(), V3, candidates=2, records=damaged)
    assert made.trace == lw.autoschedule(product(), V3, candidates=2).trace
    assert "a recorded schedule is passed over" in caplog.text


def test_a_run_goes_on_where_it_was_interrupted(tmp_path):
    class Interrupted(MadeUpBench):
        def try_all(self, schedules):
            if len(self.tried) >= 4:
                raise KeyboardInterrupt
            return super().try_all(schedules)

    path, first, second = tmp_path / "tuned.jsonl", Interrupted(), MadeUpBench()
    with pytest.raises(KeyboardInterrupt):
        search(product(), path, first)
    found = search(product(), path, second)
    assert len(first.tried) == 4
    assert len(found.tried) == 6
    assert len(second.tried) == 6 - 4
    whole = search(product(), None, MadeUpBench())
    assert list(whole.tried) == list(found.tried)
    assert whole.schedule.trace == found.schedule.trace


def test_what_is_not_confirmed_is_no_record(tmp_path):
    path = tmp_path / "tuned.jsonl"
    found = search(product(), path, MadeUpBench(confirmed=0.99))
    assert found.gain == 1.0
    assert found.schedule is found.candidates[0].schedule
    assert len(lw.TuningRecords.load(path)) == 0


@pytest.mark.parametrize(("output", "target"), [(product(14, 20), V3), (product(), V4)], ids=["shape", "target"])
def test_a_search_begins_with_what_is_known_of_other_shapes_and_targets(tuned, tmp_path, output, target):
    path = tmp_path / "copy.jsonl"
    path.write_text(tuned[0].read_text())
    bench = MadeUpBench()
    search(output, path, bench, target, measurements=2)
    assert 2 in [bench.rows(schedule) for schedule in bench.tried]
    records = [r for r in lw.TuningRecords.load(path) if r.workload == compute_workload([output], True)]
    assert [r.target.cpu for r in records if r.target.cpu == target.cpu] == [target.cpu]


def test_workloads_tell_expressions_apart():
    workloads = [compute_workload([each], True) for each in (product(), product(), product(12))]
    assert workloads[0] == workloads[1] != workloads[2]
    A = te.placeholder((8,), name="A")
    r = te.reduce_axis((0, 8), name="r")
    sums = [te.compute((), lambda *, e=e: te.sum(A[r] * e, axis=r), name="S") for e in (2.0, 3.0)]
    scalars = [compute_workload([each], True) for each in sums]
    assert scalars[0] != scalars[1]
    assert scalars[0].arguments[1].shape == ()
    n = te.var("n")
    assert compute_workload([te.compute((n,), lambda i: i * 2, name="T")], True) is None


def test_models_and_tensors_are_tuned_by_one_function(tmp_path):
    case, path = CASES["gelu"](13, 40), tmp_path / "tuned.jsonl"

    def none(space, rng):
        class Nothing:
            def propose(self, count):
                return []

            def observe(self, results):
                """Nothing comes."""

        return Nothing()

    found = lw.tune(case.outputs, path, threads=1, searcher=none)
    assert (found.gain, found.tried) == (1.0, {})
    arrays, results = case.arrays(), case.results()
    lw.build(found.schedule, [*case.inputs, *case.outputs])(*arrays, *results)
    np.testing.assert_allclose(results[0], case.reference(*arrays), rtol=1e-4, atol=1e-4)
    with pytest.raises(lw.RuntimeArgumentError, match="only= is for models; tensor expressions are tuned without it"):
        lw.tune(case.outputs[0], path, only=["nn.matmul"])
    with pytest.raises(lw.RecordError, match="records should be the path of a file"):
        lw.tune(case.outputs[0], None)
    with pytest.raises(lw.RecordError, match="records= takes the path of a file"):
        lw.autoschedule(case.outputs, records=3)


@pytest.mark.parametrize(("end", "batches"), [(1.0, 1), (25.0, 2)])
def test_a_batch_that_would_not_end_in_time_is_not_begun(tmp_path, monkeypatch, end, batches):
    """Each is of one candidate and takes ten seconds; the first one is always tried."""
    clock = [0.0]

    class Slow:
        def try_all(self, schedules):
            clock[0] += 10
            return [MadeUpBench.outcome(0.5)]

    class OneByOne:
        def __init__(self, space, rng):
            self.left = [space.settle(BY_RULES, {"C.rows": rows}).candidate for rows in (1, 2, 3)]

        def propose(self, count):
            return [self.left.pop()]

        def observe(self, results):
            """It knows what comes next."""

    monkeypatch.setattr("loopwright.tuning.schedule_search.time.monotonic", lambda: clock[0])
    output, journal = product(), Journal(tmp_path / "t.jsonl", 1)
    first, of = lw.default_schedule(output, V3), Scheduling([output], V3, lw.schedule_rules())
    workload = compute_workload([output], True)
    found = ScheduleSearch(of, workload, first, Slow(), journal, OneByOne, 0, listener_of(None)).run(100, end)
    assert len(found.tried) == batches
