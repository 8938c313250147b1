"""What a run of tuning has found so far, in the file of its records: a run that is interrupted goes on from there."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from ..artifact.records.record_file import append_notes, append_records, check_can_append, read_trials
from ..artifact.records.trial import Trial
from ..artifact.records.withdrawal import Withdrawal
from ..artifact.records.workload import Workload
from ..base.errors import RecordError
from ..base.target import Target
from ..compiler.selection.records import NO_RECORDS, Level, TuningRecords
from ..compiler.selection.tuning_record import TuningRecord
from .candidate import TuningCandidate
from .outcome import UNNOTED, Outcome, OutcomeKind

UNTUNED = "untuned"
"""In the place of an implementation: what serves without records."""
CONFIRMED = " (confirmed)"
"""Behind the name of an implementation: what a comparison in new processes gave."""


def records_path(given: object) -> Path:
    """The path of a file of records that a user gives. Raises ``RecordError`` for anything else."""
    if not isinstance(given, (str, os.PathLike)):
        raise RecordError(f"records should be the path of a file to keep them in, found {given!r}")
    return Path(given)


class Journal:
    """The lines of a file, or of none where ``path`` is None. Mutable: it grows with the file. Raises ``RecordError``
    for a file that cannot be read or written."""

    def __init__(self, path: str | os.PathLike[str] | None, threads: int) -> None:
        self.path = None if path is None else Path(path)
        self.threads = threads
        if self.path is not None:
            check_can_append(self.path)
        self._read: tuple[tuple[int, int], TuningRecords] | None = None
        found = read_trials(self.path) if self.path is not None and self.path.exists() else ()
        self._known = {(t.task, t.implementation, t.decisions): t for t in found if t.threads == threads}

    def records(self) -> TuningRecords:
        """The records in the file, as it is now. It is read where it has changed, by whichever process."""
        if self.path is None or not self.path.exists():
            return NO_RECORDS
        found = self.path.stat()
        state = found.st_size, found.st_mtime_ns
        if self._read is None or self._read[0] != state:
            self._read = state, TuningRecords.load(self.path)
        return self._read[1]

    def find(self, task: str, implementation: str, decisions: str | None) -> Outcome | None:
        """What came of a candidate, in this run or in an earlier one."""
        trial = self._known.get((task, implementation, decisions))
        if trial is None or trial.outcome not in set(OutcomeKind):
            return None
        return Outcome(
            OutcomeKind(trial.outcome),
            trial.ratio,
            trial.low,
            trial.high,
            trial.seconds,
            nest=trial.nest,
            detail=trial.detail,
            cpu=trial.cpu,
        )

    def note(self, task: str, outcomes: Iterable[tuple[str, str | None, Outcome]]) -> None:
        """Keep what came of candidates: the name of an implementation, its decisions, the outcome."""
        trials = [
            Trial(
                task,
                self.threads,
                implementation,
                decisions,
                found.kind.value,
                found.ratio,
                found.low,
                found.high,
                found.seconds,
                found.nest,
                found.detail,
                found.cpu,
            )
            for implementation, decisions, found in outcomes
            if found.kind not in UNNOTED
        ]
        if self.path is not None:
            append_notes(self.path, trials)
        self._known.update({(t.task, t.implementation, t.decisions): t for t in trials})

    def own_records(self, workload: Workload, target: Target) -> list[TuningRecord]:
        """The records in the file of a workload on this very target, the cheapest first."""
        return [m.record for m in self.records().lookup(workload, target) if m.level is Level.TARGET]

    def replace(self, own: Iterable[TuningRecord], record: TuningRecord) -> TuningRecord:
        """Write a record that is faster than those there are, with the time of day, and take these back."""
        written = replace(record, time=datetime.now(UTC).isoformat(timespec="seconds"))
        self._add(written)
        self.withdraw(own, "replaced by one that is faster")
        return written

    def _add(self, record: TuningRecord) -> None:
        if self.path is not None:
            append_records(self.path, [record])

    def withdraw(self, records: Iterable[TuningRecord], why: str) -> None:
        """Take records back."""
        if self.path is not None:
            append_notes(self.path, [Withdrawal.of(record, why) for record in records])


def confirmation_of(candidate: TuningCandidate) -> tuple[str, str | None]:
    """What the confirmation of a candidate is kept by."""
    return f"{candidate.implementation}{CONFIRMED}", candidate.decisions_json
