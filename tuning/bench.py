"""Where candidates are compiled and measured. Tuning goes by what a ``Bench`` says; ``JobBench`` asks workers.

Compiling and measuring alternate: nothing compiles here while something is measured.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from ..base.target import Target
from ..compiler.selection.records import TuningRecords
from ..compiler.selection.tuning_record import TuningRecord
from ..runtime.arrays import Array
from ..runtime.contenders.latency import median_interval
from ..runtime.library import Library
from .bench_settings import BenchSettings
from .bounds import is_clear
from .candidate import TuningCandidate
from .jobs import Reference, TuningJob, compile_job, measure_job, model_job
from .outcome import Outcome, OutcomeKind
from .paired_rounds import RoundLimits
from .task import TuningTask
from .untuned_code import UntunedCode, parts_of
from .workers import LocalWorkers, SubmitsJobs, outcomes_of

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


class Bench(Protocol):
    """Says what came of candidates."""

    def prepare(self, records: TuningRecords) -> None:
        """Compile the model by records, which others are measured beside, so that its functions are in the cache."""

    def untuned(self, tasks: Sequence[TuningTask]) -> list[Outcome]:
        """The untuned code of tasks: an outcome's ``seconds`` are those of one call of each fused function."""

    def try_all(
        self, task: TuningTask, candidates: Sequence[TuningCandidate], known: Mapping[str, Outcome]
    ) -> list[Outcome]:
        """Candidates in the first fused function of a task. ``known`` are outcomes by the digests of their nests."""

    def confirm(self, task: TuningTask, candidate: TuningCandidate) -> Outcome:
        """A candidate in all fused functions of a task, afresh, in new processes, which all have to find it faster."""

    def model(self, records: TuningRecords, beside: TuningRecords | None = None, is_brief: bool = False) -> Outcome:
        """The model by records beside the same by others, by default by none. A brief look is of one process."""


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
        self._untuned = UntunedCode(workers, settings)
        self._beside: tuple[list[TuningRecord], Library] | None = None

    def prepare(self, records: TuningRecords) -> None:
        """Compile the model by records ahead."""
        self._library_beside(records)

    def _library_beside(self, records: TuningRecords | None) -> Library:
        known = [] if records is None else list(records)
        if self._beside is None or self._beside[0] != known:
            self._beside = known, self._library_of(records)
        return self._beside[1]

    def untuned(self, tasks: Sequence[TuningTask]) -> list[Outcome]:
        """The outcomes of the untuned code of tasks, measured by itself; a task's is a failure where one of its
        functions cannot be compiled or measured."""
        return self._untuned.times(tasks)

    def try_all(
        self, task: TuningTask, candidates: Sequence[TuningCandidate], known: Mapping[str, Outcome]
    ) -> list[Outcome]:
        """The outcomes of candidates in the first fused function of a task. Of those whose nests are the same only one
        is measured, and none whose nest is known."""
        reference = self._untuned.of(task, 0)
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
        made = [self._compiled(task, [candidate], number)[0] for number in range(len(task.uses))]
        problem = next((outcome for outcome in (*made, *self._untuned.all_of(task)) if not outcome.code), None)
        if problem is not None:
            return problem
        references, codes = self._untuned.references(task), [outcome.code for outcome in made]
        found: list[Outcome] = []
        for seed in range(CONFIRM_PROCESSES):  # one after the other: beside none that may disturb it
            found += outcomes_of(self._workers, [self._measuring(task, references, [codes], CONFIRM_LIMITS, seed + 1)])
            if not found[-1].is_timed:
                return found[-1]
        return pooled(found)

    def model(self, records: TuningRecords, beside: TuningRecords | None = None, is_brief: bool = False) -> Outcome:
        """The outcome of the model by records, beside the same model by others or without any, which is compiled once
        as long as it is the same that is asked for."""
        untuned, tuned = self._library_beside(beside), self._library_of(records)
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
            found += outcomes_of(self._workers, [job])
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

    def _compiled(self, task: TuningTask, candidates: Sequence[TuningCandidate], number: int = 0) -> list[Outcome]:
        parts = parts_of(candidates, self._settings.compile_width)
        function, seconds = task.uses[number].function, self._settings.compile_seconds
        jobs = [compile_job(function, task.settings, part, seconds) for part in parts]
        return outcomes_of(self._workers, jobs)

    def _measured(self, task: TuningTask, codes: Sequence[bytes], best: float) -> list[Outcome]:
        """Candidates measured; those that are suspiciously fast once more, of which the slower time counts."""
        found = self._measured_once(task, codes)
        doubted = [number for number, outcome in enumerate(found) if outcome.ratio > SUSPICIOUS * best]
        again = self._measured_once(task, [codes[number] for number in doubted])
        for number, outcome in zip(doubted, again, strict=True):
            found[number] = min(found[number], outcome, key=lambda each: each.ratio)
        return found

    def _measured_once(self, task: TuningTask, codes: Sequence[bytes]) -> list[Outcome]:
        references = [(self._untuned.of(task, 0).code, task.uses[0].inputs, 1)]
        parts = parts_of(codes, self._settings.measure_width)
        jobs = [self._measuring(task, references, [[code] for code in part], RoundLimits()) for part in parts]
        return outcomes_of(self._workers, jobs)

    def _measuring(
        self,
        task: TuningTask,
        references: Sequence[Reference],
        codes: Sequence[Sequence[bytes]],
        limits: RoundLimits,
        seed: int = 0,
    ) -> TuningJob:
        settings = self._settings
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
