"""Programs that put engines under stress; test_engine_threads.py runs each in a process of its own.

``python engine_scenarios.py <name> [<number>]`` runs the function of that name, which raises if an engine misbehaves.
"""

import gc
import itertools
import os
import random
import resource
import signal
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import numpy.testing  # an interrupt while threads import it would leave its lock taken

import loopwright as lw
from loopwright import te

WIDTH = 64


def make_library():
    """Two products and a softmax: an arena, and loops that run on several threads."""
    x = lw.var("x", (96, WIDTH))
    w = lw.const(np.random.default_rng(0).standard_normal((WIDTH, WIDTH)).astype(np.float32))
    return lw.compile(lw.Function([x], lw.nn.softmax(lw.nn.matmul(lw.nn.relu(lw.nn.matmul(x, w)), w))), jobs=1)


def some_input(seed):
    return np.random.default_rng(seed).standard_normal((96, WIDTH)).astype(np.float32)


class Hammer:
    """Threads that call engines and compare each result with what one thread alone gives, to the last bit."""

    def __init__(self, library):
        self.inputs = [some_input(seed) for seed in range(8)]
        alone = lw.Engine(library, threads=1)
        self.wanted = [alone([x])[0] for x in self.inputs]
        self.failures = []
        self.calls = 0

    def call(self, engine, k):
        (found,) = engine([self.inputs[k]])
        np.testing.assert_array_equal(found, self.wanted[k])
        self.calls += 1

    def run(self, engines, seconds, threads=8):
        end = time.monotonic() + seconds

        def work(k):
            try:
                while time.monotonic() < end:
                    self.call(engines[k % len(engines)], k)
            except BaseException as error:
                self.failures.append(error)

        workers = [threading.Thread(target=work, args=(k,)) for k in range(threads)]
        for worker in workers:
            worker.start()
        self.wait(workers)
        assert not self.failures, self.failures
        assert self.calls >= threads

    def wait(self, workers):
        """Until they have ended. That they hang is told by calls that do not get on, which a loaded machine may delay
        as it likes: the time in which none ends is counted in seconds that this thread was given itself."""
        idle = 0
        while alive := [worker for worker in workers if worker.is_alive()]:
            before = self.calls
            alive[0].join(1)
            idle = idle + 1 if self.calls == before else 0
            assert idle < 60, f"{len(alive)} threads hang, after {self.calls} calls"


def eight_threads_on_two_executors(seconds):
    library = make_library()
    Hammer(library).run([lw.Engine(library, executors=2, threads=2)], seconds)


def several_engines_at_once():
    library = make_library()
    Hammer(library).run([lw.Engine(library, executors=n, threads=t) for n, t in ((1, 2), (2, 1), (3, 3))], 1.0)


def forked_child_has_executors_that_are_free():
    """The parent's executors are all busy when it forks, and a thread waits for one."""
    library = make_library()
    engine = lw.Engine(library, executors=2, threads=2).init()
    hammer = Hammer(library)
    release, inside = threading.Event(), threading.Barrier(3)

    def hold(executor):
        inside.wait()
        release.wait()

    holders = [threading.Thread(target=lambda: engine._executors.use(hold)) for _ in range(2)]
    for holder in holders:
        holder.start()
    inside.wait()
    waiting = engine.submit([hammer.inputs[0]])
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            signal.alarm(30)
            hammer.run([engine], 0.2, threads=3)
            np.testing.assert_array_equal(engine.submit([hammer.inputs[1]]).result()[0], hammer.wanted[1])
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    release.set()
    for holder in holders:
        holder.join()
    np.testing.assert_array_equal(waiting.result()[0], hammer.wanted[0])


def keyboard_interrupts_leave_all_executors_free():
    library = make_library()
    engine = lw.Engine(library, executors=2, threads=2).init()
    hammer = Hammer(library)
    inputs = itertools.cycle(range(8))
    for _ in interrupts(lambda: hammer.call(engine, next(inputs)), 60):
        assert len(engine._executors._turns.free) == 2
    hammer.run([engine], 0.2, threads=3)


def interrupt_while_waiting_for_an_executor():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    engine = lw.Engine(make_library()).init()
    release, inside = threading.Event(), threading.Event()
    holder = threading.Thread(target=lambda: engine._executors.use(lambda _: (inside.set(), release.wait())))
    holder.start()
    inside.wait()
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        engine([some_input(0)])
    except KeyboardInterrupt:
        release.set()
        holder.join()
        engine([some_input(0)])
        return
    raise AssertionError("no KeyboardInterrupt came")


