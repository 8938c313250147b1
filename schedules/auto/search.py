"""The search among the decisions of a sketch, by the model alone: a descent from the rules' defaults, and from others.

It is the beam search of Adams et al. (*Learning to Optimize Halide with Tree Search and Random Programs*, 2019) turned
around: sketches are complete from the beginning, and steps change a decision.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from ...lowering.decisions import DecisionValue, beside
from .candidates import Candidates, ScheduleCandidate, Scheduling, logger

TIRED = 40
"""So many decisions tried in a row that make no new candidate end the search."""
LEAST_GAIN = 1.1
"""A candidate is taken if it is predicted to be so many times as fast as the default schedule: the model errs, too."""
JUMP = 3
"""Decisions that change at once where no single one gains anything."""
STRUCTURE = (".form", ".place", ".loops", ".at")
"""What decides most comes first in a descent."""


def search(of: Scheduling, candidates: int, seed: int) -> ScheduleCandidate:
    """The best of so many candidates by the model, never worse than the default schedule. Equal seeds search alike."""
    made = Candidates(of)
    default = made.default()
    best = _descend(made, default, candidates, random.Random(seed))
    if best.cost.cycles * LEAST_GAIN > default.cost.cycles:
        best = default
    logger.info("%s: %s; by default %s", ", ".join(t.name for t in of.outputs), best.cost, default.cost)
    return best


def _descend(made: Candidates, default: ScheduleCandidate, count: int, rng: random.Random) -> ScheduleCandidate:
    best, at = default, made.sketched({})
    nests = {default.nest}
    tried = 1
    if at is not None:
        nests.add(at.nest)
        best = _better(best, at)
    queue = _steps(at, rng)
    misses = 0
    while at is not None and tried < count and misses < TIRED:
        wanted = next(queue, None)
        if wanted is None:
            wanted = _jump(at, rng)
        found = made.sketched(wanted)
        if found is None or found.nest in nests:
            misses += 1
            continue
        misses = 0
        tried += 1
        nests.add(found.nest)
        if found.cost.cycles < at.cost.cycles:
            at, queue = found, _steps(found, rng)
            best = _better(best, found)
    return best


def _better(a: ScheduleCandidate, b: ScheduleCandidate) -> ScheduleCandidate:
    return b if b.cost.cycles < a.cost.cycles else a


def _steps(at: ScheduleCandidate | None, rng: random.Random) -> Iterator[dict[str, DecisionValue]]:
    """All decisions that differ from a candidate's in one value beside it, what changes much first."""
    decisions = [] if at is None else [d for d in at.decisions if len(d.legal) > 1]
    rng.shuffle(decisions)
    decisions.sort(key=lambda d: not d.name.endswith(STRUCTURE))
    values = {decision.name: beside(decision) for decision in decisions}
    for number in range(max(map(len, values.values()), default=0)):
        for name, others in values.items():
            if at is not None and number < len(others):
                yield {**at.chosen, name: others[number]}


def _jump(at: ScheduleCandidate, rng: random.Random) -> dict[str, DecisionValue]:
    """Some decisions drawn anew."""
    open_ones = [d for d in at.decisions if len(d.legal) > 1]
    drawn = rng.sample(open_ones, min(JUMP, len(open_ones)))
    return {**at.chosen, **{d.name: rng.choice(d.legal) for d in drawn}}
