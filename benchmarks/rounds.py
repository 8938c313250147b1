"""Timing of contenders that must not disturb each other: each in a process of its own, in alternating rounds.

A contender is a script that calls ``serve``; all but one wait on a pipe at any time, so that no thread pool keeps
spinning beside another. What is compared are medians over the rounds of one run.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence

CALLS = 10
PAUSE = 0.03
LEAST_SECONDS = 2e-3
"""A round of short calls is made longer than this, so that asking for it does not count."""


def serve(run: Callable[[], object], operations: int = 0) -> None:
    """In a contender: for each line on stdin, print the seconds that one call takes, the mean over a round's calls."""
    run()
    start = time.perf_counter()
    run()
    calls = max(CALLS, int(LEAST_SECONDS / (time.perf_counter() - start + 1e-9)))
    print(operations, flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        for _ in range(calls):
            run()
        print((time.perf_counter() - start) / calls, flush=True)


class Contender:
    """A contender's process, asleep on its pipe until it is asked. Mutable: ``seconds`` grows by one a round."""

    def __init__(self, script: str, arguments: Sequence[str], threads: int = 1) -> None:
        limits = {name: str(threads) for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "LOOPWRIGHT_NUM_THREADS")}
        self.process = subprocess.Popen(
            [sys.executable, script, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **limits},
        )
        first = self._line()
        if not first:
            raise SystemExit(f"{' '.join(arguments)} did not start")
        self.operations = int(first)
        self.seconds: list[float] = []

    def _line(self) -> str:
        return self.process.stdout.readline().strip()

    def measure(self) -> None:
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        self.seconds.append(float(self._line()))

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def alternate(contenders: Mapping[str, Contender], rounds: int, seed: int = 0) -> None:
    """Let each contender measure once a round, in random order, and end their processes."""
    order = random.Random(seed)
    for _ in range(rounds):
        for name in order.sample(list(contenders), len(contenders)):
            contenders[name].measure()
            time.sleep(PAUSE)
    for contender in contenders.values():
        contender.close()
