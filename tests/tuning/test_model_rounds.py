"""How a tuned model is measured beside the untuned one: by workers whose answers tests make."""

from concurrent.futures import Future

import pytest

import loopwright as lw
from loopwright.tuning.bench import MODEL_PROCESSES, JobBench
from loopwright.tuning.bench_settings import BenchSettings
from loopwright.tuning.outcome import OutcomeKind

X = lw.var("x", (4,))
LIBRARY = lw.compile(lw.Function([X], lw.nn.exp(X)), "x86-64-v3", progress=False)


class Workers:
    """Answer each job with the next ratios."""

    def __init__(self, ratios):
        self.left, self.seeds = list(ratios), []

    def submit(self, function, job):
        self.seeds.append(job["seed"])
        given, future = self.left.pop(0), Future()
        times = {"ratio": 0.9, "low": 0.9, "high": 0.9, "seconds": (1e-3,) * len(given), "ratios": tuple(given)}
        kind = OutcomeKind.MEASURED if given else OutcomeKind.CRASHED
        future.set_result({"ready": {}, "answers": [{"kind": kind.value, **(times if given else {})}]})
        return future


def measured(ratios):
    workers = Workers(ratios)
    outcome = JobBench(workers, BenchSettings(1, 1, 1), lambda _: LIBRARY, {}).model(lw.TuningRecords([]))
    return outcome, workers.seeds


@pytest.mark.parametrize("ratio", [0.9, 1.1])
def test_it_ends_as_soon_as_it_is_clear(ratio):
    outcome, seeds = measured([[ratio] * 15] * 4)
    assert outcome.ratio == pytest.approx(ratio)
    assert seeds == [0, 1], "an even number, so that each library is loaded first as often"


def test_there_are_more_processes_while_it_is_not_clear():
    outcome, seeds = measured([[0.99, 1.02] * 10] * 4)
    assert len(seeds) == MODEL_PROCESSES == 4
    assert len(outcome.ratios) == len(outcome.seconds) == 80
    assert outcome.ratio == pytest.approx(1.005), "the median of all rounds, which no bound below it contradicts"


def test_a_process_that_dies_ends_it():
    outcome, seeds = measured([[1.1] * 15, []])
    assert outcome.kind is OutcomeKind.CRASHED
    assert len(seeds) == 2
