"""Runs of tuning in which nearly all candidates are bad: each has its outcome, none ends the run or is believed."""

import json
import random
from collections import Counter

import pytest
from injected_faults import GOOD, ILLEGAL, OUTCOMES, AllInOrder, FaultyBench, NumberedTask

import loopwright as lw
from loopwright.artifact.records.record_file import read_trials
from loopwright.tuning import tuner
from loopwright.tuning.bench_settings import BenchSettings
from loopwright.tuning.journal import Journal
from loopwright.tuning.tuner import Tuner, TuningBudget
from loopwright.tuning.workers import LocalWorkers

A, B = lw.var("a", (16, 32)), lw.var("b", (32, 16))
MODEL = lw.Function([A, B], lw.nn.relu(lw.nn.matmul(A, B)))
GOOD_ONES = 4


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    """Runs go on as long as there are candidates, though nothing is gained for long."""
    monkeypatch.setattr(tuner, "FADING", 1.0)
    monkeypatch.setattr(tuner, "BATCH", 200)


def run(path, counts, seconds):
    """A run over candidates of these kinds, in a random order; what is noted of each, by its number, and the kinds."""
    kinds = [kind for kind, count in counts.items() for _ in range(count)] + [GOOD] * GOOD_ONES
    random.Random(8).shuffle(kinds)
    (task,) = lw.tasks(MODEL)
    numbered = NumberedTask.of(task, len(kinds))
    good = task.space().settle("matmul.direct", {}).candidate
    workers = LocalWorkers(2)
    try:
        bench = FaultyBench(workers, BenchSettings(2, 1, 1, measure_seconds=seconds), kinds, good)
        budget = TuningBudget(1e9)
        report = Tuner([numbered], bench, Journal(path, 1), AllInOrder, budget, 0, lambda progress: None).run()
    finally:
        workers.close()
    (found,) = report.tasks
    assert found.tried == len(kinds)
    noted = {t.decisions: t for t in read_trials(path) if t.implementation == "matmul.paneled"}
    assert len(noted) == len(kinds)
    for record in lw.TuningRecords.load(path):
        assert kinds[json.loads(record.decisions)["number"]] == GOOD
    return [(kinds[k], noted[f'{{"number":{k}}}']) for k in range(len(kinds))]


def check(noted):
    for kind, trial in noted:
        assert (trial.ratio > 0) == (kind == GOOD), f"{kind}: {trial}"
        assert trial.outcome == OUTCOMES.get(kind, GOOD), f"{kind}: {trial}"


def test_a_run_in_which_most_candidates_are_bad_believes_the_good_ones_alone(tmp_path):
    counts = {**dict.fromkeys(OUTCOMES, 1), "wrong result": 20, ILLEGAL: 20}
    check(run(tmp_path / "tuned.jsonl", counts, 10.0))


@pytest.mark.slow
def test_ten_thousand_faults_a_hundred_hangs_and_a_hundred_aborts_end_no_run(tmp_path):
    counts = {ILLEGAL: 3000, "wrong result": 3500, "not finite": 1800, "failed": 1500, "crashed": 200}
    counts |= {"hung": 100, "aborted": 100}
    noted = run(tmp_path / "tuned.jsonl", counts, 1.0)
    told = Counter(trial.outcome for _, trial in noted)
    assert told["hung"] >= 100  # a second may be too short for others too, on a busy machine
    check([(kind, trial) for kind, trial in noted if trial.outcome != "hung" or kind == "hung"])
