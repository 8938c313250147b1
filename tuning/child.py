"""The program of a child process: it reads a job, and answers item by item. See ``sandbox.py``."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .sandbox import START_SECONDS, Answer


def _worker_of(kind: str) -> Callable[[Mapping[str, Any]], Iterator[Answer]]:
    """What does a job: it yields what it says when it is ready, then an answer an item. It alone is imported: who
    measures needs no compiler."""
    match kind:
        case "compile":
            from .compile_candidates import compile_candidates

            return compile_candidates
        case "traces":
            from .compile_traces import compile_traces

            return compile_traces
        case "time":
            from .measure_candidates import time_untuned

            return time_untuned
        case "measure":
            from .measure_candidates import measure_candidates

            return measure_candidates
        case _:
            from .measure_model import measure_model

            return measure_model


def main() -> None:
    """Do the job on stdin. Answers leave by what was stdout; what libraries print goes to stderr."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    job = pickle.load(sys.stdin.buffer)
    limit = job["seconds"]
    _end_after(START_SECONDS + 2 * limit)
    for answer in _worker_of(job["kind"])(job):
        limit += answer.get("grace", 0.0)
        pickle.dump(answer, answers)
        answers.flush()
        _end_after(2 * limit + 1)
    os._exit(0)  # what candidates left behind, such as threads, is not waited for


def _end_after(seconds: float) -> None:
    """End this process by a signal, should nobody be there any more who ends it: native code that hangs does not see
    that its parent is gone."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)
