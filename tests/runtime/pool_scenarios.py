"""Programs that put the thread pool under stress; test_thread_pool.py runs each in a process of its own.

``python pool_scenarios.py <name>`` runs the function of that name, which raises if the pool misbehaves.
"""

import ctypes
import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path

from loopwright.runtime.threads.resident import load_resident
from loopwright.runtime.threads.thread_pool import thread_pool_symbols

TASKS = ("count", "nested", "fail", "meet", "measure", "doze")


class Pool:
    """The pool and the tasks as ctypes functions."""

    def __init__(self):
        self.address = thread_pool_symbols()["lw_parallel_for"]
        self.tasks = load_resident(Path(__file__).with_name("pool_tasks.ll").read_text(), TASKS)
        pointer = ctypes.c_void_p
        self.parallel_for = ctypes.CFUNCTYPE(ctypes.c_int32, pointer, pointer, pointer, ctypes.c_int64)(self.address)

    def run(self, task, data, extent, threads, slot=0):
        ctx = ctypes.c_int64(threads)
        closure = (ctypes.c_int64 * 2)(ctypes.addressof(data), slot)
        return self.parallel_for(ctypes.addressof(ctx), self.tasks[task], ctypes.addressof(closure), extent)

    def check_counts(self, extent, threads, launches=1):
        data = (ctypes.c_int64 * extent)()
        for _ in range(launches):
            assert self.run("count", data, extent, threads) == 0
        assert list(data) == [launches] * extent, (extent, threads)

    def check_meeting(self, threads):
        data = (ctypes.c_int64 * 1)()
        assert self.run("meet", data, threads, threads, slot=threads) == 0, f"{threads} threads never met"


def wait_for(pid):
    _, status = os.waitpid(pid, 0)
    assert status == 0, f"the forked child ended with status {status}"


