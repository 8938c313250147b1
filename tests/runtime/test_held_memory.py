"""What an engine holds: one limit for all executors, memory that is given back by ``trim`` and when runs need much
less, and no more of it after many shapes than after the largest."""

import gc
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.base.html.view import MOST_BYTES

WIDTH = 64
WEIGHTS = np.linspace(-1, 1, WIDTH * WIDTH, dtype=np.float32).reshape(WIDTH, WIDTH)


@pytest.fixture(scope="module")
def open_library():
    """Two products of any number of rows, with an intermediate between them."""
    x, w = lw.var("x", (te.var("n"), te.var("m"), WIDTH)), lw.const(WEIGHTS)
    return lw.compile(lw.Function([x], lw.nn.matmul(lw.nn.matmul(x, w), w)), jobs=1)


@pytest.fixture(scope="module")
def staged_library():
    """What is not 0, doubled: each stage has memory of its own."""
    x = lw.var("x", (te.var("n"),))
    places = lw.nn.nonzero(lw.nn.exp(x) * lw.nn.relu(x))
    return lw.compile(lw.Function([x], lw.nn.multiply(lw.nn.cumsum(places, 1), lw.const(np.int64(2)))), jobs=1)


def rows(n, m=1):
    return np.ones((n, m, WIDTH), np.float32)


def wanted(x):
    return x @ WEIGHTS @ WEIGHTS


def check(engine, x):
    np.testing.assert_allclose(engine([x])[0], wanted(x), rtol=1e-4, atol=1e-3)


def test_memory_says_what_is_held_used_and_was_largest(open_library):
    engine = lw.Engine(open_library, threads=1, memory=1 << 30)
    assert engine.memory().held == engine.memory().used == engine.memory().largest == 0
    check(engine, rows(64))
    large = engine.memory()
    planned = engine.planned_memory({"x": (64, 1, WIDTH)})
    assert large.held == large.used == planned.weights + planned.arena
    assert large.largest == planned.peak - planned.code
    check(engine, rows(32))
    small = engine.memory()
    assert (small.held, small.largest, small.limit) == (large.held, large.largest, 1 << 30)
    assert small.used == planned.weights + engine.planned_memory({"x": (32, 1, WIDTH)}).arena < small.held


def test_a_view_of_memory_is_short_and_has_all_figures(open_library):
    engine = lw.Engine(open_library, threads=1, memory=1 << 30)
    check(engine, rows(16))
    use = engine.memory()
    for text in (str(use), use._repr_html_()):
        assert len(text) < MOST_BYTES
        assert all(name in text for name in ("held", "used", "largest", "limit", "1024 MiB"))


def test_trim_gives_back_what_no_run_uses(open_library):
    engine = lw.Engine(open_library, threads=1, executors=2)
    engine.trim()
    bound = engine.bind([rows(50)])
    for _ in range(2):
        check(engine, rows(50))
        bound()
    weights = engine.planned_memory({"x": (1, 1, WIDTH)}).weights
    assert engine.memory().held > weights
    engine.trim()
    assert engine.memory().held == engine.memory().used == weights
    for _ in range(2):
        np.testing.assert_allclose(bound()[0], wanted(rows(50)), rtol=1e-4, atol=1e-3)
        check(engine, rows(50))


def test_trim_gives_back_the_arena_of_known_shapes():
    x, w = lw.var("x", (8, WIDTH)), lw.const(WEIGHTS)
    engine = lw.Engine(lw.compile(lw.Function([x], lw.nn.matmul(lw.nn.matmul(x, w), w)), jobs=1), threads=1)
    given = np.ones((8, WIDTH), np.float32)
    check(engine, given)
    before = engine.memory().held
    engine.trim()
    assert engine.memory().held < before
    check(engine, given)
    assert engine.memory().held == before


def test_trim_leaves_alone_what_a_run_uses(open_library):
    engine = lw.Engine(open_library, threads=1, executors=2)
    check(engine, rows(50))
    check(engine, rows(50))

    def during(executor):
        held = executor.arena_bytes
        engine.trim()
        return held, executor.arena_bytes

    held, left = engine._executors.use(during)
    assert held == left > 0
    assert sum(executor.arena_bytes for executor in engine._executors.executors) == left


def test_what_an_idle_executor_holds_makes_room_for_another(open_library):
    """A limit for one large run: each executor can have it, one after the other."""
    planned = lw.Engine(open_library, threads=1).planned_memory({"x": (400, 1, WIDTH)})
    engine = lw.Engine(open_library, threads=1, executors=2, memory=planned.peak - planned.code + 1000)
    for _ in range(4):
        check(engine, rows(400))
    assert engine.memory().largest <= engine.memory().limit
    with pytest.raises(lw.OutOfMemoryError, match=r"raise it by lw\.Engine"):
        engine([rows(500)])
    check(engine, rows(400))


