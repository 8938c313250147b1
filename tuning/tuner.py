"""The run of tuning: which task is searched next, when its winner is believed, and when a record is taken back.

A record is written when a winner is faster than the untuned choice for sure, in new processes, in the fused functions
that it serves; and stays if the model is faster by the records, end to end.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import field, replace

from ..base.dataclass import dataclass
from ..base.errors import RuntimeArgumentError
from ..base.quantities import count_text
from ..compiler.selection.records import TuningRecords
from ..compiler.selection.tuning_record import TuningRecord
from .bench import DOUBT, MODEL_LOOKS, Bench
from .bounds import lower_bound
from .candidate import TuningCandidate
from .journal import UNTUNED, Journal, confirmation_of
from .outcome import Outcome, OutcomeKind
from .report import TaskProgress, TuningProgress, TuningReport
from .rewrite_search import NO_REWRITES, RewritesFound
from .searcher import MakeSearcher, Searcher, TrialResult
from .space import Space
from .task import TuningTask

BATCH = 16
LEAST_GAIN = 1.01
"""A winner that is less is not worth a record."""
FINALISTS = 2
"""The best candidates of a task that are confirmed, until one is faster for sure."""
HOPE, FADING = 0.3, 0.6
"""The part of its time that a task is hoped to lose by a batch, at first; what is left of that behind one in vain."""
NOTHING_LEFT = 0.002
"""The search ends when less than this part of the model's time can be hoped for."""
UNTUNED_AT_ONCE, UNTUNED_SHARE = 16, 0.3
"""So many tasks are measured untuned at once, others only until this part of the time granted is over."""
RESERVE = 0.2
"""The part of the time granted that is kept for winners and the model as a whole."""


@dataclass(slots=True)
class _Search:
    """The search of one task. Mutable. ``untuned`` is None where there was no time to measure that. ``hope`` is the
    part of the task's time that the next batch is expected to save."""

    task: TuningTask
    space: Space
    searcher: Searcher
    untuned: Outcome | None
    tried: dict[tuple[str, str | None], tuple[TuningCandidate, Outcome]] = field(default_factory=dict)
    hope: float = HOPE
    state: str = ""
    is_left_out: bool = False

    def leave_out(self, outcome: Outcome) -> None:
        """Search no further: its code cannot be measured."""
        self.hope, self.is_left_out = 0.0, True
        self.state = f"left out: {outcome.kind.value}: {outcome.detail}"[:120]

    @property
    def seconds(self) -> float:
        """What the model spends in the task, untuned; 0 where that is not known."""
        if self.untuned is None:
            return 0.0
        pairs = zip(self.untuned.seconds, self.task.uses, strict=False)
        return sum(seconds * use.calls for seconds, use in pairs)

    @property
    def promise(self) -> float:
        """The seconds of a run of the model that the next batch is expected to save."""
        return self.hope * self.seconds

    @property
    def ranked(self) -> list[tuple[TuningCandidate, Outcome]]:
        """The candidates that have a time, the fastest first."""
        timed = [pair for pair in self.tried.values() if pair[1].is_timed]
        return sorted(timed, key=lambda pair: -pair[1].ratio)

    @property
    def gain(self) -> float:
        """How many times as fast as the untuned code the best is."""
        return max([1.0, *(outcome.ratio for _, outcome in self.tried.values())])


@dataclass(frozen=True, slots=True)
class TuningBudget:
    """How long a run may last: ``seconds`` by a ``clock``."""

    seconds: float
    clock: Callable[[], float] = time.monotonic


