"""A search whose candidates are ranked before they are measured, by a model that learns from those that were.

The scheme is that of AutoTVM (Chen et al., *Learning to optimize tensor programs*, 2018): a searcher proposes more than
can be measured, and what is predicted to be the fastest is measured, beside some that are drawn.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from ..schedules.auto.candidates import ScheduleCandidate
from ..schedules.auto.learned.cost_correction import CostCorrection
from .candidate import TuningCandidate
from .searcher import Searcher, TrialResult

DRAWN = 4
"""So many times as many candidates as are to be measured are ranked."""
EXPLORED = 4
"""One in so many of those measured is drawn, whatever is predicted of it."""
WAITING = 64
"""The best that are not measured yet wait, at most so many."""


@runtime_checkable
class PredictsCost(Protocol):
    """A space that knows what a candidate is predicted to take."""

    def predicted(self, candidate: TuningCandidate) -> ScheduleCandidate | None:
        """The schedule of a candidate, its features, and what a model predicts; None where it cannot be lowered."""


class RankedSearch:
    """Has another searcher propose, and lets those be measured that are ranked first. Mutable: it learns.

    Of candidates with the same loop nest one is proposed. Those of the first round are the other searcher's own.
    """

    def __init__(self, space: PredictsCost, inner: Searcher, rng: random.Random) -> None:
        self._space, self._inner, self._rng = space, inner, rng
        self._correction = CostCorrection()
        self._waiting: list[tuple[TuningCandidate, ScheduleCandidate]] = []
        self._proposed: dict[tuple[str, str | None], ScheduleCandidate] = {}
        self._nests: set[str] = set()
        self._measured: list[tuple[ScheduleCandidate, float]] = []

    def propose(self, count: int) -> Sequence[TuningCandidate]:
        """Propose those that are ranked first, and some that are drawn."""
        proposed = self._take_up(DRAWN * count if self._measured else count)
        while proposed and len(self._waiting) < count:
            proposed = self._take_up(count)
        ranks = self._correction.logarithms([made for _, made in self._waiting])
        ordered = [self._waiting[k] for k in np.argsort(ranks, kind="stable")]
        if not proposed:  # it has ended: what is left is worth it if it may be the best
            best = self._correction.logarithms([made for made, _ in self._measured]).min(initial=np.inf)
            ordered = ordered[: int((ranks < best).sum())]
        drawn = self._rng.sample(ordered, min(count // EXPLORED, len(ordered))) if self._measured else []
        taken = [*drawn, *(pair for pair in ordered if pair not in drawn)][:count]
        self._waiting = [pair for pair in ordered if pair not in taken][:WAITING]
        self._proposed.update((candidate.key, made) for candidate, made in taken)
        return [candidate for candidate, _ in taken]

    def _take_up(self, count: int) -> bool:
        """Let new candidates of the other searcher wait; whether it proposed any."""
        proposed = self._inner.propose(count)
        for candidate in proposed:
            made = self._space.predicted(candidate)
            if made is not None and made.nest not in self._nests:
                self._nests.add(made.nest)
                self._waiting.append((candidate, made))
        return bool(proposed)

    def observe(self, results: Sequence[TrialResult]) -> None:
        """Learn from the results, as the other searcher does."""
        self._inner.observe(results)
        for result in results:
            made = self._proposed.get(result.candidate.key)
            if made is not None and result.gain > 0:
                self._measured.append((made, 1 / result.gain))
        measured = [made for made, _ in self._measured]
        self._correction = CostCorrection.learn(measured, [seconds for _, seconds in self._measured])
