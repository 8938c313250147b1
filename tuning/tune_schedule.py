"""``lw.tune_schedule``: have the schedules of a tensor expression measured, beside the one that a model chooses."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass

from ..api.autoschedule import CANDIDATES, autoschedule, checked_rules
from ..base.brief import BriefRepr
from ..base.choices import check_count
from ..base.errors import RuntimeArgumentError
from ..base.quantities import count_text
from ..base.target import Target
from ..codegen.host import resolve_target
from ..ir.constants import const_int
from ..lowering.schedule import Schedule
from ..schedules.auto.candidates import Scheduling, arguments_of
from ..schedules.auto.sketch import ScheduleRule
from ..te.tensor import Tensor
from .bench import CONFIRM_LIMITS, CONFIRM_PROCESSES, DOUBT
from .bounds import lower_bound
from .candidate import TuningCandidate
from .compute_space import BY_RULES, ComputeSpace
from .jobs import COMPILE_SECONDS, MEASURE_SECONDS, TuningJob, measure_job, traces_job
from .outcome import Outcome, OutcomeKind
from .paired_rounds import RoundLimits
from .run_width import RunWidth, check_numbers
from .searcher import MakeSearcher, TrialResult, searcher_named
from .tried_schedule import TriedSchedule
from .workers import LocalWorkers, SubmitsJobs, do_all

BATCH = 8


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ScheduleTuning(BriefRepr):
    """What came of a run: the ``schedule`` that is believed to be the fastest, how many times as fast as the model's
    choice it is, at the least, 1.0 for that choice itself; and the outcome of each candidate that was tried.
    ``candidates`` are these with their schedules, behind the model's choice: ``lw.explore_search`` shows them."""

    schedule: Schedule
    gain: float
    tried: Mapping[TuningCandidate, Outcome]
    candidates: Sequence[TriedSchedule]

    def __str__(self) -> str:
        kinds = [outcome.kind.value for outcome in self.tried.values()]
        told = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        return f"{self.gain:.2f} times as fast as by the model, of {count_text(len(kinds), 'candidate')}: {told}"


def tune_schedule(
    outputs: Tensor | Sequence[Tensor],
    target: str | Target | None = "native",
    *,
    measurements: int = 64,
    minutes: float = 10.0,
    candidates: int = CANDIDATES,
    rules: Sequence[ScheduleRule] | None = None,
    searcher: str | MakeSearcher = "evolution",
    threads: int | None = None,
    workers: SubmitsJobs | None = None,
    seed: int = 0,
    timeout: float = MEASURE_SECONDS,
    reassociate: bool = True,
) -> ScheduleTuning:
    """Search a schedule of tensor expressions by measuring: what ``autoschedule`` chooses first, then what a searcher
    proposes of the decisions of the same rules, ``measurements`` of them or as many as ``minutes`` allow.

    Candidates are compiled and run in processes of their own, beside the model's choice, whose results theirs have to
    be; ``workers``, ``threads``, ``searcher``, ``seed`` and ``timeout`` are those of ``lw.tune``. The fastest is
    measured afresh, and given if it is faster for sure in each of three new processes; else the model's choice is.
    Raises what ``autoschedule`` raises, and ``RuntimeArgumentError`` for open extents and other arguments that do not
    fit.
    """
    tensors = (outputs,) if isinstance(outputs, Tensor) else outputs
    resolved = resolve_target(target)
    check_numbers(minutes, seed, timeout)
    check_count(measurements, "measurements", 1)
    make = searcher_named(searcher)
    first = autoschedule(tensors, resolved, candidates=candidates, seed=seed, rules=rules, reassociate=reassociate)
    _refuse_open(first)
    of = Scheduling(tensors, resolved, checked_rules(rules), reassociate)
    end = time.monotonic() + 60.0 * minutes
    width = RunWidth.of(threads, workers, 1, resolved)
    with closing(LocalWorkers(width.jobs)) if workers is None else nullcontext(workers) as who:
        bench = ScheduleBench(who, first, resolved, width.threads, seed, timeout)
        return _search(of, first, bench, make, measurements, end, seed)


def _refuse_open(schedule: Schedule) -> None:
    for tensor in arguments_of(schedule.state):
        if None in [const_int(extent) for extent in tensor.shape]:
            raise RuntimeArgumentError(f"{tensor.name} has open dimensions, which cannot be measured: give numbers")