def interrupt_among_threads_that_call_again_and_again():
    """The main thread waits behind others for the only executor: it is interrupted, and the others go on."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    library = make_library()
    engine = lw.Engine(library, threads=1).init()
    hammer = Hammer(library)
    others = threading.Thread(target=hammer.run, args=([engine], 2.0, 7))
    others.start()
    for number in range(10):
        threading.Timer(0.05 + number * 1e-3, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            while True:
                hammer.call(engine, 0)
        except KeyboardInterrupt:
            continue
    others.join()
    assert not hammer.failures, hammer.failures
    assert len(engine._executors._turns.free) == 1
    assert not engine._executors._turns.line
    hammer.call(engine, 1)


def exits_while_daemons_call():
    engine = lw.Engine(make_library(), executors=2, threads=2).init()
    x = some_input(0)

    def for_ever():
        while True:
            engine([x])

    for _ in range(3):
        threading.Thread(target=for_ever, daemon=True).start()
    time.sleep(0.1)


def exits_with_submitted_calls():
    engine = lw.Engine(make_library(), executors=2, threads=2)
    for k in range(20):
        engine.submit([some_input(k)])


def resident_bytes():
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def assert_bounded(make, count, megabytes):
    """After a first part, in which pools and caches fill, resident memory does not grow with the number made."""
    for number in range(count // 5):
        make(number)
    before = resident_bytes()
    for number in range(count // 5, count):
        make(number)
    grown = (resident_bytes() - before) / 2**20
    assert grown < megabytes, f"resident memory grew by {grown:.1f} MiB over {count - count // 5}"


def engines_give_back_their_memory(count):
    """Loaded from a file, run, and freed."""
    x = some_input(0)
    with tempfile.TemporaryDirectory() as folder:
        make_library().save(f"{folder}/model.lwlib")

        def load_and_run(number):
            lw.Engine(lw.load(f"{folder}/model.lwlib"), executors=1 + number % 2, threads=2)([x])

        assert_bounded(load_and_run, count, 6)


def calling_engine(name, call, executors=1):
    """An engine that runs a function of Python."""
    lw.register_func(name, call)
    x = lw.var("x", (4,))
    library = lw.compile(lw.Function([x], lw.nn.extern(name, x), name.replace(".", "_")), jobs=1)
    return lw.Engine(library, executors=executors, threads=1).init()


def says_that_it_would_wait(run):
    try:
        run()
    except lw.LoopwrightError as error:
        return "could wait for ever" in str(error)
    return False


ONES = np.ones(4, np.float32)


def ask(engine, x, submits):
    return engine.submit([x]).result()[0] if submits else engine([x])[0]


def functions_that_wait_for_their_own_engine():
    """By a call or a future, of an engine whose executors they hold; where another is free, they get it."""
    for submits in (False, True):
        for executors in (1, 2):
            check_waiting_for_itself(submits, executors)


def check_waiting_for_itself(submits, executors):
    def function(x, y):
        y[...] = x + (ask(engine, x - 1, submits) if x[0] > 0 else 0)

    engine = calling_engine(f"test.{submits}{executors}", function, executors)
    for run in (engine, lambda inputs: engine.submit(inputs).result(), engine):  # an executor is not lost by it
        if executors == 1:
            assert says_that_it_would_wait(partial(run, [ONES]))
        else:
            np.testing.assert_array_equal(run([ONES])[0], ONES)
        np.testing.assert_array_equal(engine([0 * ONES])[0], 0 * ONES)


def engines_that_call_each_other():
    """A calls B, which calls A; at once by a thread, and by futures."""
    for submits in (False, True):
        check_calling_each_other(submits)


def check_calling_each_other(submits):
    first = calling_engine(f"test.first{submits}", lambda x, y: np.copyto(y, ask(second, x, submits)))
    second = calling_engine(f"test.second{submits}", lambda x, y: np.copyto(y, ask(first, x, submits)))
    for engine in (first, second):
        assert says_that_it_would_wait(partial(ask, engine, ONES, submits))


def interrupts(call, count):
    """Calls again and again, interrupted at any moment, so many times: yields each interrupt when it has come out."""
    moments = random.Random(3)
    alarms = []

    def interrupt(*_):
        alarms.append(None)
        raise KeyboardInterrupt

    def come_again(dropped):
        """Python drops what is raised in a finaliser or a callback of a weak reference, whenever garbage goes."""
        if dropped.exc_type is not KeyboardInterrupt:
            sys.__unraisablehook__(dropped)
            return
        alarms.clear()
        signal.setitimer(signal.ITIMER_REAL, 2e-4)

    def call_until_interrupted():
        alarms.clear()
        signal.setitimer(signal.ITIMER_REAL, 2e-4 + 3e-4 * moments.random())
        while True:
            call()
            assert not alarms, "the interrupt was lost"

    call()  # with what it imports the first time: an import that is interrupted may leave Python's lock of it held
    signal.signal(signal.SIGALRM, interrupt)
    sys.unraisablehook = come_again
    for _ in range(count):
        try:
            call_until_interrupted()
        except KeyboardInterrupt as error:
            # Another may come now, where one was dropped and told all the same; suppress can be interrupted itself.
            try:  # noqa: SIM105
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                pass
            yield error


def interrupts_of_functions_leave_all_executors_free(count):
    """In the function, and in what engines do around it."""
    engine = calling_engine("test.copy", lambda x, y: np.copyto(y, x))
    for _ in interrupts(lambda: engine([ONES]), count):
        assert len(engine._executors._turns.free) == 1
    np.testing.assert_array_equal(engine([2 * ONES])[0], 2 * ONES)


def interrupts_leave_the_thread_on_its_cores(count):
    """Whoever keeps the interrupt, as the interactive interpreter does, keeps all frames that it came through."""
    before = os.sched_getaffinity(0)
    executors = [lw.ExecutorConfig(cores=(min(before),))]
    x = lw.var("x", (4,))
    engine = lw.Engine(lw.compile(lw.Function([x], lw.nn.relu(x)), jobs=1), executors=executors).init()
    kept = []
    for number, error in enumerate(interrupts(lambda: engine([ONES]), count)):
        kept.append(error)
        assert os.sched_getaffinity(0) == before, f"after interrupt {number}"


def child_that_began_in_a_function():
    """It ends the call that its parent had begun, and can make others; so can the parent."""
    children = []

    def fork(x, y):
        if x[0] > 1:
            children.append(os.fork())
        y[...] = x

    engine = calling_engine("test.fork", fork)
    for _ in range(3):
        np.testing.assert_array_equal(engine([2 * ONES])[0], 2 * ONES)
        np.testing.assert_array_equal(engine([ONES])[0], ONES)
        child = children.pop()
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0


def new_sets_of_executors_leave_errors_of_other_threads():
    """A function raises; before its thread takes the error, another one makes a set of the same executors."""
    raised, go_on = threading.Event(), threading.Event()
    found = []

    def fail(x, y):
        raise ValueError("of the function")

    engine = calling_engine("test.fail", fail)
    (executor,) = engine._executors.executors
    entry = executor._entry

    def slow_entry(context, slots):
        code = entry(context, slots)
        raised.set()
        go_on.wait()
        return code

    def run():
        try:
            engine([ONES])
        except lw.KernelError as error:
            found.append(str(error.__cause__))

    executor._entry = slow_entry
    thread = threading.Thread(target=run)
    thread.start()
    raised.wait()
    type(engine._executors)([executor], "another")
    go_on.set()
    thread.join()
    assert found == ["of the function"], found


def threads_that_hold_what_the_other_waits_for():
    """One thread is in A and calls B, one is in B and calls A: the later call raises, the other one is served."""
    both_inside = threading.Barrier(2)

    def function(other):
        def call(x, y):
            if x[0] > 0:
                both_inside.wait()
                y[...] = other()([0 * x])[0] + 1
            else:
                y[...] = x

        return call

    first = calling_engine("test.a", function(lambda: second))
    second = calling_engine("test.b", function(lambda: first))
    waited, results = [], []

    def run(engine):
        try:
            results.append(engine([ONES])[0])
        except lw.LoopwrightError as error:
            waited.append("could wait for ever" in str(error))

    for _ in range(20):
        waited.clear()
        results.clear()
        threads = [threading.Thread(target=run, args=(engine,)) for engine in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert waited in ([], [True]), waited
        assert len(waited) + len(results) == 2
        for result in results:
            np.testing.assert_array_equal(result, ONES)


def a_call_waits_for_a_function_that_ends():
    """Waiting for another thread's function is no error."""
    entered, go_on = threading.Event(), threading.Event()

    def slow(x, y):
        entered.set()
        go_on.wait()
        y[...] = x

    inner = calling_engine("test.slow", slow)
    outer = calling_engine("test.outer", lambda x, y: inner([x], out=[y]))
    holder = inner.submit([ONES])
    entered.wait()
    waiter = outer.submit([2 * ONES])
    time.sleep(0.05)
    assert not waiter.done()
    go_on.set()
    np.testing.assert_array_equal(waiter.result()[0], 2 * ONES)
    holder.result()


