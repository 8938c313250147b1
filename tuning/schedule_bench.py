"""Where schedules of tensor expressions are compiled and measured, beside a first one."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.target import Target
from ..lowering.schedule import Schedule
from .bench import CONFIRM_LIMITS, CONFIRM_PROCESSES, pooled
from .jobs import COMPILE_SECONDS, measure_job, traces_job
from .outcome import Outcome, OutcomeKind
from .paired_rounds import RoundLimits
from .workers import SubmitsJobs, outcomes_of


class ScheduleBench:
    """Has workers compile and measure schedules. Mutable: it keeps the code of the first one."""

    def __init__(
        self, workers: SubmitsJobs, first: Schedule, target: Target, threads: int, seed: int, timeout: float
    ) -> None:
        self._workers, self._target, self._threads = workers, target, threads
        self._seed, self._timeout = seed, timeout
        state = first.state
        self._inputs = [t for s in state.stages if s.is_input for t in s.tensors]
        self._outputs = [t for name in state.outputs for t in state.stage(name).tensors]
        self._of_first = first
        self._compiled_first: Outcome | None = None

    def try_all(self, schedules: Sequence[Schedule]) -> list[Outcome]:
        """How many times as fast as the first schedule each is; those of the same nest as the first are as fast."""
        first = self._first
        if not first.code:
            return [first] * len(schedules)
        compiled = self._compiled(schedules)
        new = [k for k, outcome in enumerate(compiled) if outcome.code and outcome.nest != first.nest]
        times = dict(zip(new, self._measured([compiled[k].code for k in new], RoundLimits(), 0), strict=True))
        same = Outcome(OutcomeKind.SAME, 1.0, 1.0, 1.0)
        return [times.get(k, same if outcome.code else outcome) for k, outcome in enumerate(compiled)]

    def confirm(self, schedule: Schedule) -> Outcome:
        """The outcome of a schedule afresh, in new processes, one after the other; it is the first failure, if there is
        one."""
        (made,) = self._compiled([schedule])
        if not made.code:
            return made
        found: list[Outcome] = []
        for process in range(CONFIRM_PROCESSES):
            found += self._measured([made.code], CONFIRM_LIMITS, process + 1)
            if not found[-1].is_timed:
                return found[-1]
        return pooled(found)

    @property
    def _first(self) -> Outcome:
        """The code of the first schedule, compiled when it is asked for."""
        if self._compiled_first is None:
            (self._compiled_first,) = self._compiled([self._of_first])
        return self._compiled_first

    def _compiled(self, schedules: Sequence[Schedule]) -> list[Outcome]:
        traces = [schedule.trace.to_json() for schedule in schedules]
        job = traces_job(self._inputs, self._outputs, self._target, traces, COMPILE_SECONDS)
        return outcomes_of(self._workers, [job])

    def _measured(self, codes: Sequence[bytes], limits: RoundLimits, seed: int) -> list[Outcome]:
        references = [(self._first.code, len(self._inputs), 1)]
        items = [[code] for code in codes]
        seed += self._seed
        job = measure_job(self._target, self._threads, references, items, limits, seed, False, self._timeout)
        return outcomes_of(self._workers, [job]) if items else []