class ScheduleBench:
    """Measures schedules beside a first one. Mutable: it keeps the code of that."""

    def __init__(
        self, workers: SubmitsJobs, first: Schedule, target: Target, threads: int, seed: int, timeout: float
    ) -> None:
        self._workers, self._target, self._threads = workers, target, threads
        self._seed, self._timeout = seed, timeout
        state = first.state
        self._inputs = [t for s in state.stages if s.is_input for t in s.tensors]
        self._outputs = [t for name in state.outputs for t in state.stage(name).tensors]
        (self._first,) = self._compiled([first])

    def try_all(self, schedules: Sequence[Schedule]) -> list[Outcome]:
        """How many times as fast as the first schedule each is; those of the same nest as the first are as fast."""
        if not self._first.code:
            return [self._first] * len(schedules)
        compiled = self._compiled(schedules)
        new = [k for k, outcome in enumerate(compiled) if outcome.code and outcome.nest != self._first.nest]
        times = dict(zip(new, self._measured([compiled[k].code for k in new], RoundLimits(), 0), strict=True))
        same = Outcome(OutcomeKind.SAME, 1.0, 1.0, 1.0)
        return [times.get(k, same if outcome.code else outcome) for k, outcome in enumerate(compiled)]

    def confirm(self, schedule: Schedule) -> float:
        """How many times as fast as the first it is at the least, but for a small doubt; 0 where one process says that
        it is not."""
        (made,) = self._compiled([schedule])
        ratios: list[float] = []
        for process in range(CONFIRM_PROCESSES):
            (found,) = self._measured([made.code], CONFIRM_LIMITS, process + 1) if made.code else [made]
            if found.ratio <= 1:
                return 0.0
            ratios += found.ratios
        return lower_bound(ratios, DOUBT)

    def _compiled(self, schedules: Sequence[Schedule]) -> list[Outcome]:
        traces = [schedule.trace.to_json() for schedule in schedules]
        return self._outcomes(traces_job(self._inputs, self._outputs, self._target, traces, COMPILE_SECONDS))

    def _measured(self, codes: Sequence[bytes], limits: RoundLimits, seed: int) -> list[Outcome]:
        references = [(self._first.code, len(self._inputs), 1)]
        items = [[code] for code in codes]
        seed += self._seed
        job = measure_job(self._target, self._threads, references, items, limits, seed, False, self._timeout)
        return self._outcomes(job) if items else []

    def _outcomes(self, job: TuningJob) -> list[Outcome]:
        (answer,) = do_all(self._workers, [job])
        if answer is None:
            return [Outcome(OutcomeKind.LOST, detail="its worker was lost, again and again")] * len(job["items"])
        return [Outcome.of(each) for each in answer["answers"]]


def _search(
    of: Scheduling,
    first: Schedule,
    bench: ScheduleBench,
    make: MakeSearcher,
    measurements: int,
    end: float,
    seed: int,
) -> ScheduleTuning:
    start = TuningCandidate(BY_RULES, tuple((d.name, d.value) for d in first.decisions))
    space = ComputeSpace(of, [start] if start.decisions else [])
    searcher = make(space, random.Random(seed))
    tried: dict[TuningCandidate, Outcome] = {}
    while len(tried) < measurements and time.monotonic() < end:
        proposed = list(searcher.propose(min(BATCH, measurements - len(tried))))
        if not proposed:
            break
        found = bench.try_all([space.schedule(candidate) for candidate in proposed])
        tried.update(zip(proposed, found, strict=True))
        searcher.observe([TrialResult(c, o.ratio) for c, o in zip(proposed, found, strict=True)])
    shown = _with_schedules(space, first, tried)
    best = max(tried, key=lambda candidate: tried[candidate].ratio, default=None)
    if best is not None and tried[best].ratio > 1 and (gain := bench.confirm(space.schedule(best))) > 1:
        return ScheduleTuning(space.schedule(best), gain, tried, shown)
    return ScheduleTuning(first, 1.0, tried, shown)


def _with_schedules(
    space: ComputeSpace, first: Schedule, tried: Mapping[TuningCandidate, Outcome]
) -> Sequence[TriedSchedule]:
    pairs = [(first, Outcome(OutcomeKind.MEASURED, 1.0, 1.0, 1.0))]
    pairs += [(space.schedule(candidate), outcome) for candidate, outcome in tried.items()]
    return [TriedSchedule.of(schedule, space.cycles(schedule), outcome) for schedule, outcome in pairs]