@pytest.mark.parametrize("bound", [False, True])
def test_an_arena_four_times_as_large_as_the_last_1000_calls_used_is_given_back(open_library, bound):
    engine = lw.Engine(open_library, threads=1)
    check(engine, rows(400))
    held = engine.memory().held
    few = rows(10)
    run = engine.bind([few]) if bound else lambda: engine([few])
    for _ in range(999):
        run()
    assert engine.memory().held == held
    run()
    run()
    assert engine.memory().held == engine.memory().used < held / 4
    check(engine, few)


def test_calls_that_use_a_quarter_keep_the_arena(open_library):
    engine = lw.Engine(open_library, threads=1)
    check(engine, rows(400))
    held = engine.memory().held
    for number in range(1500):
        engine([rows(300 if number % 900 == 800 else 10)])
    assert engine.memory().held == held


def test_segments_of_stages_are_trimmed_and_given_back(staged_library):
    engine = lw.Engine(staged_library, threads=1)
    large, small = np.ones(50_000, np.float32), np.ones(50, np.float32)

    def run(x):
        np.testing.assert_array_equal(engine([x])[0].ravel(), 2 * np.cumsum(np.arange(len(x))))

    run(small)  # has memory that is kept for small outputs
    run(large)
    held = engine.memory().held
    assert held == engine.memory().used > 0
    for _ in range(999):
        run(small)
    assert engine.memory().held == held > engine.memory().used
    run(small)
    run(small)
    assert engine.memory().held == engine.memory().used < held / 4
    run(large)
    assert engine.memory().held == held
    engine.trim()
    assert engine.memory().held == engine.memory().used == 0
    run(small)
    run(large)


def resident():
    """The bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_memory_is_flat_over_many_shapes(open_library):
    rng = np.random.default_rng(20)
    engine = lw.Engine(open_library, threads=1)
    shapes = rng.integers(1, 30, (2000, 2)).tolist()
    largest = max(n * m for n, m in shapes)
    bound = engine.planned_memory({"x": (largest, 1, WIDTH)})
    halfway = 0
    for number, (n, m) in enumerate(shapes):
        x = rows(n, m)
        (y,) = engine([x])
        assert y.shape == x.shape
        if number == 1000:
            gc.collect()
            halfway = resident()
    use = engine.memory()
    assert use.held <= bound.weights + bound.arena
    assert use.largest <= bound.peak - bound.code
    assert len(engine._executors.executors[0]._plans) <= 32
    gc.collect()
    assert resident() - halfway < 16 << 20
    check(engine, rows(7))


FRESH_PAGES = """
import resource, sys
import numpy as np
import loopwright as lw
from loopwright import te

def fresh_pages(call):
    call()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        call()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
"""
OF_A_KERNEL = """
n = 2_000_000
A = te.placeholder((n,), "float32", name="A")
B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
C = te.compute((n,), lambda i: B[i] * 2.0, name="C")
D = te.compute((n,), lambda i: B[i] + C[n - 1 - i], name="D")
E = te.compute((n,), lambda i: D[i] + D[n - 1 - i], name="E")
kernel = lw.build(lw.create_schedule(E), [A, E], target="x86-64-v2")
a, d = np.ones((2, n), np.float32)
print(fresh_pages(lambda: kernel(a, d)))
"""
OF_AN_ENGINE = """
engine = lw.Engine(lw.load(sys.argv[1]), threads=1)
x = np.ones((1000, 1000), np.float32)
print(fresh_pages(lambda: engine([x])))
"""


def fresh_pages(program, *arguments):
    command = [sys.executable, "-c", FRESH_PAGES + program, *map(str, arguments)]
    # Dask puts settings of the C library into the environment, with which glibc learns nothing.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    return int(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)


def test_what_kernels_allocate_takes_no_fresh_pages_in_each_call():
    """Three intermediates of 8 MB: pages that the system takes back each time cost more than the call."""
    assert fresh_pages(OF_A_KERNEL) < 2 * 5860, "5860 pages are what one call takes"


def test_outputs_take_no_fresh_pages_in_each_call(tmp_path):
    """Three outputs of 4 MB, of a library that is loaded: nothing large was freed before."""
    x = lw.var("x", (te.var("n"), 1000))
    outputs = lw.op.Tuple([lw.nn.add(x, x), lw.nn.exp(x), lw.nn.relu(x)])
    lw.compile(lw.Function([x], outputs), jobs=1, target="x86-64-v2").save(tmp_path / "three.lwlib")
    assert fresh_pages(OF_AN_ENGINE, tmp_path / "three.lwlib") < 2 * 2930, "2930 pages are what one call takes"
