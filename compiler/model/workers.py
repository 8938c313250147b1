"""Compiling many functions at once, in processes of their own: lowering is Python, and LLVM holds one lock a process.

A worker is a fresh interpreter that answers pickled requests on a pipe; so the caller's main module is not imported
again, and a crash of LLVM takes one worker down, not the caller.
"""

from __future__ import annotations

import gc
import logging
import pickle
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from typing import IO, NamedTuple, Self, TypeVar

from ...artifact.function import CompiledFunction
from ...base.background import background_executor
from ...base.child_python import pipes_of, python_command
from ...base.dataclass import dataclass
from ...base.errors import InternalError, LoopwrightError, OutOfMemoryError
from ...base.garbage import OBJECTS_BETWEEN_COLLECTIONS
from ...base.memory import NO_MEMORY_STATUS, ended_without_memory, memory_errors
from ...base.thread_turns import short_turns
from ...base.timing import CURRENT, CompileTiming, TimedStage, add_part, merged
from ...graph.node import Call, Function
from ...graph.visit import post_order
from ..selection.workload import workloads_of
from ..settings import CompileSettings
from .compile_function import EmittedFunction, emit_function
from .function_cache import function_cache, function_key
from .op_call import packed_function

_log = logging.getLogger("loopwright.cache")
T = TypeVar("T")
LEAST_FOR_WORKERS = 6
"""With fewer functions to compile, the start of processes would cost more than it saves."""
_CALLS_A_WORKER = 25
"""So many calls of a graph are worth a process that may turn out not to be needed."""
_SPACE = 256 << 20
"""A process that may not have so many more addresses cannot import numpy, whose threads end it where they get none."""
_PROGRAM = """{quiet}
import errno, gc, mmap, sys
gc.disable()
try:
    mmap.mmap(-1, {space}).close()
    from {module} import serve
except (MemoryError, ImportError):
    sys.exit({status})
except OSError as error:
    sys.exit({status} if error.errno == errno.ENOMEM else 1)
serve(sys.stdin.buffer, sys.stdout.buffer)
"""
Progress = Callable[[str], None]
"""Called with the name of each function that is done."""


@dataclass(frozen=True, slots=True)
class Job:
    """A closed function to compile, and by which settings."""

    function: Function
    settings: CompileSettings

    @property
    def key(self) -> str:
        """The function's key in the cache, by all that its code depends on."""
        return function_key(self.function, self.settings)

    @property
    def for_worker(self) -> Job:
        """The job as a worker is given it: of all records, which may be many, it gets those that are looked up, and it
        leaves the cache to its caller."""
        settings = self.settings
        options = replace(settings.options, cache=False)
        records = settings.records.about(workloads_of(self.function))
        return Job(self.function, replace(settings, options=options, records=records))

    @property
    def cached(self) -> bool:
        """Whether the result is taken from the cache, and kept there."""
        return self.settings.options.cache


