"""Threads for work in the background, which a process of limited address space does without."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from .memory import is_address_space_limited

P = ParamSpec("P")
T = TypeVar("T")


def background_executor(threads: int = 1) -> Executor:
    """Threads that do what they are given, in order. Where the address space of the process is limited there are none,
    and what is submitted is done at once: glibc's malloc gives each thread 64 MiB of addresses of its own."""
    return _Foreground() if is_address_space_limited() else ThreadPoolExecutor(threads)


class _Foreground(Executor):
    """Does work when it is submitted."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
            if not isinstance(error, Exception):
                raise
        return future
