"""The untuned code of tasks: what candidates are compared with, and what the model spends in it.

Jobs are of many functions, since a process takes longer to start than most functions take to be compiled and measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

from .bench_settings import BenchSettings
from .jobs import Reference, time_job, untuned_job
from .outcome import Outcome
from .sandbox import START_SECONDS
from .task import TuningTask
from .workers import SubmitsJobs, outcomes_of

_Item = TypeVar("_Item")


class UntunedCode:
    """Has workers compile untuned code, and measure it by itself. Mutable: it keeps the code."""

    def __init__(self, workers: SubmitsJobs, settings: BenchSettings) -> None:
        self._workers, self._settings = workers, settings
        self._code: dict[tuple[str, int], Outcome] = {}

    def of(self, task: TuningTask, number: int) -> Outcome:
        """The code of a function of a task, or why there is none."""
        if (task.key, number) not in self._code:
            self.compile([task])
        return self._code[task.key, number]

    def all_of(self, task: TuningTask) -> list[Outcome]:
        """The code of all functions of a task."""
        return [self.of(task, number) for number in range(len(task.uses))]

    def compile(self, tasks: Sequence[TuningTask]) -> None:
        """Compile what is not yet compiled of these tasks."""
        asked = [(task, number) for task in tasks for number in range(len(task.uses))]
        parts = parts_of([(t, n) for t, n in asked if (t.key, n) not in self._code], self._settings.compile_width)
        jobs = [
            untuned_job([t.uses[n].function for t, n in part], part[0][0].settings, self._settings.compile_seconds)
            for part in parts
        ]
        found = iter(outcomes_of(self._workers, jobs))
        self._code.update({(task.key, number): next(found) for part in parts for task, number in part})

    def times(self, tasks: Sequence[TuningTask]) -> list[Outcome]:
        """The outcomes of tasks: their ``seconds`` are those of a call of each function. A task's is a failure where
        one of its functions cannot be compiled or measured."""
        self.compile(tasks)
        found = {task.key: next((code for code in self.all_of(task) if not code.code), None) for task in tasks}
        parts = parts_of([task for task in tasks if found[task.key] is None], self._settings.measure_width)
        settings = self._settings
        jobs = [
            time_job(
                part[0].settings.target,
                settings.threads,
                [self.references(task) for task in part],
                settings.seed,
                START_SECONDS,
            )
            for part in parts
        ]
        times = iter(outcomes_of(self._workers, jobs))
        for task in (task for part in parts for task in part):
            found[task.key] = replace(next(times), nest=self.of(task, 0).nest)
        return [outcome for task in tasks if (outcome := found[task.key]) is not None]

    def references(self, task: TuningTask) -> list[Reference]:
        """The code of each function of a task, the number of its inputs, and how often the model calls it."""
        codes = self.all_of(task)
        return [(made.code, use.inputs, use.calls) for made, use in zip(codes, task.uses, strict=True)]


def parts_of(items: Sequence[_Item], count: int) -> list[Sequence[_Item]]:
    """The items in order, in at most so many parts, which differ in length by one at most."""
    count = min(count, len(items))
    ends = [len(items) * k // count for k in range(count + 1)] if count else [0]
    return [items[begin:end] for begin, end in pairwise(ends)]
