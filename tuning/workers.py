"""Who does jobs: any object with the ``submit`` of ``concurrent.futures``; by default threads that start processes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any, Protocol

from ..base.errors import RuntimeArgumentError
from .jobs import TuningJob, run_job
from .outcome import LOST, Outcome
from .sandbox import START_SECONDS, Answer

_log = logging.getLogger("loopwright.tuning")
ATTEMPTS, PAUSE_SECONDS = 3, 2.0
"""A job whose worker is lost is submitted anew, so often in all, with pauses that grow."""


class SubmitsJobs(Protocol):
    """Who runs jobs, as executors of ``concurrent.futures`` do, those of a Dask client and of ``mpi4py.futures``."""

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Have a worker call a function; the future has its result."""


class LocalWorkers:
    """Workers of this machine: so many jobs run at once, each in child processes. Mutable: ``close`` ends them all."""

    def __init__(self, count: int) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="loopwright-tune")
        self._stop = threading.Event()

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Have a thread call a function, with what calls it off as its last argument."""
        return self._pool.submit(function, *args, self._stop)

    def close(self) -> None:
        """End all jobs, and wait until their processes are gone."""
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)


@contextmanager
def given_or_local(given: SubmitsJobs | None, jobs: int) -> Iterator[SubmitsJobs]:
    """The workers that a user gives; without them those of this machine, so many jobs at once, which end with the
    block."""
    if given is not None:
        yield given
        return
    with closing(LocalWorkers(jobs)) as own:
        yield own


def check_workers(given: object) -> None:
    """Raise ``RuntimeArgumentError`` for what jobs cannot be submitted to."""
    if not callable(getattr(given, "submit", None)):
        raise RuntimeArgumentError(
            "workers should be an object with the submit of concurrent.futures, as a ProcessPoolExecutor or "
            f"dask.distributed's client.get_executor(), found {given!r}"
        )


def do_all(
    workers: SubmitsJobs, jobs: Sequence[TuningJob], sleep: Callable[[float], None] = time.sleep
) -> list[Answer | None]:
    """The answers to jobs, which run at once; None where the worker was lost, again and again."""
    found: list[Answer | None] = [None] * len(jobs)
    left = list(range(len(jobs)))
    for attempt in range(ATTEMPTS):
        sleep(attempt * PAUSE_SECONDS)  # none at first; a cluster may need some to start a worker anew
        futures = [(number, workers.submit(run_job, jobs[number])) for number in left]
        left = []
        for number, future in futures:
            try:
                found[number] = future.result(_patience(jobs[number]))
            except Exception as error:  # that of the executor, whichever it is: the worker died, or was not heard of
                _log.warning("a worker was lost, with a job: %s: %s", type(error).__name__, error)
                future.cancel()
                left.append(number)
        if not left:
            break
    return found


def outcomes_of(workers: SubmitsJobs, jobs: Sequence[TuningJob]) -> list[Outcome]:
    """The outcomes of the items of jobs, which run at once, in order."""
    found = []
    for job, answer in zip(jobs, do_all(workers, jobs), strict=True):
        found += [LOST] * len(job["items"]) if answer is None else [Outcome.of(each) for each in answer["answers"]]
    return found


def _patience(job: TuningJob) -> float:
    """Seconds after which a worker must have answered, whatever its candidates do: each may need a child."""
    return float((START_SECONDS + job["seconds"]) * (2 + len(job["items"])))
