"""What a search of schedules tried: each with what was predicted of it, and what was measured."""

from __future__ import annotations

from ..base.brief import BriefRepr
from ..base.dataclass import dataclass
from ..lowering.schedule import Schedule
from .outcome import Outcome


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TriedSchedule(BriefRepr):
    """A schedule that was tried. ``predicted`` is the cycles by the analytic model, 0 where it cannot be lowered;
    ``gain`` is how many times as fast as the model's choice it was measured to be, 0 where it has no time;
    ``outcome`` says what became of it."""

    schedule: Schedule
    predicted: float
    gain: float
    outcome: str

    @classmethod
    def of(cls, schedule: Schedule, predicted: float, found: Outcome) -> TriedSchedule:
        """A schedule with an outcome, which is told with its detail."""
        told = f"{found.kind.value}: {found.detail}" if found.detail else found.kind.value
        return cls(schedule, predicted, found.ratio, told)
