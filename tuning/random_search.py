"""Random search: the baseline that any other search is to beat."""

from __future__ import annotations

import random
from collections.abc import Sequence

from .candidate import TuningCandidate
from .searcher import TrialResult
from .space import Space, drawn

TIRED = 50
"""So many draws in a row that give nothing new end the search."""


class RandomSearch:
    """Candidates drawn at random. Mutable: it remembers which."""

    def __init__(self, space: Space, rng: random.Random) -> None:
        self._space, self._rng = space, rng
        self._seen: set[tuple[str, str | None]] = set()

    def propose(self, count: int) -> Sequence[TuningCandidate]:
        """New ones; none where nothing new turns up."""
        found: list[TuningCandidate] = []
        misses = 0
        while len(found) < count and misses < TIRED:
            settled = drawn(self._space, self._rng.choice(self._space.implementations), self._rng)
            if settled is None or settled.candidate.key in self._seen:
                misses += 1
                continue
            self._seen.add(settled.candidate.key)
            found.append(settled.candidate)
        return found

    def observe(self, results: Sequence[TrialResult]) -> None:
        """Learn nothing: what is drawn does not depend on results."""
