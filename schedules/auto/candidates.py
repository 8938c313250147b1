"""Candidates: schedules by rules or by default, each with what the model predicts for its lowered loop nest."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...base.brief import BriefRepr
from ...base.errors import InternalError, LoopwrightError, ScheduleError
from ...base.target import Target
from ...ir.structural import structural_hash
from ...lowering.decisions import Decision, DecisionValue
from ...lowering.pipeline import realized_function, run_passes
from ...lowering.schedule import Schedule
from ...lowering.state import ScheduleState
from ...te.tensor import Tensor
from ..default_schedule import default_schedule
from .cost.predict import PredictedCost, predict
from .sketch import ScheduleRule, make_sketch

logger = logging.getLogger("loopwright.autoschedule")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ScheduleCandidate(BriefRepr):
    """A schedule, and what it is predicted to cost. ``nest`` is a digest of its loop nest, by which candidates that are
    the same are told."""

    schedule: Schedule
    cost: PredictedCost
    nest: str

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What was decided."""
        return self.schedule.decisions

    @property
    def chosen(self) -> dict[str, DecisionValue]:
        """The values, by name, that are not the defaults: what is decided otherwise may change these."""
        return {decision.name: decision.value for decision in self.decisions if decision.value != decision.default}


@dataclass(frozen=True, slots=True, eq=False)
class Scheduling:
    """What is to be scheduled, for what, and by which rules."""

    outputs: Sequence[Tensor]
    target: Target
    rules: Sequence[ScheduleRule]
    reassociate: bool = True


class Candidates:
    """The candidates made so far. Mutable: it remembers their loop nests, of which each is lowered once."""

    def __init__(self, of: Scheduling) -> None:
        self._of = of
        self._costs: dict[str, PredictedCost] = {}

    def default(self) -> ScheduleCandidate:
        """The candidate of ``default_schedule``. Raises ``ScheduleError`` for what cannot be scheduled at all."""
        return self._costed(default_schedule(self._of.outputs, self._of.target, self._of.reassociate))

    def sketched(self, decided: Mapping[str, DecisionValue]) -> ScheduleCandidate | None:
        """The candidate that the rules make with these decisions; None where a step is refused."""
        of = self._of
        return self._unless_refused(lambda: make_sketch(of.outputs, of.target, of.rules, of.reassociate, decided))

    def _unless_refused(self, make: Callable[[], Schedule]) -> ScheduleCandidate | None:
        try:
            schedule = make()
        except ScheduleError as error:
            logger.debug("a candidate is refused: %s", str(error).splitlines()[0])
            return None
        try:
            return self._costed(schedule)
        except InternalError as error:  # a mistake of ours: others are there to be taken
            logger.warning("a candidate is dropped: %s", str(error).splitlines()[0])
        except LoopwrightError as error:
            logger.debug("a candidate cannot be lowered: %s", str(error).splitlines()[0])
        return None

    def _costed(self, schedule: Schedule) -> ScheduleCandidate:
        func = realized_function(schedule, arguments_of(schedule.state))
        nest = structural_hash(func)
        if nest not in self._costs:
            self._costs[nest] = predict(run_passes(func, self._of.target), self._of.target)
        return ScheduleCandidate(schedule, self._costs[nest], nest)


def arguments_of(state: ScheduleState) -> list[Tensor]:
    """The tensors of the caller: inputs and outputs."""
    return [t for s in state.stages if s.is_input or s.name in state.outputs for t in s.tensors]
