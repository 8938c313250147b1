"""``loopwright tune``: its options, what it shows, and a run that is killed and goes on."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import needed_tools
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import loopwright as lw
from loopwright.artifact.records.record_file import read_trials
from loopwright.base.table import table_text
from loopwright.cli.tune import lines_of_progress
from loopwright.tuning.dask_workers import dask_workers
from loopwright.tuning.report import TaskProgress, TuningProgress

RUN = [sys.executable, "-m", "loopwright", "tune"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    weight = np.random.default_rng(0).standard_normal((32, 24)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["s"]), helper.make_node("Relu", ["s"], ["y"])]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 32])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 24])
    graph = helper.make_graph(nodes, "small", [x], [y], [numpy_helper.from_array(weight, "w")])
    path = tmp_path_factory.mktemp("model") / "small.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def arguments(model, records, *more):
    return [*RUN, str(model), "--records", str(records), "--shape", "x=16,32", "--threads", "1", *more]


def test_tasks_that_were_not_tried_share_a_row_if_they_are_many():
    def row(number, tried, state):
        return TaskProgress(f"task_{number}", "nn.conv2d", 0.1, 1e-3, tried, 0, "", 1.0, state)

    left_out, no_time = [row(1, 0, "left out: hung")], [row(k, 0, "there was no time for it") for k in range(2, 8)]
    tasks = (row(0, 3, "nothing faster for sure"), *left_out, *no_time)
    text = table_text(TuningProgress("", tasks, 0.0).table(), 100)
    assert re.findall(r"task_\d|6 other tasks  60\.0%  6\.00 ms", text) == [
        "task_0",
        "task_1",
        "6 other tasks  60.0%  6.00 ms",
    ]
    assert all(f"task_{k}" in table_text(TuningProgress("", tasks[:6], 0.0).table(), 100) for k in range(6))


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_and_measures_nothing_twice(model, tmp_path):
    path = tmp_path / "tuned.jsonl"
    child = subprocess.Popen(arguments(model, path, "--minutes", "5"), stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 300
    while (not path.exists() or len(read_trials(path)) < 10) and time.monotonic() < end:
        time.sleep(0.1)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    before = len(read_trials(path))
    assert before >= 10
    more = ("--minutes", "0.1", "--json")
    done = subprocess.run(arguments(model, path, *more), check=True, capture_output=True, text=True, timeout=600)
    report = json.loads(done.stdout)
    trials = [(t.task, t.implementation, t.decisions) for t in read_trials(path)]
    assert len(trials) == len(set(trials)) >= before
    assert report["tries"] >= report["measured"]
    assert report["records"] == str(path)
    assert "tuning fused_" in done.stderr
    x = np.ones((16, 32), np.float32)
    plain, tuned = (lw.compile(str(model), shapes={"x": (16, 32)}, jobs=1, records=r) for r in (None, path))
    np.testing.assert_allclose(lw.Engine(tuned)([x])[0], lw.Engine(plain)([x])[0], rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_a_run_and_its_children(model, tmp_path):
    path = tmp_path / "tuned.jsonl"
    child = subprocess.Popen(
        arguments(model, path, "--minutes", "5"), stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    end = time.monotonic() + 300
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.1)
    os.kill(child.pid, signal.SIGINT)
    _, said = child.communicate(timeout=300)
    assert child.returncode == 130, said
    assert "Traceback" not in said
    assert f"what was tried is in {path}, and the same command goes on from there" in said


def task(gain, best="matmul.direct(rows=3)", tried=16):
    return TaskProgress("fused_nn_matmul", "nn.matmul", 1.0, 1e-3, tried, 0, best, gain, "searching")


def test_lines_tell_of_phases_and_of_what_is_better():
    lines = []
    tell = lines_of_progress(lines.append)
    for phase, gain, best in (
        ("a", 0.0, ""),
        ("a", 1.2, "x()"),
        ("a", 1.2, "x()"),
        ("b", 1.5, "y()"),
        ("b", 1.5, "y()"),
    ):
        tell(TuningProgress(phase, (task(gain, best),), 60.0))
    assert lines == [
        "a",
        "fused_nn_matmul: 1.20× by x(), after 16 candidates",
        "fused_nn_matmul: 1.50× by y(), after 16 candidates",
        "b",
    ]


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (("--minutes", "0"), "a positive number of minutes is expected"),
        (("--shape", "x=?,32"), "extents that are open are not tuned"),
        (("--records", "/nowhere/tuned.jsonl"), "there is no folder /nowhere"),
        (("--threads", "1000"), "runs of 1000 threads are measured with as many cpus free"),
    ],
)
def test_options_that_do_not_fit_are_refused(model, tmp_path, more, problem):
    command = [*RUN, str(model), "--records", str(tmp_path / "t.jsonl"), "--minutes", "0.1", *more]
    found = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert found.returncode in (1, 2)
    assert problem in found.stderr
    assert "Traceback" not in found.stderr


def test_a_cluster_of_dask_tunes_a_model(model, tmp_path):
    distributed = needed_tools.module("distributed", "tune")
    path = tmp_path / "tuned.jsonl"
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        where = cluster.scheduler_address.replace("tcp://", "dask://")
        command = arguments(model, path, "--minutes", "0.02", "--json", "--workers", where)
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
        assert any(to == "memory" for _, _, to, *_ in cluster.scheduler.transition_log), "no job was done there"
    report = json.loads(done.stdout)
    assert report["measured"] == report["tries"]
    assert "compiling the model" in done.stderr


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("here:8786", "workers stand at dask://HOST:PORT, found 'here:8786'"),
        ("dask://127.0.0.1", "workers stand at dask://HOST:PORT"),
        ("dask://127.0.0.1:1", "no Dask scheduler answers at dask://127.0.0.1:1"),
    ],
)
def test_workers_that_are_not_there_are_an_error(address, problem):
    needed_tools.module("distributed", "tune")
    with pytest.raises(lw.RuntimeArgumentError, match=problem), dask_workers(address, patience=0.5):
        pytest.fail("there are none")


def test_the_package_that_a_cluster_needs_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    needed = r"workers of Dask need dask\.distributed: pip install 'loopwright\[tune\]'"
    with pytest.raises(lw.RuntimeArgumentError, match=needed), dask_workers("dask://127.0.0.1:1"):
        pytest.fail("it is not there")


def test_a_scheduler_without_workers_is_an_error():
    distributed = needed_tools.module("distributed", "tune")
    with distributed.LocalCluster(n_workers=0, dashboard_address=None) as cluster:
        where = cluster.scheduler_address.replace("tcp://", "dask://")
        with pytest.raises(lw.RuntimeArgumentError, match="has no workers"), dask_workers(where, patience=0.5):
            pytest.fail("there are none")
