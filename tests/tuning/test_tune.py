"""``lw.tune`` for real: a small model, on this machine, with workers of several kinds."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading

import needed_tools
import numpy as np
import pytest

import loopwright as lw
from loopwright.artifact.records.record_file import read_trials
from loopwright.tuning.bench import JobBench
from loopwright.tuning.bench_settings import BenchSettings
from loopwright.tuning.workers import LocalWorkers

A, B = lw.var("a", (16, 48)), lw.var("b", (48, 16))
MODEL = lw.Function([A, B], lw.nn.relu(lw.nn.matmul(A, B)))


def few(space, rng):
    """A searcher that proposes nine candidates."""

    class Few:
        left = 3

        def propose(self, count):
            self.left -= 1
            names = space.implementations if self.left == 2 else space.implementations[:1] if self.left >= 0 else ()
            return [space.settle(name, {"rows": 1 + 2 * self.left}).candidate for name in names]

        def observe(self, results):
            self.results = results

    return Few()


def check(path, report):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((16, 48), (48, 16)))
    library = lw.compile(MODEL, jobs=1, records=path)
    np.testing.assert_allclose(lw.Engine(library)([a, b])[0], np.maximum(a @ b, 0), rtol=1e-4, atol=1e-4)
    names = {name for task in lw.tasks(MODEL) for name in task.implementations}
    trials = [trial for trial in read_trials(path) if trial.implementation in names]
    assert len(trials) == len({(t.implementation, t.decisions) for t in trials}) == report.tries > 2
    assert {trial.outcome for trial in trials} <= {"measured", "same code"}
    assert len(lw.TuningRecords.load(path)) == report.written - report.taken_back
    assert all(record.cost > 0 for record in lw.TuningRecords.load(path))


def test_a_model_is_tuned(tmp_path):
    path, told = tmp_path / "tuned.jsonl", []
    report = lw.tune(MODEL, path, minutes=60, threads=1, searcher=few, progress=told.append)
    check(path, report)
    assert str(report)
    assert {progress.phase.split()[0] for progress in told} >= {"measuring", "tuning"}


def test_a_model_without_a_choice_has_nothing_to_tune(tmp_path):
    report = lw.tune(lw.Function([A], lw.nn.relu(A)), tmp_path / "t.jsonl", threads=1)
    assert (report.tasks, report.tries, report.gain) == ((), 0, 1.0)


def test_a_cluster_that_loses_a_worker_tunes_a_model(tmp_path):
    distributed = needed_tools.module("distributed", "tune")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        victim = next(iter(client.run(os.getpid).values()))
        kill = threading.Timer(0.5, os.kill, (victim, signal.SIGKILL))

        def listen(progress):
            if progress.phase.startswith("tuning") and kill.ident is None:
                kill.start()

        more = {"workers": client.get_executor(), "jobs": 2, "searcher": few, "progress": listen}
        report = lw.tune(MODEL, tmp_path / "t.jsonl", minutes=60, **more)
    check(tmp_path / "t.jsonl", report)


@contextlib.contextmanager
def cluster_of_processes(port):
    """A scheduler and a worker of Dask, which are killed at the end."""
    address = f"tcp://127.0.0.1:{port}"
    commands = (
        ["distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard", "--no-show"],
        ["distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny"],
    )
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    processes = [subprocess.Popen([sys.executable, "-m", *command], **quiet) for command in commands]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.slow
def test_a_scheduler_that_is_restarted_loses_no_measurement(tmp_path):
    distributed = needed_tools.module("distributed", "tune")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with contextlib.ExitStack() as first, contextlib.ExitStack() as second:
        first.enter_context(cluster_of_processes(port))
        client = second.enter_context(distributed.Client(f"tcp://127.0.0.1:{port}", timeout=300))
        client.wait_for_workers(1, 300)

        def restart():
            first.close()
            second.enter_context(cluster_of_processes(port))

        restarting = threading.Timer(0.5, restart)

        def listen(progress):
            if progress.phase.startswith("tuning") and restarting.ident is None:
                restarting.start()

        more = {"workers": client.get_executor(), "jobs": 1, "searcher": few, "progress": listen, "threads": 1}
        report = lw.tune(MODEL, tmp_path / "t.jsonl", minutes=60, **more)
        restarting.join()
    check(tmp_path / "t.jsonl", report)


def test_a_winner_is_measured_afresh_in_three_processes_in_all_functions_of_its_workload():
    c = lw.var("c", (16, 48))
    both = lw.Function([A, B, c], lw.nn.relu(lw.nn.matmul(A, B)) + lw.nn.exp(lw.nn.matmul(c, B)))
    (task,) = lw.tasks(both, only=["nn.matmul"])
    assert len(task.uses) == 2
    workers = LocalWorkers(2)
    try:
        bench = JobBench(workers, BenchSettings(2, 2, 1), lambda records: None, {})
        (untuned,) = bench.untuned([task])
        found = bench.confirm(task, task.space().settle("matmul.paneled", {"rows": 1}).candidate)
    finally:
        workers.close()
    assert len(untuned.seconds) == 2
    assert found.is_timed
    assert len(found.ratios) in (12, 36)  # of the process that found no gain, or of all
    assert len(found.seconds) == 36


def test_where_there_is_nothing_to_tune_it_is_said(tmp_path):
    x = lw.var("x", (4, 4))
    plain = lw.tune(lw.Function([x], lw.nn.exp(x)), tmp_path / "t.jsonl", threads=1)
    assert plain.lines() == [
        "nothing is tuned: each operator has open dimensions, which shapes would fix, or one way to be computed"
    ]
    other = lw.tune(lw.Function([x], lw.nn.matmul(x, x)), tmp_path / "t.jsonl", threads=1, only=["nn.conv2d"])
    assert other.lines() == ["nothing is tuned: there are tasks of nn.matmul, and none of nn.conv2d"]
    assert not (tmp_path / "t.jsonl").exists()
