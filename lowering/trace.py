"""Traces: the steps that made a schedule. A trace is stored, sent and compared as data, replayed on other schedules,
and prints as the Python that makes the schedule again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Self, overload

from ..base.brief import listed
from ..base.dataclass import dataclass
from ..base.errors import ScheduleError, TraceError
from ..base.quantities import count_text
from .state import ScheduleState
from .step import Step
from .trace_json import read_steps, steps_text
from .trace_python import python_lines


@dataclass(frozen=True, slots=True, repr=False)
class Trace(Sequence[Step]):
    """A sequence of steps. ``start`` is the state that the first one was applied to, None where it is not known."""

    steps: tuple[Step, ...] = ()
    start: ScheduleState | None = field(default=None, compare=False)

    def __len__(self) -> int:
        return len(self.steps)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Step, ...]: ...
    def __getitem__(self, index: int | slice) -> Step | tuple[Step, ...]:
        return self.steps[index]

    def __str__(self) -> str:
        return self.python()

    def __repr__(self) -> str:
        steps = f": {listed(step.primitive for step in self.steps)}" if self.steps else ""
        return f"<Trace of {count_text(len(self.steps), 'step')}{steps}>"

    def then(self, *steps: Step) -> Trace:
        """The trace with further steps."""
        return Trace((*self.steps, *steps), self.start)

    def before(self, count: object) -> ScheduleState:
        """The state before the last ``count`` steps. Raises ``ScheduleError`` where the start is not known."""
        if not isinstance(count, int) or not 0 <= count <= len(self.steps):
            raise ScheduleError(f"a trace of {len(self.steps)} steps has so many at most to go back, found {count!r}")
        if self.start is None:
            raise ScheduleError("this trace does not know the state that it started from: replay it on a schedule")
        return Trace(self.steps[: len(self.steps) - count]).replay(self.start)

    def python(self) -> str:
        """Python that makes the same schedule of ``s``, a fresh one: ``s = lw.create_schedule(...)``.

        Loops have the names that the printed nest gives them; of a trace read from JSON, where they are not known, they
        stand by their ids.
        """
        return "\n".join(map(str, self.steps) if self.start is None else python_lines(self.steps, self.start))

    def to_json(self) -> str:
        """JSON text, one step a line: ``{"version": 2, "steps": [{"primitive": "split", "stage": "C", …}, …]}``."""
        return steps_text(self.steps)

    @classmethod
    def from_json(cls, source: str | bytes | Mapping[str, object]) -> Self:
        """The trace that ``to_json`` wrote, from its text or the parsed object.

        Raises ``TraceError`` for anything else; whether the steps are legal somewhere shows when they are replayed.
        """
        return cls(read_steps(source))

    def replay(self, state: ScheduleState) -> ScheduleState:
        """The state after all the steps.

        Raises ``TraceError`` with the number and the text of the first step that is not legal there, and why.
        """
        if not isinstance(state, ScheduleState):
            raise TraceError(f"a trace is replayed on the state of a schedule, as in s.replay(trace), not on {state!r}")
        for number, step in enumerate(self.steps, start=1):
            try:
                state = step.next_state(state)
            except ScheduleError as error:
                where = f"step {number} of {len(self.steps)}, {step}"
                raise TraceError(f"{where}, is not legal for this schedule: {error}", number) from error
        return state
