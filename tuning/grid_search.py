"""Grid search: all candidates, one after the other."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from ..lowering.decisions import DecisionValue
from .candidate import TuningCandidate
from .searcher import TrialResult
from .space import Space


class GridSearch:
    """The candidates in the order of implementations, decisions and values, the first decision varying slowest.
    Mutable: it is somewhere on its way."""

    def __init__(self, space: Space, rng: random.Random) -> None:
        self._space = space
        self._left = (candidate for name in space.implementations for candidate in self._all(name, {}))

    def propose(self, count: int) -> Sequence[TuningCandidate]:
        """The next ones; none at the end."""
        return list(islice(self._left, count))

    def observe(self, results: Sequence[TrialResult]) -> None:
        """Learn nothing: results do not change the order of the grid."""

    def _all(self, implementation: str, decided: Mapping[str, DecisionValue]) -> Iterator[TuningCandidate]:
        settled = self._space.settle(implementation, decided)
        if settled is None:
            return
        if len(decided) == len(settled.decisions):
            yield settled.candidate
            return
        decision = settled.decisions[len(decided)]
        for value in decision.legal:
            yield from self._all(implementation, {**decided, decision.name: value})
