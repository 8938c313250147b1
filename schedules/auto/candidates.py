"""Candidates: schedules by rules or by default, each with what the model predicts for its lowered loop nest."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from ...base.brief import BriefRepr
from ...base.dataclass import dataclass
from ...base.errors import InternalError, LoopwrightError, ScheduleError
from ...base.target import Target
from ...ir.stmt import PrimFunc
from ...ir.structural import structural_hash
from ...lowering.decisions import Decision, DecisionValue
from ...lowering.pipeline import realized_function, run_passes
from ...lowering.schedule import Schedule
from ...lowering.state import ScheduleState
from ...te.tensor import Tensor
from ..default_schedule import default_schedule
from .cost.predict import PredictedCost, analyse, predict
from .learned.features import Features, features_of
from .sketch import ScheduleRule, make_sketch

logger = logging.getLogger("loopwright.autoschedule")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ScheduleCandidate(BriefRepr):
    """A schedule, and what an analytic model predicts that it costs. ``nest`` is a digest of its loop nest, by which
    candidates that are the same are told; by ``features`` trees may correct the prediction."""

    schedule: Schedule
    cost: PredictedCost
    features: Features
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


class NestCosts:
    """What schedules for a target are predicted to cost. Mutable: it remembers their loop nests, of which each is
    lowered once."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._known: dict[str, tuple[PredictedCost, Features]] = {}

    def of(self, schedule: Schedule) -> ScheduleCandidate:
        """A schedule as a candidate. Raises ``LoopwrightError`` where it cannot be lowered."""
        func = realized_function(schedule, arguments_of(schedule.state))
        nest = structural_hash(func)
        if nest not in self._known:
            self._known[nest] = self._predicted(run_passes(func, self._target), schedule)
        return ScheduleCandidate(schedule, *self._known[nest], nest)

    def of_any(self, schedule: Schedule) -> ScheduleCandidate | None:
        """A schedule as a candidate; None where it cannot be lowered."""
        try:
            return self.of(schedule)
        except InternalError as error:  # a mistake of ours: others are there to be taken
            logger.warning("a candidate is dropped: %s", str(error).splitlines()[0])
        except LoopwrightError as error:
            logger.debug("a candidate cannot be lowered: %s", str(error).splitlines()[0])
        return None

    def _predicted(self, func: PrimFunc, schedule: Schedule) -> tuple[PredictedCost, Features]:
        """The prediction, and the features of what one thread does."""
        alone = analyse(func, self._target.with_threads(1))
        cost = alone.cost if self._target.threads == 1 else predict(func, self._target)
        return cost, features_of(alone, schedule.trace)


class Candidates:
    """The candidates made so far. Mutable: it remembers what they cost."""

    def __init__(self, of: Scheduling) -> None:
        self._of = of
        self._costs = NestCosts(of.target)

    def default(self) -> ScheduleCandidate:
        """The candidate of ``default_schedule``. Raises ``ScheduleError`` for what cannot be scheduled at all."""
        return self._costs.of(default_schedule(self._of.outputs, self._of.target, self._of.reassociate))

    def sketched(self, decided: Mapping[str, DecisionValue]) -> ScheduleCandidate | None:
        """The candidate that the rules make with these decisions; None where a step is refused."""
        of = self._of
        try:
            schedule = make_sketch(of.outputs, of.target, of.rules, of.reassociate, decided)
        except ScheduleError as error:
            logger.debug("a candidate is refused: %s", str(error).splitlines()[0])
            return None
        return self._costs.of_any(schedule)


def arguments_of(state: ScheduleState) -> list[Tensor]:
    """The tensors of the caller: inputs and outputs."""
    return [t for s in state.stages if s.is_input or s.name in state.outputs for t in s.tensors]
