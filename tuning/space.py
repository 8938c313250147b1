"""The candidates of a task: the implementations of its call, and all that their schedules decide."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Protocol

from ..base.dataclass import dataclass
from ..base.errors import LoopwrightError
from ..compiler.selection.select import get_valid_implementations
from ..compiler.settings import CompileSettings
from ..graph.node import Call
from ..lowering.decisions import Decision, DecisionValue, beside
from .candidate import TuningCandidate

REDRAWS = 8
"""How often a drawn candidate has decisions drawn again, whose legal values go by earlier ones."""


@dataclass(frozen=True, slots=True)
class Settled:
    """A candidate that is legal, and its decisions with the values that each may take beside the others."""

    candidate: TuningCandidate
    decisions: tuple[Decision, ...]


class Space(Protocol):
    """What a ``Searcher`` searches."""

    @property
    def implementations(self) -> Sequence[str]:
        """The names of the implementations, the untuned choice first."""

    @property
    def starts(self) -> Sequence[TuningCandidate]:
        """Candidates to begin with: what records of other targets and shapes say, the closest first."""

    def settle(self, implementation: str, wanted: Mapping[str, DecisionValue]) -> Settled | None:
        """The candidate with these values, of each the nearest that is legal, and the defaults of other decisions. None
        where the schedule is illegal with them."""


class CallSpace:
    """The space of a call. Mutable: it remembers what it has settled."""

    def __init__(self, call: Call, settings: CompileSettings, first: str, starts: Sequence[TuningCandidate]) -> None:
        valid = [c.implementation for c in get_valid_implementations(call, settings)]
        self._offered = {i.name: i for i in sorted(valid, key=lambda i: (i.name != first, *i.rank))}
        self._call = call
        self._settings = settings
        self._known: dict[tuple[str, str | None], Settled | None] = {}
        self.starts = tuple(start for start in starts if start.implementation in self._offered)

    @property
    def implementations(self) -> Sequence[str]:
        """The names of the valid ones, the untuned choice first, then by priority."""
        return tuple(self._offered)

    def settle(self, implementation: str, wanted: Mapping[str, DecisionValue]) -> Settled | None:
        """Make the schedule with decisions that are wanted, as ``Space`` says. That takes milliseconds; nothing is
        compiled."""
        key = TuningCandidate(implementation, tuple(sorted(wanted.items()))).key
        if key not in self._known:
            self._known[key] = self._settled(implementation, wanted)
        return self._known[key]

    def _settled(self, implementation: str, wanted: Mapping[str, DecisionValue]) -> Settled | None:
        own = self.settle(implementation, {}) if wanted else None
        known = set() if own is None else {decision.name for decision in own.decisions}
        given = {name: value for name, value in wanted.items() if name in known}
        try:
            decisions = self._offered[implementation].decisions(self._call, self._settings.target, given)
        except LoopwrightError:  # illegal here: that is no candidate
            return None
        if self._settings.options.is_strict:
            fixed = {d.name: d.default for d in decisions if d.reorders_sum and d.value != d.default}
            if fixed:
                return self._settled(implementation, {**given, **fixed})
        values = tuple((decision.name, decision.value) for decision in decisions)
        return Settled(TuningCandidate(implementation, values), decisions)


def drawn(space: Space, implementation: str, rng: random.Random) -> Settled | None:
    """A random candidate of an implementation: each decision has one of the values that the earlier ones leave it."""
    settled = space.settle(implementation, {})
    wanted: dict[str, DecisionValue] = {}
    drawn_of: dict[str, tuple[DecisionValue, ...]] = {}
    for _ in range(REDRAWS):
        if settled is None:
            return None
        for decision in settled.decisions:
            if drawn_of.get(decision.name) != decision.legal:
                drawn_of[decision.name] = decision.legal
                wanted[decision.name] = rng.choice(decision.legal)
        settled = space.settle(implementation, wanted)
        if settled is not None and all(drawn_of.get(d.name) == d.legal for d in settled.decisions):
            break
    return settled


def neighbours(space: Space, of: Settled) -> list[TuningCandidate]:
    """All candidates one step away: a decision takes the next number on either side, or another alternative; or another
    implementation takes what it can of the decisions."""
    candidate = of.candidate
    found: dict[tuple[str, str | None], TuningCandidate] = {}
    for decision in of.decisions:
        for value in beside(decision):
            settled = space.settle(candidate.implementation, {**candidate.decided, decision.name: value})
            if settled is not None:
                found.setdefault(settled.candidate.key, settled.candidate)
    for name in space.implementations:
        settled = space.settle(name, candidate.decided) if name != candidate.implementation else None
        if settled is not None:
            found.setdefault(settled.candidate.key, settled.candidate)
    found.pop(candidate.key, None)
    return list(found.values())
