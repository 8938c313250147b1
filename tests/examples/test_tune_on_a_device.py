"""The runner of ``tune_on_a_device.py``: processes of this machine stand for the device, and are killed meanwhile."""

import importlib.util
import logging
import stat
import sys
from contextlib import closing
from pathlib import Path

import pytest

import loopwright as lw
from loopwright.artifact.records.record_file import read_trials
from loopwright.tuning.jobs import compile_job, measure_job, run_job
from loopwright.tuning.outcome import Outcome, OutcomeKind
from loopwright.tuning.paired_rounds import RoundLimits
from loopwright.tuning.workers import do_all

EXAMPLE = Path(__file__).parents[2] / "examples" / "tune_on_a_device.py"
LOST = """#!{python}
# What ssh is to Device: it runs the command that it is given. The first connections break once the device is at work.
import os, signal, subprocess, sys
log = {log!r}
with open(log, "a") as file:
    file.write("connected\\n")
child = subprocess.Popen(["sh", "-c", sys.argv[1]], start_new_session=True)
if sum(1 for _ in open(log)) <= {losses}:
    try:
        child.wait(timeout=0.2)
    except subprocess.TimeoutExpired:
        pass
    os.killpg(child.pid, signal.SIGKILL)
    sys.exit(255)
sys.exit(child.wait())
"""


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("tune_on_a_device", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def connection(folder, losses):
    """A command that loses the first connections, and the file that has a line for each."""
    path, log = folder / "connect", folder / "connections"
    path.write_text(LOST.format(python=sys.executable, log=str(log), losses=losses))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    log.write_text("")
    return [str(path)], log


@pytest.fixture(scope="module")
def job():
    """A product's untuned code, to be measured beside itself."""
    a, b = lw.var("a", (16, 32)), lw.var("b", (32, 16))
    (task,) = lw.tasks(lw.Function([a, b], lw.nn.matmul(a, b)))
    (made,) = run_job(compile_job(task.uses[0].function, task.settings, [None], 60.0))["answers"]
    return measure_job(
        task.settings.target, 1, [(made["code"], 2, 1)], [[made["code"]]], RoundLimits(3, 3), 0, False, 60.0
    )


def test_a_job_whose_device_is_killed_in_the_middle_is_measured_once_by_the_next_connection(
    example, job, tmp_path, caplog
):
    command, log = connection(tmp_path, losses=1)
    with caplog.at_level(logging.WARNING), closing(example.Device(command, sys.executable)) as device:
        (found,) = do_all(device, [job], sleep=lambda _: None)
    (outcome,) = map(Outcome.of, found["answers"])
    assert outcome.kind is OutcomeKind.MEASURED
    assert len(outcome.seconds) == 3
    assert log.read_text().split() == ["connected"] * 2
    assert "a worker was lost, with a job: CalledProcessError" in caplog.text


def test_a_device_that_is_never_reached_has_no_answer(example, job, tmp_path):
    command, log = connection(tmp_path, losses=9)
    with closing(example.Device(command, sys.executable)) as device:
        assert do_all(device, [job], sleep=lambda _: None) == [None]
    assert log.read_text().split() == ["connected"] * 3


def test_a_device_that_says_nothing_is_left(example, job, monkeypatch):
    monkeypatch.setattr(example, "START_SECONDS", 0.0)
    with closing(example.Device(["sh", "-c", "exec sleep 60 #"], sys.executable)) as device:
        assert do_all(device, [{**job, "seconds": 0.05}], sleep=lambda _: None) == [None]


def two(space, rng):
    """A searcher that proposes two candidates."""

    class Two:
        def __init__(self):
            self.left = [space.settle(name, {}).candidate for name in space.implementations[:2]]

        def propose(self, count):
            proposed, self.left = self.left, []
            return proposed

        def observe(self, results):
            self.results = results

    return Two()


@pytest.mark.slow
def test_a_search_goes_on_over_lost_connections_and_notes_each_candidate_once(example, tmp_path):
    command, log = connection(tmp_path, losses=2)
    x, w = lw.var("x", (24, 48)), lw.var("w", (48, 32))
    model, records = lw.Function([x, w], lw.nn.matmul(x, w)), tmp_path / "tuned.jsonl"
    with closing(example.Device(command, sys.executable)) as device:
        report = lw.tune(model, records, minutes=60, workers=device, threads=1, searcher=two)
    assert len(log.read_text().split()) > 3
    trials = [trial for trial in read_trials(records) if trial.implementation.startswith("matmul.")]
    assert len({(trial.implementation, trial.decisions) for trial in trials}) == len(trials) == report.tries == 2
    assert {trial.outcome for trial in trials} <= {"measured", "same code"}
