"""What the executors and sessions of an engine take of the memory that its model may take.

Mutable: the bytes of each, under a lock.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from ..base.errors import OutOfMemoryError
from ..base.memory import VARIABLE
from .threads.fork_lock import ForkLock


class MemoryBudget:
    """``limit`` bytes are for the ``weights``, which all executors share, and what these and sessions claim. Where a
    claim goes beyond it, ``reclaim`` has others give back what is not in use, and it is tried once more."""

    def __init__(self, name: str, limit: int) -> None:
        self._name = name
        self.limit = limit
        self.weights = self.largest = 0
        self.reclaim: Callable[[], None] = _nothing
        self._claims: dict[Hashable, int] = {}
        self._lock = ForkLock()

    def hold_weights(self, size: int) -> None:
        """Take ``size`` bytes for the weights. Raises ``OutOfMemoryError`` where these alone are more than there may
        be."""
        self.weights = self.largest = size
        if size > self.limit:
            raise self._refusal(0, 0, "")

    def claim(self, owner: Hashable, size: int, shown: str) -> None:
        """Take ``size`` bytes for arena, outputs and kernels of an executor, or for the states of a session, in the
        place of what it had. ``owner`` stands for one of these, ``shown`` says for what dimensions.

        Raises ``OutOfMemoryError`` where that is more than is left.
        """
        if not self._take(owner, size):
            self.reclaim()
            if not self._take(owner, size):
                raise self._refusal(size, self._others(owner), shown)

    def release(self, owner: Hashable) -> None:
        """Take nothing any more."""
        with self._lock.held:
            self._claims.pop(owner, None)

    def _take(self, owner: Hashable, size: int) -> bool:
        with self._lock.held:
            total = self.weights + self._others(owner) + size
            if total > self.limit:
                return False
            self._claims[owner] = size
            self.largest = max(self.largest, total)
            return True

    def _others(self, owner: Hashable) -> int:
        return sum(claimed for other, claimed in list(self._claims.items()) if other != owner)

    def _refusal(self, size: int, others: int, shown: str) -> OutOfMemoryError:
        return OutOfMemoryError(
            f"{self._name}{shown} needs {self.weights + others + size} bytes of memory: {self.weights} for weights, "
            f"{size} for intermediates, outputs and kernels of a run, or for states, {others} for those of other "
            f"executors and sessions. The limit is {self.limit}: raise it by lw.Engine(…, memory=…) or the environment "
            f"variable {VARIABLE}"
        )


def _nothing() -> None:
    """There is nothing to give back."""
