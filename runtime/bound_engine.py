"""An engine together with inputs, checked once: what ``engine.bind`` gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from ..ir.errors import RuntimeArgumentError
from .arrays import Array
from .executor import Executor
from .executor_set import ExecutorSet


class BoundEngine:
    """``bound()`` runs the engine on its inputs, and gives the same output arrays, written anew. ``runs`` are the runs
    of these by executor."""

    __slots__ = ("_executors", "_outputs", "_run")

    def __init__(
        self, executors: ExecutorSet, runs: Mapping[Executor, Callable[[], object]], outputs: Sequence[Array]
    ) -> None:
        self._executors = executors
        self._run: Callable[[Executor], object] = lambda executor: runs[executor]()
        self._outputs = list(outputs)

    def __call__(self) -> list[Array]:
        self._executors.use(self._run)
        return self._outputs

    def __reduce__(self) -> NoReturn:
        raise RuntimeArgumentError(
            "a bound engine holds addresses of this process: pickle or copy engine.library, and bind an engine of that"
        )
