"""What the executors of an engine take of the memory that its model may take.

Mutable: the bytes of each executor, under a lock.
"""

from __future__ import annotations

from ..base.errors import OutOfMemoryError
from ..base.memory import VARIABLE
from .threads.fork_lock import ForkLock


class MemoryBudget:
    """``limit`` bytes are for the ``weights``, which all executors share, and what each of these claims."""

    def __init__(self, name: str, limit: int, weights: int) -> None:
        self._name = name
        self._limit = limit
        self._weights = weights
        self._claims: dict[int | None, int] = {}
        self._lock = ForkLock()

    def claim(self, executor: int | None, size: int, shown: str) -> None:
        """Take ``size`` bytes for arena, outputs and kernels of the executor of that number, in the place of what it
        had. ``shown`` says for what dimensions.

        Raises ``OutOfMemoryError`` where that is more than is left.
        """
        with self._lock.held:
            others = sum(claimed for owner, claimed in self._claims.items() if owner != executor)
            total = self._weights + others + size
            if total > self._limit:
                raise OutOfMemoryError(
                    f"{self._name}{shown} needs {total} bytes of memory: {self._weights} for weights, {size} for "
                    f"intermediates, outputs and kernels of a run, {others} for those of other executors. The limit is "
                    f"{self._limit}: raise it by lw.Engine(…, memory_limit=…) or the environment variable {VARIABLE}"
                )
            self._claims[executor] = size
