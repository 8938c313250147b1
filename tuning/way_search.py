"""The search of ways: the model with each is measured beside the model without, and what is faster becomes a record."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from ..artifact.records.workload import TargetKey, canonical_json
from ..base.errors import LoopwrightError
from ..base.target import Target
from ..compiler.selection.choices import call_text
from ..compiler.selection.records import Level, TuningRecords
from ..compiler.selection.tuning_record import TuningRecord
from .bench import DOUBT, Bench
from .bounds import lower_bound
from .jobs import versions
from .journal import CONFIRMED, Journal
from .outcome import Outcome, OutcomeKind
from .report import TaskProgress, TuningProgress
from .way_tasks import WayTask

LEAST_GAIN = 1.005
"""Of the model as a whole: what is less at first sight is not measured again."""


@dataclass(frozen=True, slots=True)
class WaysFound:
    """``rows`` tell of each task, ``records`` are those of ways that hold for the target now, ``written`` those that
    this run made; ``tries`` are ways, ``measured`` those whose outcome was not known."""

    rows: tuple[TaskProgress, ...] = ()
    records: tuple[TuningRecord, ...] = ()
    written: int = 0
    tries: int = 0
    measured: int = 0


NO_WAYS = WaysFound()


class WaySearch:
    """Searches the ways of a model, of which ``model`` is a digest. Mutable: it goes on, and writes into the
    ``journal``."""

    def __init__(self, tasks: Sequence[WayTask], model: str, target: Target, bench: Bench, journal: Journal) -> None:
        self._tasks, self._model, self._target = tasks, model, target
        self._bench, self._journal = bench, journal
        self._rows: dict[WayTask, TaskProgress] = {}
        self._written = self._tries = self._measured = 0

    def run(
        self, is_over: Callable[[], bool], left: Callable[[], float], tell: Callable[[TuningProgress], None]
    ) -> WaysFound:
        """Measure the ways of each task in turn, until that is over; ``left`` gives the seconds left of all."""
        for task in self._tasks:
            if is_over():
                break
            tell(TuningProgress(f"measuring {task.name}", tuple(self._rows.values()), left()))
            self._rows[task] = self._searched(task, is_over)
        records = self._journal.records()
        found = [m.record for task in self._tasks for m in records.lookup(task.workload, self._target)[:1]]
        return WaysFound(
            tuple(self._rows.values()),
            tuple(record for record in found if record.target == TargetKey.of(self._target)),
            self._written,
            self._tries,
            self._measured,
        )

    def _searched(self, task: WayTask, is_over: Callable[[], bool]) -> TaskProgress:
        tried: dict[str, Outcome] = {}
        for way in task.ways:
            if not is_over():
                tried[way] = self._outcome(task, way, is_brief=True)
        self._tries += len(tried)
        best = max(tried, key=lambda way: tried[way].ratio, default=None)
        failed = sum(not outcome.is_timed for outcome in tried.values())
        row = TaskProgress(task.name, call_text(task.call), task.share, 0.0, len(tried), failed, "", 0.0, "as planned")
        if best is None or tried[best].ratio < LEAST_GAIN:
            return row
        confirmed = self._outcome(task, best, is_brief=False)
        if min(confirmed.ratio, confirmed.low) <= 1:
            return replace(row, state="nothing faster for sure")
        self._record(task, best, confirmed)
        state = f"the model at least {confirmed.low:.3f}×"
        return replace(row, best=best, gain=confirmed.ratio, state=state)

    def _outcome(self, task: WayTask, way: str, is_brief: bool) -> Outcome:
        """What comes of the model with a way, beside the model by what is recorded; an earlier run's if there was."""
        parts = [self._model, task.workload.to_json(), TargetKey.of(self._target).to_json(), versions()]
        key = hashlib.sha256(canonical_json(parts).encode()).hexdigest()
        name = way if is_brief else f"{way}{CONFIRMED}"
        found = self._journal.find(key, name, None)
        if found is None:
            self._measured += is_brief
            records = self._journal.records()
            with_way = TuningRecords([*(r for r in records if r.workload != task.workload), self._made(task, way)])
            try:
                found = self._bench.model(with_way, records, is_brief)
            except LoopwrightError as error:
                found = Outcome(OutcomeKind.FAILED, detail=str(error).splitlines()[0])
            if found.is_timed:
                found = replace(found, low=lower_bound(found.ratios, DOUBT / max(1, len(self._tasks))))
            self._journal.note(key, [(name, None, found)])
        return found

    def _made(self, task: WayTask, way: str, seconds: Sequence[float] = (1.0,)) -> TuningRecord:
        """The record of a way; its ``seconds`` are those of the model with it."""
        now, threads = datetime.now(UTC).isoformat(timespec="seconds"), self._journal.threads
        return TuningRecord.of_workload(task.workload, self._target, way, seconds, time=now, threads=threads)

    def _record(self, task: WayTask, way: str, confirmed: Outcome) -> None:
        matches = self._journal.records().lookup(task.workload, self._target)
        own = [match.record for match in matches if match.level is Level.TARGET]
        if any(record.implementation == way for record in own):
            return
        self._journal.add(self._made(task, way, confirmed.seconds))
        self._journal.withdraw(own, "replaced by one that is faster")
        self._written += 1
