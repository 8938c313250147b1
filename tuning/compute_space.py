"""The space of tensor expressions that nobody scheduled: what rules decide, for the searchers of tuning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..base.errors import ScheduleError
from ..lowering.decisions import DecisionValue
from ..lowering.schedule import Schedule
from ..schedules.auto.candidates import NestCosts, ScheduleCandidate, Scheduling
from ..schedules.auto.sketch import make_sketch
from ..schedules.default_schedule import default_schedule
from .candidate import TuningCandidate
from .space import Settled

BY_RULES, DEFAULT = "rules", "default"
"""The two ways there are, in place of implementations."""


class ComputeSpace:
    """A ``Space`` of schedules. Mutable: it remembers those that it has made."""

    implementations: Sequence[str] = (BY_RULES, DEFAULT)

    def __init__(self, of: Scheduling, starts: Sequence[TuningCandidate] = ()) -> None:
        self._of = of
        self.starts = starts
        self._known: dict[tuple[str, str | None], tuple[Settled, Schedule] | None] = {}
        self._costs = NestCosts(of.target)

    def settle(self, implementation: str, wanted: Mapping[str, DecisionValue]) -> Settled | None:
        """Make the schedule with decisions that are wanted, as ``Space`` says. That takes some hundredths of a second;
        nothing is lowered."""
        found = self._found(TuningCandidate(implementation, tuple(sorted(wanted.items()))))
        return None if found is None else found[0]

    def schedule(self, candidate: TuningCandidate) -> Schedule:
        """The schedule of a candidate. Raises ``ScheduleError`` where a step of it is refused."""
        found = self._found(candidate)
        if found is None:
            raise ScheduleError(f"no schedule has the decisions {candidate}")
        return found[1]

    def predicted(self, candidate: TuningCandidate) -> ScheduleCandidate | None:
        """A candidate lowered, with what a model predicts of it, as ``PredictsCost`` says."""
        found = self._found(candidate)
        return None if found is None else self._costs.of_any(found[1])

    def cycles(self, schedule: Schedule) -> float:
        """The cycles that a model predicts of a schedule; 0 where it cannot be lowered."""
        made = self._costs.of_any(schedule)
        return 0.0 if made is None else made.cost.cycles

    def _found(self, candidate: TuningCandidate) -> tuple[Settled, Schedule] | None:
        if candidate.key not in self._known:
            self._known[candidate.key] = self._made(candidate)
        return self._known[candidate.key]

    def _made(self, candidate: TuningCandidate) -> tuple[Settled, Schedule] | None:
        of = self._of
        try:
            if candidate.implementation == DEFAULT:
                schedule = default_schedule(of.outputs, of.target, of.reassociate)
            else:
                schedule = make_sketch(of.outputs, of.target, of.rules, of.reassociate, candidate.decided)
        except ScheduleError:  # refused: that is no candidate
            return None
        decisions = schedule.decisions
        values = tuple((decision.name, decision.value) for decision in decisions)
        return Settled(TuningCandidate(candidate.implementation, values), decisions), schedule
