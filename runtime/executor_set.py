"""The executors of an engine: a call takes a free one, and waits while there is none.

Mutable: the turns of the executors, and the threads that run what is submitted. A forked child begins with all
executors free, since the threads that ran them are not there.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from ..base.errors import InternalError
from .arrays import Array
from .executor import Executor
from .functions.host_call import is_inside
from .outputs import RunOutputs
from .signature import Values
from .turns import Turns
from .waits import waits

Result = TypeVar("Result")


class ExecutorSet:
    """``use(run)`` calls ``run(executor)`` with an executor that nobody else uses meanwhile."""

    def __init__(self, executors: Sequence[Executor], name: str) -> None:
        self.executors = tuple(executors)
        self.name = name
        self.hosts = tuple(dict.fromkeys(host for executor in executors for host in executor.hosts))
        self.renew()
        _sets.add(self)

    def renew(self) -> None:
        """Take all executors for free."""
        self._lock = threading.Lock()
        self._workers: ThreadPoolExecutor | None = None
        self._turns = Turns(self.executors)
        self.holders: dict[Executor, int | None] = dict.fromkeys(self.executors)

    def use(self, run: Callable[[Executor], Result]) -> Result:
        """What ``run`` gives, on the calling thread."""
        if self.hosts:
            return self._use_watched(run)
        turns, executor = self._turns, None
        try:
            for executor in turns.take:
                return run(executor)
        finally:
            if executor is not None:
                turns.free.append(executor)
                if turns.line:
                    turns.call_next()
        raise InternalError(f"the executors of {self.name} are gone")

    def run(self, inputs: Sequence[Array], out: Values | None, context: bytes | None) -> RunOutputs:
        """The outputs for checked inputs: as ``use`` does it, with a function call less."""
        if self.hosts:
            return self._use_watched(lambda executor: executor.run(inputs, out, context))
        turns, executor = self._turns, None
        try:
            for executor in turns.take:
                return executor.run(inputs, out, context)
        finally:
            if executor is not None:
                turns.free.append(executor)
                if turns.line:
                    turns.call_next()
        raise InternalError(f"the executors of {self.name} are gone")

    def use_first(self, run: Callable[[Executor], Result]) -> Result:
        """Use the first executor, after waiting for it, and keep others from work meanwhile."""

        def use(executor: Executor) -> Result:
            return run(executor) if executor is self.executors[0] else self.use(use)

        return self.use(use)

    def trim(self) -> None:
        """Have the executors that are free give back their memory for intermediates."""
        turns = self._turns
        for _ in self.executors:
            executor = None
            try:
                for executor in turns.take_idle:
                    executor.trim()
                    break
            except IndexError:  # all others are at work
                return
            finally:
                if executor is not None:
                    turns.free.append(executor)
                    if turns.line:
                        turns.call_next()

    def _use_watched(self, run: Callable[[Executor], Result]) -> Result:
        """``use``, where functions of Python may call engines while they hold an executor: of calls that would wait for
        each other for ever, the one that closes the circle raises an error instead.

        What is noted are stores, no calls, where a KeyboardInterrupt could leave half of them out.
        """
        turns, holders, executor = self._turns, self.holders, None
        thread = threading.get_ident()
        try:
            waits.begin(thread, self, turns.is_empty)
            for executor in turns.take:
                waits.waiting[thread] = None  # first: one that holds and waits could look like a circle
                holders[executor] = thread
                return run(executor)
        finally:
            waits.waiting[thread] = None
            if executor is not None:
                holders[executor] = None
                turns.free.append(executor)
                if turns.line:
                    turns.call_next()
        raise InternalError(f"the executors of {self.name} are gone")

    def submit(self, inputs: Sequence[Array], out: Values | None, context: bytes | None) -> Future[RunOutputs]:
        """A run on a thread of the engine's, of which there are as many as executors. From a function that an engine
        runs, it is made at once, on the function's own thread: what that holds could be what the run waits for."""
        if is_inside():
            return _done(lambda: self.run(inputs, out, context))
        with self._lock:
            if self._workers is None:
                self._workers = ThreadPoolExecutor(len(self.executors), f"loopwright-{self.name}")
            return self._workers.submit(self.run, inputs, out, context)


def _done(run: Callable[[], Result]) -> Future[Result]:
    """What a run has come to, as a future."""
    future: Future[Result] = Future()
    try:
        future.set_result(run())
    except Exception as error:
        future.set_exception(error)
    return future


_sets: weakref.WeakSet[ExecutorSet] = weakref.WeakSet()


def _renew_all() -> None:
    waits.forget()
    for executors in list(_sets):
        executors.renew()
        for host in executors.hosts:
            host.forget_threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
