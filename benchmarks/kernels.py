"""Kernels of ours beside numpy's: ``python benchmarks/kernels.py [--size 512] [--rounds 9] [--threads 1 2]``.

Each contender lives in a process of its own; rounds alternate in random order, and all but one process wait on a pipe,
so that no thread pool disturbs another. The figures are ratios of medians, and the fraction of the fma peak measured in
the same run.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

CALLS = 10
PAUSE = 0.03
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def contender(name: str, size: int, threads: int) -> None:
    """In a child: answer each line on stdin with the seconds of one call, the mean over ``CALLS`` calls."""
    run, operations = _make(name, size, threads)
    run()
    print(operations, flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        for _ in range(CALLS):
            run()
        print((time.perf_counter() - start) / CALLS, flush=True)


def _make(name, size, threads):
    """What to call, and how many floating-point operations a call does."""
    import numpy as np

    if name == "numpy":
        a, b = np.random.default_rng(0).standard_normal((2, size, size), dtype=np.float32)
        c = np.empty_like(a)
        return lambda: np.matmul(a, b, out=c), 2 * size**3

    import loopwright as lw

    sys.path.insert(0, str(EXAMPLES))
    from fast_matmul import matmul_schedule, peak_kernel

    target = lw.resolve_target("native")
    if name == "peak":
        kernel, operations = peak_kernel(target)
        x = np.zeros(target.lanes("float32"), np.float32)
        return kernel.bind(x, np.empty(kernel.func.outputs[0].shape[0], np.float32), threads=1), operations
    schedule, args = matmul_schedule(size, size, size, target)
    kernel = lw.build(schedule, args, target=target, name="matmul")
    a, b = np.random.default_rng(0).standard_normal((2, size, size), dtype=np.float32)
    c = np.empty_like(a)
    kernel(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-3, atol=1e-2)
    return kernel.bind(a, b, c, threads=threads), 2 * size**3


class Child:
    """A contender's process, asleep on its pipe until it is asked."""

    def __init__(self, name: str, size: int, threads: int) -> None:
        command = [sys.executable, __file__, "--contender", name, "--size", str(size), "--threads", str(threads)]
        limits = {"OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **limits}
        )
        first = self._line()
        if not first:
            raise SystemExit(f"{name} did not start")
        self.operations = int(first)
        self.seconds: list[float] = []

    def _line(self) -> str:
        return self.process.stdout.readline().strip()

    def measure(self) -> None:
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        self.seconds.append(float(self._line()))

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def compare(size: int, threads: int, rounds: int, seed: int) -> None:
    names = ["loopwright", "numpy", "peak"]
    children = {name: Child(name, size, threads) for name in names}
    order = random.Random(seed)
    for _ in range(rounds):
        for name in order.sample(names, len(names)):
            children[name].measure()
            time.sleep(PAUSE)
    for child in children.values():
        child.close()
    rates = {name: child.operations / statistics.median(child.seconds) for name, child in children.items()}
    peak = rates.pop("peak") * threads
    print(
        f"matmul {size}³, {threads} thread(s): "
        + ", ".join(f"{name} {rate / 1e9:.1f} GFLOP/s ({rate / peak:.0%} of peak)" for name, rate in rates.items())
        + f", ratio {rates['loopwright'] / rates['numpy']:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, nargs="+", default=[512])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--contender", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contender:
        contender(options.contender, options.size[0], options.threads[0])
        return
    for size in options.size:
        for threads in options.threads:
            compare(size, threads, options.rounds, options.seed)


if __name__ == "__main__":
    main()