class Tuner:
    """One run of tuning. Mutable: it goes on, and writes into the ``journal``. ``listener`` is told how far it is.
    ``rewrites`` are those found before: the model is checked with their records, too."""

    def __init__(
        self,
        tasks: Sequence[TuningTask],
        bench: Bench,
        journal: Journal,
        make_searcher: MakeSearcher,
        budget: TuningBudget,
        seed: int,
        listener: Callable[[TuningProgress], None],
        rewrites: RewritesFound = NO_REWRITES,
    ) -> None:
        self._rewrites = rewrites
        self._tasks = list(tasks)
        self._bench, self._journal = bench, journal
        self._make_searcher, self._seed = make_searcher, seed
        self._budget, self._listener = budget, listener
        self._begin = budget.clock()
        self._searches: list[_Search] = []
        self._phase = ""
        self._measured = 0

    def run(self) -> TuningReport:
        """Search until the time is up or nothing is left to gain, confirm winners, and check the model."""
        known, untuned = self._journal.records(), self._untuned()
        for task in self._tasks:
            rng = random.Random(f"{self._seed} {task.key}")
            space = task.space(known)
            self._searches.append(_Search(task, space, self._searcher(space, rng), untuned.get(task.key)))
        self._search()
        written = [record for search in self._searches for record in self._winner(search)]
        gain, at_least, back = self._check_model(written)
        return TuningReport(
            self._rows,
            str(self._journal.path),
            len(written) + len(self._rewrites.written),
            back,
            gain,
            at_least,
            sum(len(search.tried) for search in self._searches) + self._rewrites.tries,
            self._measured + self._rewrites.measured,
        )

    def _searcher(self, space: Space, rng: random.Random) -> Searcher:
        made = self._make_searcher(space, rng)
        if not isinstance(made, Searcher):
            raise RuntimeArgumentError(f"the searcher should have propose and observe, found {made!r}")
        return made

    def _known_untuned(self, task: TuningTask) -> Outcome | None:
        """What an earlier run says of the untuned code, if it was of the same functions."""
        found = self._journal.find(task.key, UNTUNED, None)
        return found if found is not None and len(found.seconds) in (0, len(task.uses)) else None

    def _untuned(self) -> dict[str, Outcome]:
        """What comes of the untuned code of tasks, by their keys: those that the most time is predicted for first, as
        long as there is time for it."""
        found = {task.key: outcome for task in self._tasks if (outcome := self._known_untuned(task)) is not None}
        new = [task for task in self._tasks if task.key not in found]
        for begin in range(0, len(new), UNTUNED_AT_ONCE):
            least = (1 - UNTUNED_SHARE) * self._budget.seconds if begin else 0.0
            if self._seconds_left <= least:
                break
            part = new[begin : begin + UNTUNED_AT_ONCE]
            self._tell(f"measuring what is to be tuned, {begin + len(part)} of {count_text(len(new), 'task')}")
            for task, outcome in zip(part, self._bench.untuned(part), strict=True):
                self._journal.note(task.key, [(UNTUNED, None, outcome)])
                found[task.key] = outcome
        return found

    @property
    def _seconds_left(self) -> float:
        return max(0.0, self._budget.seconds - (self._budget.clock() - self._begin))

    def _search(self) -> None:
        """Batch by batch, always of the task that promises most."""
        for search in self._searches:
            if search.untuned is not None and not search.untuned.is_timed:
                search.leave_out(search.untuned)
        whole = sum(search.seconds for search in self._searches)
        while self._seconds_left > RESERVE * self._budget.seconds:
            if sum(each.promise for each in self._searches) <= NOTHING_LEFT * whole:
                return
            search = max(self._searches, key=lambda each: each.promise)
            search.state = "searching"
            self._tell(f"tuning {search.task.name}")
            self._batch(search)

    def _batch(self, search: _Search) -> None:
        """Try what the searcher proposes."""
        candidates = list(search.searcher.propose(BATCH))
        if not candidates:
            search.hope, search.state = 0.0, "searched"
            return
        before = search.gain
        outcomes = self._outcomes(search, candidates)
        for candidate, outcome in zip(candidates, outcomes, strict=True):
            search.tried[candidate.key] = candidate, outcome
        search.searcher.observe([TrialResult(c, o.ratio) for c, o in zip(candidates, outcomes, strict=True)])
        search.hope = max(1 - before / search.gain, search.hope * FADING)
        if all(outcome.kind is OutcomeKind.FOREIGN for outcome in outcomes):
            search.leave_out(outcomes[0])

    def _outcomes(self, search: _Search, candidates: Sequence[TuningCandidate]) -> list[Outcome]:
        """What comes of candidates; what an earlier run, or this one, has tried is not tried again."""
        key = search.task.key
        found = {c.key: outcome for c in candidates if (outcome := self._journal.find(key, *c.key)) is not None}
        new = list({c.key: c for c in candidates if c.key not in found}.values())
        if new:
            known = {outcome.nest: outcome for _, outcome in search.tried.values() if outcome.nest}
            made = self._bench.try_all(search.task, new, known)
            self._journal.note(key, [(*c.key, outcome) for c, outcome in zip(new, made, strict=True)])
            self._measured += len(new)
            found.update({c.key: outcome for c, outcome in zip(new, made, strict=True)})
        return [found[candidate.key] for candidate in candidates]

    def _winner(self, search: _Search) -> list[TuningRecord]:
        """The record of a task's winner, written; none where no candidate is faster for sure."""
        task = search.task
        own = self._journal.own_records(task.workload, task.settings.target)
        for candidate, outcome in search.ranked[:FINALISTS]:
            if outcome.ratio < LEAST_GAIN:
                break
            if any((r.implementation, r.decisions) == candidate.key for r in own):
                search.state = "recorded already"
                return []
            search.state = "confirming"
            self._tell(f"confirming the winner of {task.name}")
            confirmed = self._confirmed(task, candidate)
            if min(confirmed.ratio, confirmed.low) > 1:
                search.state = f"at least {confirmed.low:.3f}×"
                made = TuningRecord.of(
                    task.call,
                    task.settings.target,
                    candidate.implementation,
                    confirmed.seconds,
                    candidate.decided or None,
                    threads=self._journal.threads,
                )
                return [self._journal.replace(own, made)]
        if not search.is_left_out:
            search.state = "nothing faster for sure" if search.tried else "there was no time for it"
        return []

    def _confirmed(self, task: TuningTask, candidate: TuningCandidate) -> Outcome:
        """What new processes say of a candidate; its ``low`` is a bound that holds for all tasks of the run at once."""
        name, decisions = confirmation_of(candidate)
        found = self._journal.find(task.key, name, decisions)
        if found is None:
            found = self._bench.confirm(task, candidate)
            if found.is_timed:
                found = replace(found, low=lower_bound(found.ratios, DOUBT / max(1, len(self._tasks))))
            self._journal.note(task.key, [(name, decisions, found)])
        return found

    def _check_model(self, written: Sequence[TuningRecord]) -> tuple[float, float, int]:
        """The gain of the model, a bound of it, and how many of the written records were taken back."""
        records = self._journal.records()
        of_tasks = (self._journal.own_records(task.workload, task.settings.target) for task in self._tasks)
        own = [*self._rewrites.records, *(record for found in of_tasks for record in found)]
        if not own:
            return 1.0, 1.0, 0
        others = [record for record in records if record not in own]
        self._tell("comparing the model tuned with the same untuned")
        kept, outcome = self._faster_part(own, others)
        lost = [record for record in own if record not in kept]
        if lost:
            self._journal.withdraw(lost, "the model was not faster by it, end to end")
        taken = sum(record in lost for record in (*written, *self._rewrites.written))
        return (outcome.ratio, outcome.low, taken) if kept else (1.0, 1.0, taken)

    def _faster_part(
        self, records: Sequence[TuningRecord], others: Sequence[TuningRecord]
    ) -> tuple[Sequence[TuningRecord], Outcome]:
        """The records by which the model is faster, by bisection: of all, else of what is left of halves."""
        outcome = self._bench.model(TuningRecords([*others, *records]))
        bound = lower_bound(outcome.ratios, DOUBT / MODEL_LOOKS)
        outcome = replace(outcome, low=bound)
        if bound > 1 and outcome.kind is OutcomeKind.MEASURED:
            return records, outcome
        if len(records) == 1:
            return [], outcome
        self._tell("taking records back: the model was not faster by them")
        middle = (len(records) + 1) // 2
        first, of_first = self._faster_part(records[:middle], others)
        second, of_second = self._faster_part(records[middle:], others)
        if not first or not second:
            return (first, of_first) if first else (second, of_second)
        return max([(first, of_first), (second, of_second)], key=lambda pair: pair[1].low)

    def _tell(self, phase: str) -> None:
        self._listener(TuningProgress(phase, self._rows, self._seconds_left))

    @property
    def _rows(self) -> tuple[TaskProgress, ...]:
        seconds = [search.seconds for search in self._searches]
        predicted = sum(search.task.share for search in self._searches if search.untuned is not None)
        rate = predicted / sum(seconds) if sum(seconds) else 0.0
        return (*self._rewrites.rows, *(_progress(*each, rate) for each in zip(self._searches, seconds, strict=True)))


def _progress(search: _Search, seconds: float, rate: float) -> TaskProgress:
    """The row of a task, of which a second is so large a share of the model's time as ``rate`` says."""
    outcomes = [outcome for _, outcome in search.tried.values()]
    ranked = search.ranked
    return TaskProgress(
        search.task.name,
        search.task.call.op.name,
        seconds * rate if seconds else search.task.share,
        seconds,
        len(outcomes),
        sum(not outcome.is_timed for outcome in outcomes),
        str(ranked[0][0]) if ranked and ranked[0][1].ratio > 1 else "",
        search.gain if outcomes else 0.0,
        search.state,
    )