def in_fork(check):
    """Run check in a forked child, and fail if it fails or hangs."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        try:
            check()
        except BaseException as error:
            sys.stderr.write(f"{error!r}\n")
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    return pid


def every_iteration_once():
    pool = Pool()
    for threads in (-1, 0, 1, 2, 3, 8, 5000):
        for extent in (1, 2, 3, 7, 8, 9, 31, 97, 1000, 4096):
            pool.check_counts(extent, threads)


def chunks_are_even():
    pool = Pool()
    for threads in (2, 3):
        for extent in (2, 9, 10, 25, 60, 1001):
            data = (ctypes.c_int64 * 2)(extent, 0)
            assert pool.run("measure", data, extent, threads) == 0
            assert data[1] - data[0] <= 1, (extent, threads, list(data))


def empty_extent():
    pool = Pool()
    data = (ctypes.c_int64 * 1)()
    before = len(thread_ids())
    for extent in (0, -1, -(1 << 40)):
        assert pool.run("meet", data, extent, 4, slot=9) == 0
    assert data[0] == 0
    assert len(thread_ids()) == before, "a thread was made for nothing"


def thread_ids():
    return {entry.name for entry in Path("/proc/self/task").iterdir()}


def launches():
    pool = Pool()
    for threads in (2, 8):
        pool.check_counts(16, threads, launches=10_000)


def grows_to_what_is_asked():
    pool = Pool()
    before = len(thread_ids())
    for threads in (2, 3, 6, 4):
        pool.check_meeting(threads)
    assert len(thread_ids()) == before + 5


def meets_after_sleep():
    pool = Pool()
    for _ in range(30):
        pool.check_meeting(3)
        time.sleep(0.002)


def nested():
    pool = Pool()
    data = (ctypes.c_int64 * (64 * 64))()
    for _ in range(200):
        assert pool.run("nested", data, 64, 4, slot=pool.address) == 0
    assert list(data) == [200] * len(data)


def concurrent_callers():
    pool = Pool()
    failures = []

    def work():
        try:
            for extent in range(2, 60):
                pool.check_counts(extent, 3, launches=30)
        except BaseException as error:
            failures.append(error)

    callers = [threading.Thread(target=work) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not failures, failures


def errors():
    pool = Pool()
    for threads in (1, 2, 4):
        for extent in (1, 2, 9, 64):
            for index in range(extent):
                data = (ctypes.c_int64 * extent)()
                assert pool.run("fail", data, extent, threads, slot=index) == index + 1
                assert max(data) <= 1
                assert data[index] == 0
    pool.check_counts(64, 4)


def caller_sleeps_until_the_last_has_left():
    pool = Pool()
    for _ in range(100):
        data = (ctypes.c_int64 * 8)()
        assert pool.run("doze", data, 8, 2, slot=1_000_000) == 0
        assert list(data) == [1] * 8


def forked_child_has_a_pool_of_its_own():
    pool = Pool()
    in_unused = in_fork(lambda: pool.check_meeting(3))
    wait_for(in_unused)
    pool.check_meeting(3)
    wait_for(in_fork(lambda: (pool.check_meeting(3), wait_for(in_fork(lambda: pool.check_meeting(2))))))
    pool.check_meeting(3)


def fork_while_a_job_runs():
    pool = Pool()
    stop = threading.Event()

    def keep_busy():
        while not stop.is_set():
            pool.check_counts(512, 3)

    busy = threading.Thread(target=keep_busy)
    busy.start()
    try:
        for _ in range(25):
            wait_for(in_fork(lambda: (pool.check_meeting(3), pool.check_counts(100, 3))))
    finally:
        stop.set()
        busy.join()


def workers_leave_signals_alone():
    pool = Pool()
    before = thread_ids()
    pool.check_meeting(3)
    workers = thread_ids() - before
    assert len(workers) == 2
    for worker in workers:
        lines = Path(f"/proc/self/task/{worker}/status").read_text().splitlines()
        blocked = int(next(l for l in lines if l.startswith("SigBlk")).split()[1], 16)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGALRM, signal.SIGUSR1):
            assert blocked >> (number - 1) & 1, f"{number!r} may interrupt a worker"
        assert not blocked >> (signal.SIGSEGV - 1) & 1, "faulthandler would stay silent"
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())


def keyboard_interrupt():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what is started in the background ignores it
    pool = Pool()
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    data = (ctypes.c_int64 * 64)()
    try:
        while True:
            pool.run("count", data, 64, 3)
    except KeyboardInterrupt:
        pool.check_counts(64, 3)
        pool.check_meeting(3)
        return
    raise AssertionError("no KeyboardInterrupt came")


def idle_workers_sleep():
    pool = Pool()
    pool.check_meeting(4)
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - before < 0.05


def no_thread_to_be_had():
    pool = Pool()
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    size = pages * resource.getpagesize() + (1 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    before = len(thread_ids())
    pool.check_counts(100, 8, launches=50)
    assert len(thread_ids()) == before, "the limit did not keep threads from being made"


def workers_of(pool, threads):
    before = thread_ids()
    pool.check_meeting(threads)
    return sorted(int(worker) for worker in thread_ids() - before)


def workers_keep_off_the_cpu_of_their_caller():
    cpus = os.sched_getaffinity(0)
    pool = Pool()
    (worker,) = workers_of(pool, 2)
    for cpu in sorted(cpus) * 2:
        os.sched_setaffinity(0, {cpu})
        pool.check_meeting(2)
        assert os.sched_getaffinity(worker) == (cpus - {cpu} or cpus)


def more_workers_than_other_cpus_go_anywhere():
    cpus = os.sched_getaffinity(0)
    pool = Pool()
    for worker in workers_of(pool, len(cpus) + 1):
        assert os.sched_getaffinity(worker) == cpus


def masks_that_somebody_else_set_stay():
    cpus = os.sched_getaffinity(0)
    pool = Pool()
    (worker,) = workers_of(pool, 2)
    for kept in sorted(cpus):
        os.sched_setaffinity(0, {kept})
        pool.check_meeting(2)  # the worker is elsewhere now, where there is an elsewhere
        os.sched_setaffinity(worker, {kept})
        for cpu in sorted(cpus):
            os.sched_setaffinity(0, {cpu})
            pool.check_meeting(2)
            assert os.sched_getaffinity(worker) == {kept}


def exits_at_once():
    Pool().check_counts(64, 4, launches=10)


def exits_under_a_daemon():
    pool = Pool()

    def for_ever():
        while True:
            pool.check_counts(64, 3)

    threading.Thread(target=for_ever, daemon=True).start()
    time.sleep(0.1)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
