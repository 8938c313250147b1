"""The run of tuning on a bench that tests make: what is searched, believed, written, taken back, and repeated."""

import json
import math
from dataclasses import fields, replace

import pytest
from tuning_spaces import MadeUpSpace

import loopwright as lw
from loopwright.compiler.fusion.closed_function import entry_symbol
from loopwright.tuning.journal import Journal
from loopwright.tuning.outcome import Outcome, OutcomeKind
from loopwright.tuning.rewrite_search import RewritesFound
from loopwright.tuning.searcher import searcher_named
from loopwright.tuning.task import TuningTask
from loopwright.tuning.tuner import Tuner, TuningBudget

TARGET = lw.resolve_target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3")
A, B, C = lw.var("a", (24, 64)), lw.var("b", (64, 48)), lw.var("c", (48, 40))
MODEL = lw.Function([A, B, C], lw.nn.relu(lw.nn.matmul(lw.nn.relu(lw.nn.matmul(A, B)), C)))


class MadeUpTask(TuningTask):
    """A task of made-up decisions, which are settled at once."""

    __slots__ = ()

    def space(self, records=None):
        return MadeUpSpace()


TASKS = tuple(MadeUpTask(*(getattr(task, field.name) for field in fields(task))) for task in lw.tasks(MODEL, TARGET))


def rows_count(candidate):
    """Three rows are the best, 1.5 times as fast; other implementations are slower."""
    if candidate.implementation != "matmul.paneled":
        return 0.8
    return 1.5 / (1 + 0.1 * abs(candidate.decided["rows"] - 3))


class MadeUpBench:
    """``gain`` is the truth of candidates. What is confirmed and what the model does is as ``confirmed`` and ``model``
    say, by default the truth."""

    def __init__(self, gain=rows_count, confirmed=None, model=lambda records: 1.1, seconds=1e-3, kind=None):
        self.gain, self.confirmed_gain = gain, confirmed or gain
        self.model_gain, self.seconds, self.kind = model, seconds, kind
        self.tried, self.models, self.confirmations = [], [], []

    def untuned(self, tasks):
        return [self.untuned_one(task) for task in tasks]

    def untuned_one(self, task):
        return Outcome(OutcomeKind.MEASURED, 1.0, 1.0, 1.0, (self.seconds,) * len(task.uses))

    def try_all(self, task, candidates, known):
        self.tried += [(task.key, candidate.key) for candidate in candidates]
        return [self.outcome(self.gain(c)) if self.kind is None else Outcome(self.kind) for c in candidates]

    def confirm(self, task, candidate):
        self.confirmations.append(candidate)
        return self.outcome(self.confirmed_gain(candidate), 36)

    def model(self, records):
        self.models.append(records)
        return self.outcome(self.model_gain(list(records)), 15)

    @staticmethod
    def outcome(ratio, rounds=5):
        return Outcome(OutcomeKind.MEASURED, ratio, ratio, ratio, (1e-3 / ratio,) * rounds, (ratio,) * rounds)


