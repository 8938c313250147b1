"""Threads that call one engine: how long the longest call took, and how many calls all made, beside one thread alone.

``python benchmarks/turns.py [--threads 8] [--seconds 10]`` prints a line for calls of 5 µs, 100 µs and 10 ms. Windows
with one thread and with many take turns; the ratio is that of their medians. What should hold is written behind each
number: see docs/runtime.md.
"""

import argparse
import threading
import time
from statistics import median

import numpy as np

import loopwright as lw

CALLS = {"5 µs": 5e-6, "100 µs": 1e-4, "10 ms": 1e-2}
LONGEST = 0.01
SHARE = 0.8
WINDOWS = 10


def engine_for(seconds):
    """An engine with one executor of one thread, and an input for which a call takes about so long."""
    x = lw.var("x", (lw.te.var("n"),))
    engine = lw.Engine(lw.compile(lw.Function([x], lw.nn.exp(lw.nn.sin(x)))), threads=1)
    size = 16
    while (taken := least(engine, np.ones(size, np.float32))) < seconds:
        size = int(size * min(2, 0.01 + seconds / taken)) + 1
    return engine, np.ones(size, np.float32)


def least(engine, x, rounds=20):
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        engine([x])
        times.append(time.perf_counter() - start)
    return min(times)


def window(engine, x, threads, seconds):
    """Calls in a second of all threads together, and the seconds of the longest one."""
    start, longest, counts = threading.Barrier(threads + 1), [0.0] * threads, [0] * threads

    def work(k):
        start.wait()
        end = time.perf_counter() + seconds
        while (before := time.perf_counter()) < end:
            engine([x])
            longest[k] = max(longest[k], time.perf_counter() - before)
            counts[k] += 1

    workers = [threading.Thread(target=work, args=(k,)) for k in range(threads)]
    for worker in workers:
        worker.start()
    start.wait()
    begun = time.perf_counter()
    for worker in workers:
        worker.join()
    return sum(counts) / (time.perf_counter() - begun), max(longest)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    for name, seconds in CALLS.items():
        engine, x = engine_for(seconds)
        size = options.seconds / WINDOWS
        pairs = [[window(engine, x, n, size) for n in (1, options.threads)] for _ in range(WINDOWS)]
        one, many = (median(rate for rate, _ in column) for column in zip(*pairs, strict=True))
        longest = [many[1] for _, many in pairs]
        bound = LONGEST + 3 * options.threads / one
        print(
            f"calls of {name}: {1e6 / one:.1f} µs by one thread; by {options.threads} {many / one:.2f} of its calls "
            f"(at least {SHARE}), longest {1e3 * max(longest):.1f} ms, {1e3 * median(longest):.1f} ms in the median of "
            f"{WINDOWS} windows (at most {1e3 * bound:.1f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
