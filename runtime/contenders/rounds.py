"""Timing of contenders that must not disturb each other: each in a process of its own, in alternating rounds.

A contender is a program that calls ``serve``; all but one wait on a pipe at any time, and one answers when its threads
sleep, so that no thread pool keeps spinning beside another. What is compared are medians over the rounds of one run.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

from ...base.errors import LoopwrightError

CALLS = 10
PAUSE = 0.03
"""Seconds between contenders, at least: after so long without work the threads of one are taken to sleep."""
PAUSES = 100
"""A contender whose threads do not sleep in so many is left out."""
PATIENCE = 300.0
"""Seconds after which a contender that does not answer is given up."""
LEAST_SECONDS = 2e-3
"""A round of short calls is made longer than this, so that asking for it does not count."""
MOST_SAMPLES = 10_000
"""Calls of a round that are timed one by one, at most."""

Run: TypeAlias = Callable[[], object]
Facts: TypeAlias = dict[str, Any]


def serve(prepare: Callable[[str], tuple[Run, Facts]]) -> None:
    """Answer each line of stdin by a line of JSON, until stdin ends. A contender runs this.

    ``load …`` prepares what follows: ``prepare`` gives what to call, and facts for the asker, or raises. ``go <calls>``
    measures it, the first time after calls that warm up: the seconds that one call takes, the mean over a round.
    ``each <seconds>`` gives the seconds of each call of a round that lasts so long. The answer comes when all threads
    sleep. What libraries print goes to stderr.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    run: Run = _nothing
    calls = 0
    for line in sys.stdin:
        order, _, request = line.strip().partition(" ")
        try:
            if order == "load":
                run = _nothing  # frees what was there
                calls, (run, answer) = 0, prepare(request)
            elif order == "each":
                answer = {"seconds": _each_seconds(run, float(request))}
            else:
                calls = calls or _calls(run)
                answer = {"seconds": _mean_seconds(run, max(int(request), calls))}
            _rest()
        except Exception as problem:
            answer = {"refused": " ".join(f"{type(problem).__name__}: {problem}".split())[:300]}
        print(json.dumps(answer), file=answers, flush=True)


def _nothing() -> None:
    raise LookupError("nothing is loaded")


def _calls(run: Run) -> int:
    """How many calls make a round long enough; they warm up as well."""
    run()
    calls = 1
    while (seconds := calls * _mean_seconds(run, calls)) < LEAST_SECONDS / 2:
        calls *= 2
    return 1 + int(calls * LEAST_SECONDS / seconds)


def _each_seconds(run: Run, seconds: float) -> list[float]:
    """The seconds of each of the calls that fit, and of one at least."""
    taken: list[float] = []
    now = time.perf_counter()
    end = now + seconds
    while not taken or (now < end and len(taken) < MOST_SAMPLES):
        start = now
        run()
        now = time.perf_counter()
        taken.append(now - start)
    return taken


def _mean_seconds(run: Run, calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls


def _rest() -> None:
    """Wait until this process has used next to no processor time for a pause.

    Workers of a thread pool that wait for its next loop awake take a core from whoever comes next: 40 ms those of
    onnxruntime, more than 100 ms those of OpenBLAS.
    """
    for _ in range(PAUSES):
        before = time.process_time()
        time.sleep(PAUSE)
        if time.process_time() - before < PAUSE / 10:
            return
    raise RuntimeError(f"its threads do not sleep within {PAUSES * PAUSE:g} s")


class Refused(LoopwrightError):  # noqa: N818  # not an error: that peer is left out
    """What a contender did not want or manage to do."""


class Contender:
    """A contender's process, which runs a command, asleep on its pipe until it is asked. Mutable: ``seconds`` grows by
    one a round, ``samples`` by the seconds of each call of those rounds of which they are known.

    ``threads`` is passed to the libraries that read it from the environment.
    """

    def __init__(self, command: Sequence[str], threads: int = 1) -> None:
        limits = {name: str(threads) for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "LOOPWRIGHT_NUM_THREADS")}
        self._command = list(command)
        self._environment = {**os.environ, **limits}
        self._process: subprocess.Popen[str] | None = None
        self.seconds: list[float] = []
        self.samples: list[float] = []

    def load(self, request: str) -> Facts:
        """Let it prepare; forgets what was measured before. Raises ``Refused``, as the others do."""
        self.seconds, self.samples = [], []
        if self._process is None:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=self._environment,
                process_group=0,  # an interrupt is for us; we end it by closing the pipe
            )
        return self._ask(f"load {request}")

    def warm_up(self, seconds: float) -> None:
        """Calls that are not measured, one at least."""
        self._ask(f"each {seconds}", PATIENCE + seconds)

    def measure(self, calls: int = CALLS) -> None:
        """A round of so many calls at least; its ``seconds`` are their mean."""
        self.seconds.append(float(self._ask(f"go {calls}")["seconds"]))

    def measure_each(self, seconds: float) -> None:
        """A round that lasts so long; its ``seconds`` are the median of its calls."""
        samples: list[float] = self._ask(f"each {seconds}", PATIENCE + seconds)["seconds"]
        self.seconds.append(statistics.median(samples))
        self.samples += samples

    def _ask(self, question: str, patience: float = PATIENCE) -> Facts:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise Refused("it is not there any more")
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(question + "\n")
            process.stdin.flush()
        readable, _, _ = select.select([process.stdout], [], [], patience)
        line = process.stdout.readline() if readable else ""
        if not line:
            self.kill()
            raise Refused(f"it ended with code {process.returncode}" if readable else f"no answer in {patience:g} s")
        answer: Facts = json.loads(line)
        if "refused" in answer:
            raise Refused(answer["refused"])
        return answer

    @property
    def median(self) -> float:
        """Seconds of the median round."""
        return statistics.median(self.seconds)

    def kill(self) -> None:
        """End the process at once."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def close(self) -> None:
        """End the process, by itself if it does so soon."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=2)
            self._process.stdin = None
            self.kill()


@contextlib.contextmanager
def ended(contenders: Iterable[Contender]) -> Iterator[None]:
    """Whatever happens inside, an interrupt too, no process of theirs stays behind."""
    held = list(contenders)
    try:
        yield
    finally:
        for contender in held:
            contender.close()


def load_all(contenders: Mapping[str, Contender], request: str) -> tuple[dict[str, Contender], dict[str, str]]:
    """Let all prepare at once, since nothing is measured yet. Gives those that are ready, and why others are not."""
    ready, refused = {}, {}
    with ThreadPoolExecutor(len(contenders) or 1) as pool:
        loads = {name: pool.submit(contender.load, request) for name, contender in contenders.items()}
    for name, load in loads.items():
        try:
            load.result()
            ready[name] = contenders[name]
        except Refused as reason:
            refused[name] = str(reason)
    return ready, refused


def alternate(
    contenders: Mapping[str, Contender],
    rounds: int,
    seed: int = 0,
    measure: Callable[[Contender], None] = Contender.measure,
) -> dict[str, str]:
    """Let each contender measure once a round, in random order. Gives the reasons of those that did not get through."""
    order = random.Random(seed)
    refused: dict[str, str] = {}
    for _ in range(rounds):
        for name in order.sample(list(contenders), len(contenders)):
            if name in refused:
                continue
            try:
                measure(contenders[name])
            except Refused as reason:
                refused[name] = str(reason)
    return refused