class Clock:
    """Each look takes a second."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


def tuned(path, bench, tasks=TASKS, searcher="evolution", seconds=1e9, seed=0, listener=lambda _: None):
    budget = TuningBudget(seconds, Clock())
    return Tuner(tasks, bench, Journal(path, 1), searcher_named(searcher), budget, seed, listener).run()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tuned.jsonl"


def test_the_fastest_is_found_and_recorded(path):
    report = tuned(path, MadeUpBench())
    records = lw.TuningRecords.load(path)
    assert report.written == len(records) == len(TASKS) == 2
    for record in records:
        assert record.implementation == "matmul.paneled"
        assert json.loads(record.decisions)["rows"] == 3
        assert record.cost == pytest.approx(1e-3 / 1.5)
        assert record.threads == 1
    assert report.gain == 1.1
    (schedule,) = lw.function_schedules(MODEL, entry_symbol(TASKS[0].uses[0].function), TARGET, records=path).values()
    assert {d.name: d.value for d in schedule.decisions}["rows"] == 3


def test_nothing_that_is_not_faster_is_recorded(path):
    report = tuned(path, MadeUpBench(gain=lambda _: 0.99))
    assert (report.written, report.gain) == (0, 1.0)
    assert len(lw.TuningRecords.load(path)) == 0


def test_a_winner_that_new_processes_do_not_find_faster_is_not_recorded(path):
    bench = MadeUpBench(confirmed=lambda _: 1.0)
    report = tuned(path, bench)
    assert report.written == 0
    assert len(bench.confirmations) == 2 * len(TASKS)
    assert bench.models == []


def test_the_error_is_shared_by_all_tasks(path):
    """Nine rounds of ten that are faster: enough for one task, not for many."""

    class Nearly(MadeUpBench):
        def confirm(self, task, candidate):
            return Outcome(OutcomeKind.MEASURED, 1.2, 0.9, 1.3, (1e-3,) * 10, (0.9, *(1.2,) * 9))

    assert tuned(path, Nearly(), TASKS[:1]).written == 1
    many = Tuner(TASKS, Nearly(), Journal(path.with_name("b"), 1), searcher_named("grid"), TuningBudget(9), 0, print)
    many._tasks = list(TASKS) * 20
    assert not many._confirmed(TASKS[0], TASKS[0].space().settle("matmul.paneled", {}).candidate).low > 1


def test_a_bound_above_one_is_not_enough_where_a_process_found_no_gain(path):
    class Contradictory(MadeUpBench):
        def confirm(self, task, candidate):
            return Outcome(OutcomeKind.MEASURED, 0.99, 0.99, 1.1, (1e-3,) * 36, (1.01,) * 36)

    assert tuned(path, Contradictory()).written == 0


def test_records_are_taken_back_where_the_model_is_not_faster(path):
    report = tuned(path, MadeUpBench(model=lambda records: 0.97))
    assert (report.written, report.taken_back, report.gain) == (2, 2, 1.0)
    assert len(lw.TuningRecords.load(path)) == 0
    assert path.read_text().count('"withdrawn"') == 2


def test_rewrites_of_before_are_taken_back_too_and_are_none_of_this_run(path):
    workload = replace(TASKS[0].workload, op=f"rewrite:{TASKS[0].workload.op}")
    journal = Journal(path, 1)
    known = journal.replace([], lw.TuningRecord.of_workload(workload, TARGET, "nn.other(-, -)", [1.0], threads=1))
    bench, budget = MadeUpBench(gain=lambda candidate: 0.5, model=lambda records: 0.97), TuningBudget(9.0)
    rewrites = RewritesFound(records=(known,))
    report = Tuner(TASKS, bench, journal, searcher_named("grid"), budget, 0, lambda _: None, rewrites).run()
    assert (report.written, report.taken_back, report.gain) == (0, 0, 1.0)
    assert len(lw.TuningRecords.load(path)) == 0


def test_bisection_keeps_the_half_by_which_the_model_is_faster(path):
    def without(records):
        bad = any(record.workload == TASKS[0].workload for record in records)
        return 0.9 if bad else 1.05

    report = tuned(path, MadeUpBench(model=without))
    assert (report.written, report.taken_back, report.gain) == (2, 1, 1.05)
    (left,) = lw.TuningRecords.load(path)
    assert left.workload == TASKS[1].workload


def test_wrong_results_of_the_model_take_records_back(path):
    class Wrong(MadeUpBench):
        def model(self, records):
            return Outcome(OutcomeKind.WRONG, detail="off")

    assert tuned(path, Wrong()).taken_back == 2


@pytest.mark.parametrize("kind", [k for k in OutcomeKind if k not in (OutcomeKind.MEASURED, OutcomeKind.SAME)])
def test_a_run_in_which_all_fail_ends(path, kind):
    report = tuned(path, MadeUpBench(kind=kind))
    assert report.written == 0
    assert all(task.failed == task.tried > 0 for task in report.tasks)
    left_out = [task.state.startswith("left out: foreign worker") for task in report.tasks]
    assert left_out == [kind is OutcomeKind.FOREIGN] * len(TASKS)


def test_a_task_whose_untuned_code_fails_is_left_out(path):
    class Half(MadeUpBench):
        def untuned_one(self, task):
            return Outcome(OutcomeKind.CRASHED, detail="it died") if task is TASKS[0] else super().untuned_one(task)

    report = tuned(path, Half())
    assert report.written == 1
    assert report.tasks[0].state == "left out: crashed: it died"


def test_a_run_ends_when_its_time_is_up(path):
    bench = MadeUpBench()
    report = tuned(path, bench, seconds=30)
    assert 0 < report.measured < 200


def test_the_most_of_a_short_time_goes_to_the_search_of_what_takes_the_longest(path):
    """Of a model of many tasks those of the smallest shares are not even measured then."""

    class Slow(MadeUpBench):
        def untuned(self, tasks):
            clock.now += 4 * len(tasks)
            return super().untuned(tasks)

    clock, bench = Clock(), Slow()
    many = [replace(TASKS[0], key=str(number), share=0.9**number / 10) for number in range(40)]
    budget = TuningBudget(200, clock)
    report = Tuner(many, bench, Journal(path, 1), searcher_named("grid"), budget, 0, lambda _: None).run()
    assert report.tasks[0].tried > 0
    assert [task.state for task in report.tasks[16:]] == ["there was no time for it"] * 24
    assert clock.now < 200


def test_where_no_time_is_left_nothing_is_measured(path):
    bench = MadeUpBench(gain=None)
    bench.untuned = None
    report = tuned(path, bench, seconds=0.0)
    assert {task.state for task in report.tasks} == {"there was no time for it"}


def test_a_run_ends_by_itself_when_nothing_is_left_to_gain(path):
    report = tuned(path, MadeUpBench(gain=lambda _: 1.0))
    assert report.measured < 600


def test_a_task_of_which_the_model_takes_more_time_is_searched_first(path):
    class Uneven(MadeUpBench):
        def untuned_one(self, task):
            seconds = 1e-3 if task is TASKS[1] else 1e-6
            return Outcome(OutcomeKind.MEASURED, 1.0, 1.0, 1.0, (seconds,))

    bench = Uneven()
    report = tuned(path, bench, seconds=40)
    assert bench.tried[0][0] == TASKS[1].key
    assert report.tasks[1].tried > report.tasks[0].tried
    assert report.tasks[1].share > 0.9


# The file is the state.


def test_a_second_run_measures_nothing_again_and_repeats_the_search(path):
    first = MadeUpBench()
    one = tuned(path, first, seed=5)
    assert len(set(first.tried)) == len(first.tried) == one.measured
    again = MadeUpBench()
    two = tuned(path, again, seed=5)
    assert again.tried == []
    assert (two.measured, two.written) == (0, 0)
    assert [task.tried for task in two.tasks] == [task.tried for task in one.tasks]
    assert [task.best for task in two.tasks] == [task.best for task in one.tasks]


@pytest.mark.parametrize("after", [1, 3, 7])
def test_an_interrupted_run_goes_on_where_it_was(path, after):
    """After so many eighths of a whole run's batches, which are as many as the numbers drawn for a task make it."""

    class Interrupting(MadeUpBench):
        def __init__(self, batches=1000):
            super().__init__()
            self.batches, self.begun = batches, 0

        def try_all(self, task, candidates, known):
            if self.begun == self.batches:
                raise KeyboardInterrupt
            self.begun += 1
            return super().try_all(task, candidates, known)

    whole = Interrupting()
    tuned(path.with_name("whole.jsonl"), whole)
    first = Interrupting(whole.begun * after // 8)
    with pytest.raises(KeyboardInterrupt):
        tuned(path, first)
    with path.open("ab") as file:
        file.write(b'{"format": 3, "kind": "trial", "task": "cut sho')
    second = MadeUpBench()
    report = tuned(path, second)
    assert not set(first.tried) & set(second.tried)
    assert first.tried + second.tried == whole.tried
    assert report.written == 2


def test_what_a_lost_or_foreign_worker_says_is_not_noted(path):
    for kind in (OutcomeKind.LOST, OutcomeKind.FOREIGN):
        tuned(path, MadeUpBench(kind=kind), seconds=40)
    bench = MadeUpBench()
    assert tuned(path, bench).written == 2


def test_a_faster_record_replaces_one_of_the_file(path):
    tuned(path, MadeUpBench(gain=lambda c: 1.2 if c.decided.get("rows") == 2 else 0.9))
    before = lw.TuningRecords.load(path)
    assert {json.loads(record.decisions)["rows"] for record in before} == {2}
    other = path.with_name("other.jsonl")
    lw.TuningRecords.append(other, *before)
    tuned(other, MadeUpBench())
    after = lw.TuningRecords.load(other)
    assert {json.loads(record.decisions)["rows"] for record in after} == {3}
    assert len(after) == len(before)


def test_a_file_of_many_runs_is_one_of_each_by_concatenation(path):
    tuned(path, MadeUpBench(), TASKS[:1])
    other = path.with_name("other.jsonl")
    tuned(other, MadeUpBench(), TASKS[1:])
    merged = path.with_name("merged.jsonl")
    merged.write_bytes(path.read_bytes() + other.read_bytes())
    bench = MadeUpBench()
    assert tuned(merged, bench).measured == 0
    assert len(lw.TuningRecords.load(merged)) == 2


def test_progress_is_told(path):
    told = []
    tuned(path, MadeUpBench(), listener=told.append)
    phases = [progress.phase for progress in told]
    assert phases[0] == "measuring what is to be tuned, 2 of 2 tasks"
    assert phases[-1] == "comparing the model tuned with the same untuned"
    assert any(phase.startswith("confirming the winner of") for phase in phases)
    last = told[-1].tasks[0]
    assert last.gain == pytest.approx(1.5)
    assert math.isclose(sum(task.share for task in told[-1].tasks), 1)
    assert "1.50×" in str(tuned(path, MadeUpBench()))
