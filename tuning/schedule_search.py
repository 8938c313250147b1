"""The search of a schedule for tensor expressions: candidates are measured, and the best is confirmed and recorded."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ..artifact.records.workload import TargetKey, Workload, canonical_json
from ..base.brief import BriefRepr
from ..base.dataclass import dataclass
from ..base.quantities import count_text
from ..compiler.selection.recorded_schedule import are_of_one_form
from ..compiler.selection.tuning_record import TuningRecord
from ..lowering.primitives.decide import Decide
from ..lowering.schedule import Schedule
from ..schedules.auto.candidates import Scheduling
from .bench import DOUBT
from .bounds import lower_bound
from .candidate import TuningCandidate
from .compute_space import BY_RULES, ComputeSpace
from .jobs import versions
from .journal import Journal, confirmation_of
from .outcome import Outcome, OutcomeKind
from .report import TaskProgress, TuningProgress
from .schedule_bench import ScheduleBench
from .searcher import MakeSearcher, TrialResult
from .starts import STARTS, closest_records
from .tried_schedule import TriedSchedule

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


class ScheduleSearch:
    """One search of schedules. Mutable: it goes on, and writes into the ``journal``."""

    def __init__(
        self,
        of: Scheduling,
        workload: Workload,
        first: Schedule,
        bench: ScheduleBench,
        journal: Journal,
        make: MakeSearcher,
        seed: int,
        listener: Callable[[TuningProgress], None],
    ) -> None:
        self._of, self._workload, self._first = of, workload, first
        self._listener = listener
        self._bench, self._journal = bench, journal
        self._records = journal.records()
        self._key = self._task_key()
        self._space = ComputeSpace(of, self._starts())
        self._searcher = make(self._space, random.Random(seed))
        self._tried: dict[TuningCandidate, Outcome] = {}

    def run(self, measurements: int, end: float) -> ScheduleTuning:
        """Try so many candidates, or as many batches as end before a time of ``time.monotonic``, but one at the least;
        and confirm the best."""
        longest = 0.0
        while len(self._tried) < measurements:
            begin = time.monotonic()
            if self._tried and begin + longest > end:
                break
            proposed = list(self._searcher.propose(min(BATCH, measurements - len(self._tried))))
            if not proposed:
                break
            outcomes = self._outcomes(proposed)
            self._tried.update(zip(proposed, outcomes, strict=True))
            self._searcher.observe([TrialResult(c, o.ratio) for c, o in zip(proposed, outcomes, strict=True)])
            self._tell("measuring schedules", "searching", end)
            longest = max(longest, time.monotonic() - begin)
        best = max(self._tried, key=lambda candidate: self._tried[candidate].ratio, default=None)
        if best is not None and self._tried[best].ratio > 1:
            self._tell("confirming the fastest schedule", "confirming", end)
            confirmed = self._confirmed(best)
            if (gain := min(confirmed.ratio, confirmed.low)) > 1:
                self._record(best, confirmed)
                return self._found(self._space.schedule(best), gain)
        return self._found(self._first, 1.0)

    def _tell(self, phase: str, state: str, end: float) -> None:
        best = max(self._tried, key=lambda candidate: self._tried[candidate].ratio)
        gain = self._tried[best].ratio
        failed = sum(not outcome.is_timed for outcome in self._tried.values())
        name, operator = ", ".join(tensor.name for tensor in self._of.outputs), self._workload.op
        shown = str(best) if gain > 1 else ""
        row = TaskProgress(name, operator, 1.0, 0.0, len(self._tried), failed, shown, gain, state)
        self._listener(TuningProgress(phase, (row,), max(0.0, end - time.monotonic())))

    def _task_key(self) -> str:
        """What trials are kept by: a digest of all that their times beside the first schedule depend on."""
        rules = [[rule.phase, rule.name] for rule in self._of.rules]
        of = [self._workload.to_json(), TargetKey.of(self._of.target).to_json(), rules]
        parts = canonical_json([*of, self._first.trace.to_json(), versions()])
        return hashlib.sha256(parts.encode()).hexdigest()

    def _starts(self) -> list[TuningCandidate]:
        """The model's choice, then what records say of the expression and of its form on other shapes."""
        found = [tuple((decision.name, decision.value) for decision in self._first.decisions)]
        is_kin = partial(are_of_one_form, self._workload)
        for record in closest_records(self._workload, self._of.target, self._records, is_kin):
            if record.implementation == BY_RULES:
                steps = [step for step in record.trace or () if isinstance(step, Decide)]
                found.append(tuple((step.name, step.value) for step in steps))
        candidates = [TuningCandidate(BY_RULES, decided) for decided in found if decided]
        return list({candidate.key: candidate for candidate in candidates}.values())[: STARTS + 1]

    def _outcomes(self, candidates: Sequence[TuningCandidate]) -> list[Outcome]:
        """What comes of candidates; what an earlier run has tried is not tried again."""
        found = {c: outcome for c in candidates if (outcome := self._journal.find(self._key, *c.key)) is not None}
        new = [candidate for candidate in candidates if candidate not in found]
        if new:
            made = self._bench.try_all([self._space.schedule(candidate) for candidate in new])
            self._journal.note(self._key, [(*c.key, outcome) for c, outcome in zip(new, made, strict=True)])
            found.update(zip(new, made, strict=True))
        return [found[candidate] for candidate in candidates]

    def _confirmed(self, best: TuningCandidate) -> Outcome:
        """What new processes say of a candidate; ``low`` is the bound that counts."""
        name, decisions = confirmation_of(best)
        known = self._journal.find(self._key, name, decisions)
        if known is not None:
            return known
        found = self._bench.confirm(self._space.schedule(best))
        if found.is_timed:
            found = replace(found, low=lower_bound(found.ratios, DOUBT))
        self._journal.note(self._key, [(name, decisions, found)])
        return found

    def _record(self, best: TuningCandidate, confirmed: Outcome) -> None:
        """Write the record of the best, and take back those of this target that it replaces."""
        target, trace = self._of.target, self._space.schedule(best).trace
        made = TuningRecord.of_workload(
            self._workload,
            target,
            best.implementation,
            confirmed.seconds,
            trace=trace,
            threads=self._journal.threads,
        )
        own = self._journal.own_records(self._workload, target)
        if all(record.trace_text != made.trace_text for record in own):
            self._journal.replace(own, made)

    def _found(self, schedule: Schedule, gain: float) -> ScheduleTuning:
        pairs = [(self._first, Outcome(OutcomeKind.MEASURED, 1.0, 1.0, 1.0))]
        pairs += [(self._space.schedule(candidate), outcome) for candidate, outcome in self._tried.items()]
        shown = [TriedSchedule.of(each, self._space.cycles(each), outcome) for each, outcome in pairs]
        return ScheduleTuning(schedule, gain, self._tried, shown)
