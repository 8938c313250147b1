"""Descent: from the best candidate of another search to the best of its neighbours, until none is better."""

from __future__ import annotations

from collections.abc import Sequence

from .candidate import TuningCandidate
from .searcher import Searcher, TrialResult
from .space import Space, neighbours

BETTER = 1.005
"""A neighbour is moved to if it is so many times as fast."""


class ThenDescent:
    """What another searcher proposes, then all neighbours of the best. Mutable: it is somewhere on its way."""

    def __init__(self, space: Space, first: Searcher) -> None:
        self._space = space
        self._first: Searcher | None = first
        self._seen: set[tuple[str, str | None]] = set()
        self._best: TrialResult | None = None
        self._at: tuple[str, str | None] | None = None
        self._left: list[TuningCandidate] = []

    def propose(self, count: int) -> Sequence[TuningCandidate]:
        """Propose what the first searcher does, then neighbours of the best that it has not tried; none where the best
        has no better one."""
        if self._first is not None:
            found = self._first.propose(count)
            if found:
                self._seen.update(candidate.key for candidate in found)
                return found
            self._first = None
        if not self._left and self._best is not None and self._at != self._best.candidate.key:
            self._move(self._best.candidate)
        taken, self._left = self._left[:count], self._left[count:]
        self._seen.update(candidate.key for candidate in taken)
        return taken

    def observe(self, results: Sequence[TrialResult]) -> None:
        """The best so far is where the descent goes on."""
        if self._first is not None:
            self._first.observe(results)
        for result in results:
            if result.gain > 0 and (self._best is None or result.gain > self._best.gain * BETTER):
                self._best = result

    def _move(self, to: TuningCandidate) -> None:
        self._at = to.key
        settled = self._space.settle(to.implementation, to.decided)
        around = [] if settled is None else neighbours(self._space, settled)
        self._left = [candidate for candidate in around if candidate.key not in self._seen]