class Workers:
    """A block in which at most ``jobs`` child processes compile; they end with it. Mutable: starts them when told
    to."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._started: list[_Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._started:
            worker.close()

    def start_ahead(self, function: Function) -> None:
        """Start processes for a model that has yet to be taken apart, if it is likely to need them: they take as long
        to start as its graph to be planned, for which one core is left. What the cache will hold is not known yet."""
        calls = sum(isinstance(node, Call) for node in post_order(function.body))
        self.start(min(calls // _CALLS_A_WORKER, self.jobs - 1))

    def start(self, count: int) -> list[_Worker]:
        """All processes, which are now ``count`` or more, as far as there may be so many."""
        while len(self._started) < min(count, self.jobs):
            self._started.append(_Worker())
        return self._started


def compile_all(work: Mapping[str, Job], workers: Workers, progress: Progress) -> dict[str, CompiledFunction]:
    """Compile functions, given by their keys in the cache, or take them from there; with one job, compile here.

    Results do not depend on the number of workers.
    """
    done: dict[str, CompiledFunction] = {}
    for key, job in work.items():
        found = packed_function(job.function)
        if found is None and job.cached:
            found = function_cache.find(key, job.function, job.settings.target)
        if found is not None:
            done[key] = found
            progress(job.function.name)
    missing = {key: job for key, job in work.items() if key not in done}
    if workers.jobs > 1 and len(missing) >= LEAST_FOR_WORKERS:
        done.update(_compile_in_workers(missing, workers.start(len(missing)), progress))
    else:
        done.update(_compile_here(missing, progress))
    log_counts(len(work) - len(missing), len(missing))
    return done


def _compile_here(work: Mapping[str, Job], progress: Progress) -> dict[str, CompiledFunction]:
    """Compile in this process: LLVM compiles a function, in a thread of its own, while Python lowers the next ones."""
    done: dict[str, CompiledFunction] = {}
    waiting: deque[tuple[str, Future[_Answer]]] = deque()

    def take_first() -> None:
        key, future = waiting.popleft()
        answer = future.result()
        add_part(answer.timing)
        done[key] = answer.made
        progress(work[key].function.name)

    with short_turns(), background_executor() as llvm:
        try:
            for key, job in work.items():
                waiting.append((key, llvm.submit(_completed, key, job, *_emitted(job))))
                while waiting and waiting[0][1].done():
                    take_first()
            while waiting:
                take_first()
        finally:
            llvm.shutdown(cancel_futures=True)
    return done


def log_counts(cached: int, compiled: int) -> None:
    """Say of so many functions where they came from."""
    kept = function_cache.info()
    counts = cached, compiled, kept.entries, kept.limit
    _log.info("functions: %d from the cache, %d compiled; %d of at most %d are in memory", *counts)


def _compile_in_workers(
    work: Mapping[str, Job], workers: Sequence[_Worker], progress: Progress
) -> dict[str, CompiledFunction]:
    idle: SimpleQueue[_Worker] = SimpleQueue()
    for worker in workers:
        idle.put(worker)

    def run(key: str) -> _Answer:
        worker, job = idle.get(), work[key]
        try:
            answer = worker.compile(key, job)
        finally:
            idle.put(worker)
        if answer is None:
            answer = _timed_compilation(key, job)
        elif job.cached:
            function_cache.put(key, answer.made, job.settings.target)
        progress(job.function.name)
        return answer

    with ThreadPoolExecutor(len(workers)) as threads:
        answers = dict(zip(work, threads.map(run, work), strict=True))
    for answer in answers.values():
        add_part(answer.timing)
    return {key: answer.made for key, answer in answers.items()}


class _Answer(NamedTuple):
    """A compiled function, and what it took."""

    made: CompiledFunction
    timing: CompileTiming


def _timed_compilation(key: str, job: Job) -> _Answer:
    return _completed(key, job, *_emitted(job))


def _emitted(job: Job) -> tuple[EmittedFunction, CompileTiming]:
    return _apart(job, partial(emit_function, job.function, job.settings))


def _completed(key: str, job: Job, emitted: EmittedFunction, before: CompileTiming) -> _Answer:
    made, after = _apart(job, partial(emitted.compile, key))
    return _Answer(made, *merged((before, after)))


def _apart(job: Job, run: Callable[[], T]) -> tuple[T, CompileTiming]:
    """What a part of a compilation returns, and its timing, which is part of no other one yet."""

    def timed_run() -> tuple[T, CompileTiming]:
        CURRENT.set(None)
        with TimedStage(job.function.name, "function") as stage:
            made = run()
        return made, stage.timing

    return copy_context().run(timed_run)


class _Worker:
    """A child process that compiles. Used by one thread at a time."""

    def __init__(self) -> None:
        # Ctrl-C in a terminal reaches the children too: they end without a word, for the parent tells of it.
        quiet = "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL)"
        program = _PROGRAM.format(quiet=quiet, module=__name__, space=_SPACE, status=NO_MEMORY_STATUS)
        self._process = subprocess.Popen(python_command(program), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._requests, self._answers = pipes_of(self._process)
        self._used = False

    def compile(self, key: str, job: Job) -> _Answer | None:
        """The function; None where operators or strategies were registered here that the process does not have."""
        self._used = True
        try:
            pickle.dump(pickle.dumps((key, job.for_worker)), self._requests)
            self._requests.flush()
            answer: _Answer | BaseException | None = pickle.load(self._answers)
        except (EOFError, BrokenPipeError) as error:
            raise self._why_it_died(job.function.name) from error
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _why_it_died(self, name: str) -> LoopwrightError:
        status = self._process.wait()
        if ended_without_memory(status):
            return OutOfMemoryError(
                f"the process that compiled {name} ended (status {status}), as where there is not enough memory: give "
                "it more, or let fewer compile at a time, by jobs="
            )
        return InternalError(f"the process that compiled {name} died ({status})")

    def close(self) -> None:
        """End the process and give its pipes back."""
        if not self._used:
            self._process.kill()  # it may take long yet to start
        with self._process, suppress(BrokenPipeError):  # it has died, with a request unread
            self._requests.close()


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer requests until the pipe is closed."""
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    gc.enable()
    while True:
        try:
            request: bytes = pickle.load(requests)
        except EOFError:
            return
        pickle.dump(_answer(request), answers)
        answers.flush()


def _answer(request: bytes) -> _Answer | Exception | None:
    """The function, or what prevents it; None where the caller's key shows that it would be compiled otherwise there:
    operators, strategies and targets may have been registered in the caller's process alone."""
    try:
        key, job = pickle.loads(request)
        if job.key != key:
            return None
    except (LoopwrightError, ImportError, AttributeError):  # an operator, or its attributes, that only the caller has
        return None
    try:
        with memory_errors(f"compiling {job.function.name}"):
            return _timed_compilation(key, job)
    except LoopwrightError as error:
        return error
    except Exception as error:  # whatever it is, the parent must hear of it
        return InternalError(f"compiling {job.function.name} failed: {type(error).__name__}: {error}")
