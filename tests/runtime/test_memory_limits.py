"""Where memory is short: processes whose limit is what they have and some more end well or in ``OutOfMemoryError``; an
engine keeps to its own limit; workers that die are told of."""

import errno
import mmap
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.base.background import background_executor
from loopwright.base.memory import (
    ended_without_memory,
    granted_memory,
    memory_errors,
    memory_limit,
    require_memory,
    step_limit,
)
from loopwright.compiler.model import workers
from loopwright.compiler.model.compile_function import emit_function
from loopwright.compiler.settings import CompileSettings
from loopwright.runtime.memory_budget import MemoryBudget

PROGRAM = Path(__file__).with_name("memory_scenarios.py")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="limits the address space, which it reads from /proc")


@LINUX
@pytest.mark.parametrize("scenario", ["build", "compile_here", "compile_in_workers", "load"])
def test_under_a_limit_of_memory_all_ends_well_or_says_that_it_is_out_of_it(scenario):
    steps = [0, 8, 66, 67, 4096]
    run = subprocess.run(
        [sys.executable, str(PROGRAM), scenario, *map(str, steps)],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    ends = run.stdout.splitlines()
    assert len(ends) == len(steps), run.stderr
    assert set(ends) <= {"done", "OutOfMemoryError"}, (ends, run.stderr)
    assert ends[0] == "OutOfMemoryError"
    assert ends[-1] == "done", run.stderr
    assert ends == sorted(ends), "more memory is no hindrance"


def test_what_no_process_has_cannot_be_required():
    require_memory(1 << 20, "a test")
    with pytest.raises(lw.OutOfMemoryError, match="65536 TiB of memory for a test"):
        require_memory(1 << 56, "a test")
    with pytest.raises(MemoryError):
        require_memory(1 << 80, "a test")


def test_a_thread_that_cannot_start_is_for_want_of_memory():
    with pytest.raises(lw.OutOfMemoryError, match="not enough memory for another thread"), memory_errors("a test"):
        raise RuntimeError("can't start new thread")
    with pytest.raises(RuntimeError, match="another reason"), memory_errors("a test"):
        raise RuntimeError("another reason")


def function():
    x = lw.var("x", (16, 16))
    return lw.Function([x], lw.nn.relu(x), "f")


def test_nothing_begins_with_less_memory_than_python_needs_to_tell_of_it(monkeypatch):
    with memory_errors("a test"):
        pass

    def refuses(_, size):
        if size > 20 << 20:
            raise OSError(errno.ENOMEM, "no memory")
        return mmap.mmap(-1, size)

    monkeypatch.setattr("loopwright.base.memory.mmap", SimpleNamespace(mmap=refuses))
    with pytest.raises(lw.OutOfMemoryError, match=r"24\.0 MiB of memory for a test"), memory_errors("a test"):
        pytest.fail("it began")
    with pytest.raises(lw.OutOfMemoryError, match=r"64\.0 MiB of memory for LLVM"):
        emit_function(function(), CompileSettings(lw.resolve_target("x86-64-v2")))


def interrupted():
    """No signal: what is started in the background ignores it."""
    raise KeyboardInterrupt


def test_threads_take_no_part_of_an_address_space_that_is_limited(monkeypatch):
    with background_executor() as executor:
        assert executor.submit(threading.get_ident).result() != threading.get_ident()
    monkeypatch.setattr("resource.getrlimit", lambda kind: (1 << 40, resource.RLIM_INFINITY))
    with background_executor() as executor:
        assert executor.submit(threading.get_ident).result() == threading.get_ident()
        assert list(executor.map(abs, (-1, 2))) == [1, 2]
        failed = executor.submit(int, "x")
        assert isinstance(failed.exception(), ValueError)
        with pytest.raises(KeyboardInterrupt):
            executor.submit(interrupted)


@pytest.mark.parametrize(
    ("status", "limited", "expected"),
    [
        (-signal.SIGKILL, False, True),
        (77, False, True),
        (-signal.SIGABRT, False, False),
        (-signal.SIGABRT, True, True),
        (-signal.SIGSEGV, False, False),
        (-signal.SIGSEGV, True, True),
        (127, True, True),
        (1, False, False),
        (2, True, False),
    ],
)
def test_what_ends_a_process_is_want_of_memory_where_memory_is_limited(monkeypatch, status, limited, expected):
    bound = 1 << 40 if limited else resource.RLIM_INFINITY
    monkeypatch.setattr("resource.getrlimit", lambda kind: (bound, bound))
    assert ended_without_memory(status) is expected


@pytest.mark.parametrize("status", [signal.SIGKILL, 77])
def test_a_worker_that_memory_ended_is_out_of_memory(status):
    job = workers.Job(function(), CompileSettings(lw.resolve_target("x86-64-v2")))
    worker = workers._Worker()
    try:
        if isinstance(status, signal.Signals):
            worker._process.send_signal(status)
            status = -status
        else:
            worker._process.kill()
            worker._process.wait()
            worker._process.returncode = status
        with pytest.raises(lw.OutOfMemoryError, match=f"compiled f ended .status {status}.*by jobs="):
            worker.compile("key", job)
    finally:
        worker.close()


def test_an_engine_keeps_to_its_limit():
    n = te.var("n")
    x, w = lw.var("x", (n, 1000)), lw.const(np.eye(1000, dtype=np.float32))
    model = lw.Function([x], lw.nn.matmul(lw.nn.matmul(x, w), w))
    engine = lw.Engine(lw.compile(model, jobs=1), threads=1, memory=10_000_000)
    (y,) = engine([np.ones((100, 1000), np.float32)])
    np.testing.assert_array_equal(y, 1)
    with pytest.raises(lw.OutOfMemoryError, match=r"for n = 1000 needs \d+ bytes .*The limit is 10000000: raise it by"):
        engine([np.ones((1000, 1000), np.float32)])
    (y,) = engine([np.ones((10, 1000), np.float32)])
    np.testing.assert_array_equal(y, 1)


def test_constants_and_outputs_count():
    x = lw.var("x", (1000,))
    constants = lw.compile(lw.Function([x], lw.nn.add(x, lw.const(np.ones((9, 1000), np.float32)))), jobs=1)
    for limit, fits in ((71_900, False), (72_000, True)):  # the constant and the output, of 36000 bytes each; an arena
        engine = lw.Engine(constants, threads=1, memory=limit + 64)
        if fits:
            engine([np.ones(1000, np.float32)])
        else:
            with pytest.raises(lw.OutOfMemoryError, match="36000 for weights"):
                engine.init()
    with pytest.raises(lw.OutOfMemoryError, match="for those of other executors"):
        lw.Engine(constants, threads=1, executors=2, memory=72_064).init()


def test_sizes_beyond_64_bits_are_compared():
    budget = MemoryBudget("m", 1 << 40)
    budget.hold_weights(1 << 30)
    with pytest.raises(lw.OutOfMemoryError, match=str(2**70)):
        budget.claim(0, 2**70, "")
    budget.claim(0, 1 << 39, "")
    with pytest.raises(lw.OutOfMemoryError):
        budget.claim(1, 1 << 39, "")
    budget.claim(0, 1, "")
    budget.claim(1, 1 << 39, "")


def test_the_limit_is_given_or_the_environments_or_a_share_of_what_is_granted(monkeypatch):
    monkeypatch.delenv("LOOPWRIGHT_MEMORY_LIMIT", raising=False)
    assert memory_limit(123) == 123
    for wrong in (0, True, int, "1G", np.ones(2)):
        with pytest.raises(lw.RuntimeArgumentError, match="memory should be a positive number of bytes"):
            memory_limit(wrong)
    assert memory_limit() == int(0.8 * granted_memory())
    monkeypatch.setenv("LOOPWRIGHT_MEMORY_LIMIT", "3g")
    assert memory_limit() == 3 << 30
    monkeypatch.setenv("LOOPWRIGHT_STEP_LIMIT", "5000")
    assert step_limit() == 5000
    for wrong in ("x", "-1", "0", "1.5G", "G"):
        monkeypatch.setenv("LOOPWRIGHT_MEMORY_LIMIT", wrong)
        with pytest.raises(lw.RuntimeArgumentError, match="LOOPWRIGHT_MEMORY_LIMIT should be a positive number"):
            memory_limit()
    for wrong in (0, -1, 1.5, True, "1G"):
        with pytest.raises(lw.RuntimeArgumentError, match="memory should be a positive number of bytes"):
            lw.Engine(lw.compile(function(), jobs=1), memory=wrong)


@pytest.mark.parametrize(
    ("groups", "files", "granted"),
    [
        ("0::/a/b", {"a/memory.max": "1000", "a/b/memory.max": "max"}, 1000),
        ("0::/a/b", {"a/memory.max": "1000", "a/b/memory.max": "500"}, 500),
        ("4:memory:/a", {"memory/a/memory.limit_in_bytes": "700"}, 700),
        ("4:memory:/a", {"memory/a/memory.limit_in_bytes": "9223372036854771712"}, 8 << 20),
        ("0::/", {}, 8 << 20),
    ],
)
def test_what_is_granted_is_that_of_the_groups_and_the_machine(tmp_path, groups, files, granted):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(f"{groups}\n")
    (tmp_path / "proc/meminfo").write_text("MemTotal:        8192 kB\nMemFree:   1 kB\n")
    for name, text in files.items():
        path = tmp_path / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    assert granted_memory(tmp_path) == granted