def engines_that_live_at_once_have_threads_of_their_own():
    """And those that live one after the other have the same ones: pools are as many as were ever in use together."""
    library = make_library()
    x = some_input(0)

    def threads():
        return len(list(Path("/proc/self/task").iterdir()))

    for _ in range(3):  # of one engine after the other
        lw.Engine(library, threads=3)([x])
        gc.collect()
    one = threads()
    engines = [lw.Engine(library, threads=3) for _ in range(4)]
    for engine in engines:
        engine([x])
    assert threads() == one + 3 * 2, (one, threads())
    del engine, engines
    gc.collect()
    for _ in range(4):
        lw.Engine(library, threads=3)([x])
        gc.collect()
    assert threads() == one + 3 * 2


def build_and_run(number):
    a, b = np.ones(WIDTH, np.float32), np.empty(WIDTH, np.float32)
    A = te.placeholder((WIDTH,), "float32", name="A")
    B = te.compute((WIDTH,), lambda i: A[i] + float(number), name="B")
    lw.build(lw.create_schedule(B), [A, B], name=f"plus{number}")(a, b)
    assert b[0] == 1 + number


def loaded_kernels_give_back_their_memory(count):
    """Kernels out of the cache: what their machine code and its loading take."""
    assert_bounded(lambda number: build_and_run(0), count, 6)


def compiled_kernels_give_back_their_memory(count):
    """Each leaves 1.5 KB of LLVM, the callbacks of its passes, which llvmlite does not free, and pieces of the heap."""
    assert_bounded(build_and_run, count, 2 + count * 0.002)


if __name__ == "__main__":
    globals()[sys.argv[1]](*map(int, sys.argv[2:]))
