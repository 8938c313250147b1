"""The executors of an engine: a call takes a free one, and waits while there is none.

Mutable: the queue of free executors, and the threads that run what is submitted. A forked child begins with all
executors free, since the threads that ran them are not there.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import TypeVar

from ..ir.errors import InternalError, LoopwrightError
from .arrays import Array
from .executor import Executor
from .signature import Values

Result = TypeVar("Result")


class ExecutorSet:
    """``use(run)`` calls ``run(executor)`` with an executor that nobody else uses meanwhile."""

    def __init__(self, executors: Sequence[Executor], name: str) -> None:
        self.executors = tuple(executors)
        self._name = name
        self._hosts = tuple(dict.fromkeys(host for executor in executors for host in executor.hosts))
        self.renew()
        _sets.add(self)

    def renew(self) -> None:
        """Take all executors for free."""
        self._lock = threading.Lock()
        self._workers: ThreadPoolExecutor | None = None
        self._idle: SimpleQueue[Executor] = SimpleQueue()
        for host in self._hosts:
            host.forget_threads()
        for executor in self.executors:
            self._idle.put(executor)
        self._take = iter(self._idle.get, None)

    def use(self, run: Callable[[Executor], Result]) -> Result:
        """What ``run`` gives, on the calling thread."""
        idle, executor = self._idle, None
        if self._hosts:
            self._check_not_inside()
        try:
            # A loop of one round: no KeyboardInterrupt can come between taking an executor and having its name.
            for executor in self._take:
                return run(executor)
        finally:
            if executor is not None:
                idle.put(executor)
        raise InternalError(f"the executors of {self._name} are gone")

    def run(self, inputs: Sequence[Array], out: Values | None, context: bytes | None) -> list[Array]:
        """The outputs for checked inputs: as ``use`` does it, with a function call less."""
        idle, executor = self._idle, None
        if self._hosts:
            self._check_not_inside()
        try:
            for executor in self._take:
                return executor.run(inputs, out, context)
        finally:
            if executor is not None:
                idle.put(executor)
        raise InternalError(f"the executors of {self._name} are gone")

    def _check_not_inside(self) -> None:
        """Raise an error where the thread would wait for itself."""
        thread = threading.get_ident()
        if self._idle.empty() and any(host.is_inside(thread) for host in self._hosts):
            raise LoopwrightError(
                f"{self._name} is called by a function that it runs itself, and all of its {len(self.executors)} "
                "executors are busy: give it more by executors="
            )

    def submit(self, inputs: Sequence[Array], out: Values | None, context: bytes | None) -> Future[list[Array]]:
        """A run on a thread of the engine's, of which there are as many as executors."""
        with self._lock:
            if self._workers is None:
                self._workers = ThreadPoolExecutor(len(self.executors), f"loopwright-{self._name}")
            return self._workers.submit(self.run, inputs, out, context)


_sets: weakref.WeakSet[ExecutorSet] = weakref.WeakSet()


def _renew_all() -> None:
    for executors in list(_sets):
        executors.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
