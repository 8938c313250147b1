"""The search among the decisions of a sketch, by the model alone: a descent from the rules' defaults, and from others.

It is the beam search of Adams et al. (*Learning to Optimize Halide with Tree Search and Random Programs*, 2019) turned
around: sketches are complete from the beginning, and steps change a decision.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from itertools import zip_longest

from ...lowering.decisions import DecisionValue, beside
from .candidates import Candidates, ScheduleCandidate, Scheduling, logger

TIRED = 40
"""So many decisions tried in a row that make no new candidate end the search."""
LEAST_GAIN = 1.1
"""A candidate is taken if it is predicted to be so many times as fast as the default schedule: the model errs, too."""
JUMP = 3
"""Decisions that change at once where no single one gains anything."""
MUCH = 1.01
"""A change of the structure makes a candidate so many times as fast, or it is not taken."""
NUMBERS = 0.25
"""The part of the candidates that is kept for the numbers in a structure."""
STRUCTURE = (".form", ".place", ".loops", ".at", ".order")
"""The decisions that change which loops there are: a descent begins with these."""


def search(of: Scheduling, candidates: int, seed: int) -> ScheduleCandidate:
    """The best of so many candidates by the model, never worse than the default schedule. Equal seeds search alike."""
    made = Candidates(of)
    default = made.default()
    descent = _Descent(made, default, candidates, random.Random(seed))
    descent.run()
    best = descent.best
    if best.cost.cycles * LEAST_GAIN > default.cost.cycles:
        best = default
    logger.info("%s: %s; by default %s", ", ".join(t.name for t in of.outputs), best.cost, default.cost)
    return best


class _Descent:
    """A walk from candidate to candidate, each better by the model than the one before. Mutable: it counts what it
    tried, of which no loop nest is counted twice."""

    def __init__(self, made: Candidates, default: ScheduleCandidate, count: int, rng: random.Random) -> None:
        self._made = made
        self._left = count
        self._rng = rng
        self._nests = {default.nest}
        self._numbers_from = count * NUMBERS
        self.best = default

    def run(self) -> None:
        """Choose the structure first, by changes that gain much; then numbers, by any gain."""
        at = self._new({}, again=True)
        if at is None:
            return
        at = self._structured(at)
        queue = _steps(at, self._rng)
        misses = 0
        while self._left > 0 and misses < TIRED:
            wanted = next(queue, None)
            found = self._new(_jump(at, self._rng) if wanted is None else wanted)
            misses = misses + 1 if found is None else 0
            if found is not None and _is_worth_it(found, at):
                at, queue = found, _steps(found, self._rng)

    def _structured(self, at: ScheduleCandidate) -> ScheduleCandidate:
        """Take each change of the structure that gains much, where it is met, and go on with the next: what was tried
        is not tried again on another candidate."""
        tried: set[tuple[str, DecisionValue]] = set()
        while self._left > self._numbers_from:
            step = next((step for step in _structural_steps(at) if step not in tried), None)
            if step is None:
                break
            tried.add(step)
            found = self._new({**at.chosen, step[0]: step[1]})
            if found is not None and _is_worth_it(found, at):
                at = found
        return at

    def _new(self, decided: Mapping[str, DecisionValue], again: bool = False) -> ScheduleCandidate | None:
        """The candidate of these decisions; None where there is none, or, unless ``again``, it was there before."""
        if self._left <= 0:
            return None
        found = self._made.sketched(decided)
        if found is None or (found.nest in self._nests and not again):
            return None
        self._left -= found.nest not in self._nests
        self._nests.add(found.nest)
        self.best = _better(self.best, found)
        return found


def _better(a: ScheduleCandidate, b: ScheduleCandidate) -> ScheduleCandidate:
    return b if b.cost.cycles < a.cost.cycles else a


def _is_worth_it(found: ScheduleCandidate, at: ScheduleCandidate) -> bool:
    """Whether the search goes on from a new candidate: a change of the structure may take away loops that others need,
    so it has to gain more than the model's rounding."""
    differing = {name for name, _ in found.chosen.items() ^ at.chosen.items()}
    least = MUCH if any(name.endswith(STRUCTURE) for name in differing) else 1.0
    return found.cost.cycles * least < at.cost.cycles


def _structural_steps(at: ScheduleCandidate) -> Iterator[tuple[str, DecisionValue]]:
    """The decisions that change most, each with one other value, then each with another one, and so on."""
    decisions = [d for d in at.decisions if d.name.endswith(STRUCTURE)]
    for values in zip_longest(*map(beside, decisions)):
        yield from ((d.name, value) for d, value in zip(decisions, values, strict=True) if value is not None)


def _steps(at: ScheduleCandidate, rng: random.Random) -> Iterator[dict[str, DecisionValue]]:
    """All decisions that differ from a candidate's in one value beside it, the structure's last: it is chosen."""
    decisions = [d for d in at.decisions if len(d.legal) > 1]
    rng.shuffle(decisions)
    decisions.sort(key=lambda d: d.name.endswith(STRUCTURE))
    values = {decision.name: beside(decision) for decision in decisions}
    for number in range(max(map(len, values.values()), default=0)):
        for name, others in values.items():
            if number < len(others):
                yield {**at.chosen, name: others[number]}


def _jump(at: ScheduleCandidate, rng: random.Random) -> dict[str, DecisionValue]:
    """Some decisions drawn anew."""
    open_ones = [d for d in at.decisions if len(d.legal) > 1]
    drawn = rng.sample(open_ones, min(JUMP, len(open_ones)))
    return {**at.chosen, **{d.name: rng.choice(d.legal) for d in drawn}}
