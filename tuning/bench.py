"""Where candidates are compiled and measured. Tuning goes by what a ``Bench`` says; ``JobBench`` asks workers.

Compiling and measuring alternate: nothing compiles here while something is measured.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Protocol, TypeVar

from ..base.dataclass import dataclass
from ..base.target import Target
from ..compiler.selection.records import TuningRecords
from ..compiler.selection.tuning_record import TuningRecord
from ..runtime.arrays import Array
from ..runtime.contenders.latency import median_interval
from ..runtime.library import Library
from .bounds import is_clear
from .candidate import TuningCandidate
from .jobs import COMPILE_SECONDS, MEASURE_SECONDS, TuningJob, compile_job, measure_job, model_job
from .outcome import LOST, Outcome, OutcomeKind
from .paired_rounds import RoundLimits
from .task import FusedUse, TuningTask
from .workers import LocalWorkers, SubmitsJobs, do_all

SUSPICIOUS = 1.3
"""So many times as fast as all before is measured once more before it is believed."""
CONFIRM_PROCESSES = 3
CONFIRM_LIMITS = RoundLimits(12, 12)
"""The winner is measured in so many new processes, in so many rounds each."""
MODEL_LIMITS, MODEL_PROCESSES, MODEL_LOOKS = RoundLimits(15, 45, 0.01), 4, 2
"""The model is measured in so many processes at the most, and looked at so often whether it is clear by then."""
BRIEF_LIMITS = RoundLimits(9, 15, 0.01)
"""The rounds of a brief look, in one process."""
DOUBT = 0.05
"""How likely it may be that what is called faster is not."""
_Item = TypeVar("_Item")


class Bench(Protocol):
    """Says what came of candidates."""

    def prepare(self, tasks: Sequence[TuningTask]) -> None:
        """Compile the untuned code of tasks ahead, all at once."""

    def untuned(self, task: TuningTask) -> Outcome:
        """The untuned code of a task: its ``seconds`` are those of one call of each fused function."""

    def try_all(
        self, task: TuningTask, candidates: Sequence[TuningCandidate], known: Mapping[str, Outcome]
    ) -> list[Outcome]:
        """Candidates in the first fused function of a task. ``known`` are outcomes by the digests of their nests."""

    def confirm(self, task: TuningTask, candidate: TuningCandidate) -> Outcome:
        """A candidate in all fused functions of a task, afresh, in new processes, which all have to find it faster."""

    def model(self, records: TuningRecords, beside: TuningRecords | None = None, is_brief: bool = False) -> Outcome:
        """The model by records beside the same by others, by default by none. A brief look is of one process."""


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """``compile_width`` and ``measure_width`` are how many jobs run at once, ``threads`` what a run uses. Candidates
    that take longer than the seconds have hung."""

    compile_width: int
    measure_width: int
    threads: int
    seed: int = 0
    compile_seconds: float = COMPILE_SECONDS
    measure_seconds: float = MEASURE_SECONDS


class JobBench:
    """Has workers compile and measure. Mutable: it keeps the untuned code of tasks, and the library that others are
    measured beside.

    ``library_of`` compiles the model by records, ``inputs`` are arrays for some of its inputs.
    """

    def __init__(
        self,
        workers: SubmitsJobs,
        settings: BenchSettings,
        library_of: Callable[[TuningRecords | None], Library],
        inputs: Mapping[str, Array],
    ) -> None:
        self._workers = workers
        self._settings = settings
        self._library_of = library_of
        self._inputs = inputs
        self._references: dict[tuple[str, int], Outcome] = {}
        self._beside: tuple[list[TuningRecord], Library] | None = None

    def prepare(self, tasks: Sequence[TuningTask]) -> None:
        """Compile the untuned code of tasks ahead, in one round of jobs for all of their functions."""
        uses = [(task, number, use) for task in tasks for number, use in enumerate(task.uses)]
        seconds = self._settings.compile_seconds
        jobs = [compile_job(use.function, task.settings, [None], seconds) for task, _, use in uses]
        found = self._outcomes(jobs, [1] * len(jobs))
        for (task, number, _), outcome in zip(uses, found, strict=True):
            self._references[task.key, number] = outcome

    def untuned(self, task: TuningTask) -> Outcome:
        """The outcome of the untuned code of a task, measured by itself; it is a failure where one of its functions
        cannot be compiled or measured."""
        references = [self._reference(task, number) for number in range(len(task.uses))]
        problem = next((reference for reference in references if not reference.code), None)
        if problem is not None:
            return problem
        (answer,) = do_all(self._workers, [self._measuring(task, list(range(len(task.uses))), [], RoundLimits())])
        seconds = None if answer is None else answer["ready"].get("seconds")
        if seconds is None:
            return self._failed_start(task)
        return Outcome(OutcomeKind.MEASURED, 1.0, 1.0, 1.0, tuple(seconds), nest=references[0].nest)

    def _failed_start(self, task: TuningTask) -> Outcome:
        """Why the untuned code of a task cannot be measured: asked once more, with itself as a candidate."""
        number = list(range(len(task.uses)))
        job = self._measuring(task, number, [[self._reference(task, k).code for k in number]], RoundLimits())
        (found,) = self._outcomes([job], [1])
        return Outcome(OutcomeKind.FAILED, detail="it cannot be measured") if found.is_timed else found

    def try_all(
        self, task: TuningTask, candidates: Sequence[TuningCandidate], known: Mapping[str, Outcome]
    ) -> list[Outcome]:
        """The outcomes of candidates in the first fused function of a task. Of those whose nests are the same only one
        is measured, and none whose nest is known."""
        reference = self._reference(task, 0)
        if not reference.code:
            return [reference] * len(candidates)
        compiled = self._compiled(task, candidates)
        seen = {**known, reference.nest: Outcome(OutcomeKind.SAME, 1.0, 1.0, 1.0)}
        new: dict[str, int] = {}
        for number, outcome in enumerate(compiled):
            if outcome.code and outcome.nest not in seen:
                new.setdefault(outcome.nest, number)
        best = max([1.0, *(outcome.ratio for outcome in known.values())])
        times = dict(zip(new, self._measured(task, [compiled[k].code for k in new.values()], best), strict=True))
        found = []
        for number, outcome in enumerate(compiled):
            nest = outcome.nest
            if not outcome.code:
                found.append(outcome)
            elif new.get(nest) == number:
                found.append(replace(times[nest], nest=nest))
            else:
                twin = times[nest] if nest in times else seen[nest]
                found.append(replace(twin, kind=OutcomeKind.SAME if twin.is_timed else twin.kind, nest=nest))
        return found

    def confirm(self, task: TuningTask, candidate: TuningCandidate) -> Outcome:
        """The outcome of a candidate in all fused functions of a task, measured in several new processes, one after the
        other; it is the first failure, if there is one."""
        codes = []
        for number in range(len(task.uses)):
            (made,) = self._compiled(task, [candidate], number)
            for outcome in (made, self._reference(task, number)):
                if not outcome.code:
                    return outcome
            codes.append(made.code)
        found: list[Outcome] = []
        for seed in range(CONFIRM_PROCESSES):  # one after the other: beside none that may disturb it
            job = self._measuring(task, list(range(len(codes))), [codes], CONFIRM_LIMITS, seed + 1)
            found += self._outcomes([job], [1])
            if not found[-1].is_timed:
                return found[-1]
        return pooled(found)

    def model(self, records: TuningRecords, beside: TuningRecords | None = None, is_brief: bool = False) -> Outcome:
        """The outcome of the model by records, beside the same model by others or without any, which is compiled once
        as long as it is the same that is asked for."""
        known = [] if beside is None else list(beside)
        if self._beside is None or self._beside[0] != known:
            self._beside = known, self._library_of(beside)
        untuned, tuned = self._beside[1], self._library_of(records)
        with tempfile.TemporaryDirectory(prefix="loopwright-tune-") as folder:
            paths = [Path(folder) / "untuned.lwlib", Path(folder) / "tuned.lwlib"]
            for library, path in zip((untuned, tuned), paths, strict=True):
                library.save(path)
            is_here = isinstance(self._workers, LocalWorkers)
            first, second = (str(path) if is_here else path.read_bytes() for path in paths)
            return self._model_rounds(tuned.model.target, (first, second), is_brief)

    def _model_rounds(self, target: Target, libraries: tuple[str | bytes, str | bytes], is_brief: bool) -> Outcome:
        """The outcome of the second of two libraries beside the first: the rounds of several processes, which load them
        in turns, since what is loaded first may lie better in memory."""
        settings, found = self._settings, list[Outcome]()
        processes, limits = (1, BRIEF_LIMITS) if is_brief else (MODEL_PROCESSES, MODEL_LIMITS)
        for process in range(processes):
            seconds, seed = 10 * settings.measure_seconds, settings.seed + process
            job = model_job(target, settings.threads, libraries, self._inputs, limits, seed, seconds)
            found += self._outcomes([job], [1])
            if found[-1].kind is not OutcomeKind.MEASURED:
                return found[-1]
            if (process + 1) % (MODEL_PROCESSES // MODEL_LOOKS) == 0 and is_clear(
                _together(found), DOUBT / MODEL_LOOKS
            ):
                break
        ratios = _together(found)
        low, high = median_interval(ratios)
        times = tuple(seconds for outcome in found for seconds in outcome.seconds)
        return replace(found[0], ratio=statistics.median(ratios), low=low, high=high, seconds=times, ratios=ratios)

    def _reference(self, task: TuningTask, number: int) -> Outcome:
        """The untuned code of a function of a task."""
        key = task.key, number
        if key not in self._references:
            (self._references[key],) = self._compiled(task, [None], number)
        return self._references[key]

    def _compiled(
        self, task: TuningTask, candidates: Sequence[TuningCandidate | None], number: int = 0
    ) -> list[Outcome]:
        parts = _parts(candidates, self._settings.compile_width)
        function, seconds = task.uses[number].function, self._settings.compile_seconds
        jobs = [compile_job(function, task.settings, part, seconds) for part in parts]
        return self._outcomes(jobs, [len(part) for part in parts])

    def _measured(self, task: TuningTask, codes: Sequence[bytes], best: float) -> list[Outcome]:
        """Candidates measured; those that are suspiciously fast once more, of which the slower time counts."""
        found = self._measured_once(task, codes)
        doubted = [number for number, outcome in enumerate(found) if outcome.ratio > SUSPICIOUS * best]
        again = self._measured_once(task, [codes[number] for number in doubted])
        for number, outcome in zip(doubted, again, strict=True):
            found[number] = min(found[number], outcome, key=lambda each: each.ratio)
        return found

    def _measured_once(self, task: TuningTask, codes: Sequence[bytes]) -> list[Outcome]:
        parts = _parts(codes, self._settings.measure_width)
        jobs = [self._measuring(task, [0], [[code] for code in part], RoundLimits()) for part in parts]
        return self._outcomes(jobs, [len(part) for part in parts])

    def _measuring(
        self,
        task: TuningTask,
        numbers: Sequence[int],
        codes: Sequence[Sequence[bytes]],
        limits: RoundLimits,
        seed: int = 0,
    ) -> TuningJob:
        settings = self._settings
        uses: list[FusedUse] = [task.uses[number] for number in numbers]
        calls = [use.calls if len(uses) > 1 else 1 for use in uses]
        references = [
            (self._reference(task, number).code, use.inputs, count)
            for number, use, count in zip(numbers, uses, calls, strict=True)
        ]
        return measure_job(
            task.settings.target,
            settings.threads,
            references,
            codes,
            limits,
            settings.seed + seed,
            task.settings.options.is_direct,
            settings.measure_seconds,
        )

    def _outcomes(self, jobs: Sequence[TuningJob], counts: Sequence[int]) -> list[Outcome]:
        """The outcomes of the items of jobs, in order."""
        found = []
        for answer, count in zip(do_all(self._workers, jobs), counts, strict=True):
            found += [LOST] * count if answer is None else [Outcome.of(each) for each in answer["answers"]]
        return found


def pooled(found: Sequence[Outcome]) -> Outcome:
    """The outcomes of several processes as one: all of their rounds. One that found no gain counts for all."""
    ratios = _together(found)
    low, high = median_interval(ratios)
    worst = min(found, key=lambda outcome: outcome.ratio)
    ratio = statistics.median(outcome.ratio for outcome in found)
    seconds = tuple(each for outcome in found for each in outcome.seconds)
    if worst.ratio < 1:
        ratio, ratios = worst.ratio, worst.ratios
    return replace(worst, ratio=ratio, low=low, high=high, seconds=seconds, ratios=ratios)


def _together(found: Sequence[Outcome]) -> tuple[float, ...]:
    return tuple(ratio for outcome in found for ratio in outcome.ratios)


def _parts(items: Sequence[_Item], count: int) -> list[Sequence[_Item]]:
    """The items in order, in at most so many parts, which differ in length by one at most."""
    count = min(count, len(items))
    ends = [len(items) * k // count for k in range(count + 1)] if count else [0]
    return [items[begin:end] for begin, end in pairwise(ends)]
