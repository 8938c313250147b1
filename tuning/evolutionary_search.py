"""Evolutionary search: good candidates are crossed at their decisions, and changed at random.

The scheme is that of Ansor (Zheng et al., OSDI 2020, section 5.1) on named decisions instead of traces: a decision
keeps its meaning wherever it is put, so that children are legal but for the nearest values.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from ..lowering.decisions import DecisionValue, beside
from .candidate import TuningCandidate
from .searcher import TrialResult
from .space import Space, drawn

PARENTS = 8
"""The best candidates of each implementation, which children are made of."""
PATIENCE = 48
"""So many candidates in a row, none of which is better, end the search."""
BETTER = 1.005
FRESH = 0.2
"""The share of candidates that are drawn anew."""
MUTATED = 0.25
"""How likely a decision changes."""
_TRIES = 20


class EvolutionarySearch:
    """First the defaults of all implementations and what records say, then children of the best. Mutable: it learns."""

    def __init__(self, space: Space, rng: random.Random) -> None:
        self._space, self._rng = space, rng
        self._seen: set[tuple[str, str | None]] = set()
        self._scored: list[TrialResult] = []
        self._best, self._vain = 0.0, 0
        own = (space.settle(name, {}) for name in space.implementations)
        given = (space.settle(start.implementation, start.decided) for start in space.starts)
        self._first = [settled.candidate for settled in (*own, *given) if settled is not None]

    def propose(self, count: int) -> Sequence[TuningCandidate]:
        """New ones; none where many in a row were in vain, or nothing new turns up."""
        found: list[TuningCandidate] = []
        while self._first and len(found) < count:
            self._take(self._first.pop(0), found)
        if self._vain >= PATIENCE:
            return found
        tries = 0
        while len(found) < count and tries < count * _TRIES:
            tries += 1
            made = self._child()
            if made is not None:
                self._take(made, found)
        return found

    def observe(self, results: Sequence[TrialResult]) -> None:
        """The best ones are those that children are made of."""
        for result in results:
            self._vain += 1
            if result.gain > self._best * BETTER:
                self._best, self._vain = result.gain, 0
        self._scored += (result for result in results if result.gain > 0)
        self._scored.sort(key=lambda result: -result.gain)

    def _take(self, candidate: TuningCandidate, found: list[TuningCandidate]) -> None:
        if candidate.key not in self._seen:
            self._seen.add(candidate.key)
            found.append(candidate)

    def _child(self) -> TuningCandidate | None:
        rng = self._rng
        parents = self._parents()
        if not parents or rng.random() < FRESH:
            settled = drawn(self._space, rng.choice(self._space.implementations), rng)
            return None if settled is None else settled.candidate
        one = parents[min(rng.randrange(len(parents)), rng.randrange(len(parents)))]  # the better of two
        others = [p for p in parents if p.implementation == one.implementation]
        other = rng.choice(others).decided
        wanted = {name: rng.choice((value, other.get(name, value))) for name, value in one.decisions}
        return self._mutated(one.implementation, wanted)

    def _mutated(self, implementation: str, wanted: dict[str, DecisionValue]) -> TuningCandidate | None:
        settled = self._space.settle(implementation, wanted)
        if settled is None:
            return None
        for decision in settled.decisions:
            if len(decision.legal) > 1 and self._rng.random() < MUTATED:
                near = beside(decision) if self._rng.random() < 0.5 else decision.legal
                wanted[decision.name] = self._rng.choice(near)
        settled = self._space.settle(implementation, wanted)
        return None if settled is None else settled.candidate

    def _parents(self) -> list[TuningCandidate]:
        """The best of each implementation, the best first."""
        counts: dict[str, int] = {}
        found = []
        for result in self._scored:
            name = result.candidate.implementation
            counts[name] = counts.get(name, 0) + 1
            if counts[name] <= PARENTS:
                found.append(result.candidate)
        return found
