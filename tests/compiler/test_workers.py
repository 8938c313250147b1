"""Processes that compile: how they end, and what they leave to their parent."""

import signal
import threading

import numpy as np
import pytest

import loopwright as lw
from loopwright.artifact.options import CodegenOptions
from loopwright.compiler.fusion.closed_function import as_function
from loopwright.compiler.fusion.partition import partition
from loopwright.compiler.model import workers as workers_module
from loopwright.compiler.model.compile_function import EmittedFunction
from loopwright.compiler.model.function_cache import function_cache
from loopwright.compiler.model.workers import Job, Workers, _Worker
from loopwright.compiler.settings import CompileSettings


def test_an_interrupt_ends_a_worker_without_a_traceback(capfd):
    x = lw.var("x", (3,))
    (group,) = partition(lw.Function((x,), lw.nn.relu(x)))
    worker = _Worker()
    try:
        job = Job(as_function(group)[0], CompileSettings(lw.resolve_target("native"), CodegenOptions(cache=False)))
        answer = worker.compile(job.key, job)
        assert answer.made.object
        assert answer.timing.instructions > 0
        worker._process.send_signal(signal.SIGINT)
        assert worker._process.wait(20) == -signal.SIGINT
    finally:
        worker.close()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("calls", "jobs", "ahead"), [(5, 4, 0), (60, 4, 2), (60, 2, 1), (60, 1, 0)])
def test_processes_start_before_a_large_graph_is_planned_but_for_one_core(calls, jobs, ahead, monkeypatch):
    monkeypatch.setattr(workers_module, "_Worker", UnusedWorker)
    x = y = lw.var("x", (3,))
    for _ in range(calls):
        y = lw.nn.relu(y)
    with Workers(jobs) as workers:
        workers.start_ahead(lw.Function([x], y))
        started = list(workers.start(0))
        assert len(started) == ahead
        assert len(workers.start(calls)) == jobs
    assert all(worker.closed for worker in started)


class UnusedWorker:
    closed = False

    def close(self):
        self.closed = True


def test_a_worker_that_was_not_needed_ends_at_once():
    worker = _Worker()
    worker.close()
    assert worker._process.returncode == -signal.SIGKILL


def test_timings_of_functions_do_not_depend_on_the_processes_that_compile_them(tmp_path, monkeypatch):
    x = y = lw.var("x", (3, 8))
    for axis in range(workers_module.LEAST_FOR_WORKERS):
        y = lw.nn.softmax(lw.nn.matmul(y, lw.const(np.ones((8 + axis, 9 + axis), np.float32))))
    works = []
    for jobs in (1, 2):
        monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path / str(jobs)))
        function_cache.clear()
        timings = lw.compile(lw.Function([x], y), "x86-64-v2", jobs=jobs).timings
        works.append([(f.name, f.instructions, [part.name for part in f.parts]) for f in timings.functions])
    assert len(works[0]) >= workers_module.LEAST_FOR_WORKERS
    assert works[0] == works[1]


def three_functions():
    """Three calls that are compiled apart, as each is of another operator."""
    x = lw.var("x", (3,))
    return lw.Function([x], lw.op.Tuple(tuple(operator(x) for operator in (lw.nn.relu, lw.nn.exp, lw.nn.negative))))


def test_one_process_has_a_thread_for_llvm_and_tells_of_functions_in_order(monkeypatch, tmp_path):
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path))
    function_cache.clear()
    compile_emitted, threads, told = EmittedFunction.compile, [], []

    def noting(emitted, key):
        threads.append(threading.current_thread())
        return compile_emitted(emitted, key)

    def progress(done, total, name):
        told.append((done, total, threading.current_thread()))

    monkeypatch.setattr(EmittedFunction, "compile", noting)
    library = lw.compile(three_functions(), "x86-64-v3", jobs=1, progress=progress)
    assert len(library.model.functions) == len(threads) == 3
    assert threading.current_thread() not in threads
    assert told == [(done, 3, threading.current_thread()) for done in (1, 2, 3)]


def test_what_fails_in_the_thread_of_llvm_reaches_the_caller(monkeypatch, tmp_path):
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path))
    function_cache.clear()

    def failing(*_):
        raise MemoryError

    monkeypatch.setattr(EmittedFunction, "compile", failing)
    with pytest.raises(lw.OutOfMemoryError):
        lw.compile(three_functions(), "x86-64-v3", jobs=1)
