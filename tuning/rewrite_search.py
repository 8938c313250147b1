"""The search of rewrites: the model with each is measured beside the planned one, and what is faster is recorded."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..artifact.records.workload import TargetKey, canonical_json
from ..base.dataclass import dataclass
from ..base.errors import LoopwrightError
from ..base.target import Target
from ..compiler.selection.choices import call_text
from ..compiler.selection.records import TuningRecords
from ..compiler.selection.tuning_record import TuningRecord
from .bench import DOUBT, Bench
from .bounds import lower_bound
from .jobs import versions
from .journal import CONFIRMED, Journal
from .outcome import Outcome, OutcomeKind
from .report import TaskProgress, TuningProgress
from .rewrite_tasks import RewriteTask

LEAST_GAIN = 1.005
"""Of the model as a whole: what is less at first sight is not measured again."""


@dataclass(frozen=True, slots=True)
class RewritesFound:
    """``rows`` tell of each task, ``records`` are those of rewrites that hold for the target now, ``written`` those
    that this run made; ``tries`` counts rewrites, ``measured`` those whose outcome was not known."""

    rows: tuple[TaskProgress, ...] = ()
    records: tuple[TuningRecord, ...] = ()
    written: tuple[TuningRecord, ...] = ()
    tries: int = 0
    measured: int = 0


NO_REWRITES = RewritesFound()


class RewriteSearch:
    """Searches the rewrites of a model, of which ``model`` is a digest. Mutable: it goes on, and writes into the
    ``journal``."""

    def __init__(
        self, tasks: Sequence[RewriteTask], model: str, target: Target, bench: Bench, journal: Journal
    ) -> None:
        self._tasks, self._model, self._target = tasks, model, target
        self._bench, self._journal = bench, journal
        self._rows: dict[RewriteTask, TaskProgress] = {}
        self._written: list[TuningRecord] = []
        self._tries = self._measured = 0

    def run(
        self, is_over: Callable[[], bool], left: Callable[[], float], tell: Callable[[TuningProgress], None]
    ) -> RewritesFound:
        """Measure the rewrites of each task in turn, until that is over; ``left`` gives the seconds left of all."""
        for task in self._tasks:
            if is_over():
                break
            tell(TuningProgress(task.name, tuple(self._rows.values()), left()))
            self._rows[task] = self._searched(task, is_over)
        own = (self._journal.own_records(task.workload, self._target)[:1] for task in self._tasks)
        return RewritesFound(
            tuple(self._rows.values()),
            tuple(record for records in own for record in records),
            tuple(self._written),
            self._tries,
            self._measured,
        )

    def _searched(self, task: RewriteTask, is_over: Callable[[], bool]) -> TaskProgress:
        tried: dict[str, Outcome] = {}
        for rewrite in task.rewrites:
            if not is_over():
                tried[rewrite] = self._outcome(task, rewrite, is_brief=True)
        self._tries += len(tried)
        best = max(tried, key=lambda rewrite: tried[rewrite].ratio, default=None)
        failed = sum(not outcome.is_timed for outcome in tried.values())
        row = TaskProgress(task.name, call_text(task.call), task.share, 0.0, len(tried), failed, "", 0.0, "as planned")
        if best is None or tried[best].ratio < LEAST_GAIN:
            return row
        confirmed = self._outcome(task, best, is_brief=False)
        if min(confirmed.ratio, confirmed.low) <= 1:
            return replace(row, state="nothing faster for sure")
        own = self._journal.own_records(task.workload, self._target)
        self._written.append(self._journal.replace(own, self._made(task, best, confirmed.seconds)))
        state = f"the model at least {confirmed.low:.3f}×"
        return replace(row, best=best, gain=confirmed.ratio, state=state)

    def _outcome(self, task: RewriteTask, rewrite: str, is_brief: bool) -> Outcome:
        """What comes of the model with a rewrite, beside the planned one, in this run or in an earlier one."""
        parts = [self._model, task.workload.to_json(), task.planned, TargetKey.of(self._target).to_json(), versions()]
        key = hashlib.sha256(canonical_json(parts).encode()).hexdigest()
        name = rewrite if is_brief else f"{rewrite}{CONFIRMED}"
        found = self._journal.find(key, name, None)
        if found is None:
            self._measured += is_brief
            records = self._journal.records()
            with_rewrite = TuningRecords(
                [*(r for r in records if r.workload != task.workload), self._made(task, rewrite)]
            )
            try:
                found = self._bench.model(with_rewrite, records, is_brief)
            except LoopwrightError as error:
                found = Outcome(OutcomeKind.FAILED, detail=str(error).splitlines()[0])
            if found.is_timed:
                found = replace(found, low=lower_bound(found.ratios, DOUBT / max(1, len(self._tasks))))
            self._journal.note(key, [(name, None, found)])
        return found

    def _made(self, task: RewriteTask, rewrite: str, seconds: Sequence[float] = (1.0,)) -> TuningRecord:
        """The record of a rewrite; its ``seconds`` are those of the model with it."""
        threads = self._journal.threads
        return TuningRecord.of_workload(task.workload, self._target, rewrite, seconds, threads=threads)
