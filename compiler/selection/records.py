"""Tuning records as selection sees them: what is known of a workload on a target, the closest and cheapest first.

A look-up goes by the target itself; where it has no records, by its model of cpu; where that has none, by its keys.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import TypeVar

from ...artifact.records.record_file import SkippedLine, append_records, read_records
from ...artifact.records.workload import TargetKey, Workload, canonical_json
from ...base.dataclass import dataclass
from ...base.errors import RecordError
from ...base.quantities import seconds_text
from ...base.target import Target
from .tuning_record import TuningRecord


class Level(IntEnum):
    """How close the target of a record is to the one asked for."""

    TARGET = 0  # the same in all
    MODEL = 1  # the same cpu; features, threads, libraries or caches differ
    KEYS = 2  # another cpu of the same keys

    def __str__(self) -> str:
        return ("this target", "this cpu model", "another cpu of these keys")[self]


@dataclass(frozen=True, slots=True)
class Match:
    """A record that a look-up found, and how close it is."""

    record: TuningRecord
    level: Level

    def __str__(self) -> str:
        """Which implementation, how made, at what cost, where."""
        record = self.record
        how = f" {record.decisions}" if record.decisions is not None else " by a trace" if record.trace_text else ""
        return f"{record.implementation}{how}, {seconds_text(record.cost)} on {self.level}"


_Item = TypeVar("_Item")


class TuningRecords:
    """Records in order. Immutable: ``with_records`` makes new ones, and ``append`` writes to a file, not to these."""

    def __init__(self, records: Iterable[TuningRecord] = (), skipped: Iterable[SkippedLine] = ()) -> None:
        self._records = _all_of(TuningRecord, records, "records")
        self.skipped = _all_of(SkippedLine, skipped, "skipped")
        """The lines of the file that gave no record."""
        self._of: dict[Workload, list[TuningRecord]] = {}
        for record in self._records:
            self._of.setdefault(record.workload, []).append(record)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TuningRecords:
        """The records of a file; ``skipped`` are lines that are none. Raises ``RecordError`` if it cannot be read."""
        return cls(*read_records(path, TuningRecord.from_json))

    @staticmethod
    def append(path: str | os.PathLike[str], *records: TuningRecord) -> None:
        """Write records at the end of a file, beside other writers. Raises ``RecordError`` if it cannot be written."""
        append_records(path, records)

    @property
    def damaged(self) -> tuple[SkippedLine, ...]:
        """The lines that are no records, each with file, number and problem."""
        return tuple(line for line in self.skipped if line.why == "damaged")

    def __iter__(self) -> Iterator[TuningRecord]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def __repr__(self) -> str:
        return f"<TuningRecords: {len(self)} of {len(self._of)} workloads>"

    def about(self, workloads: Iterable[Workload]) -> TuningRecords:
        """The records of some workloads alone."""
        known = dict.fromkeys(_all_of(Workload, workloads, "workloads"))
        return TuningRecords(record for workload in known for record in self._of.get(workload, ()))

    def lookup(self, workload: Workload, target: Target) -> tuple[Match, ...]:
        """All that may serve, the closest level first, there the cheapest first, there as they were written. Where the
        target says how many threads there are, records of another number do not count."""
        asked = TargetKey.of(target)
        records = [r for r in self._of.get(workload, ()) if r.is_of_threads(target.threads or None)]
        found = [(level, r) for r in records if (level := _level(r.target, asked)) is not None]
        return tuple(Match(record, level) for level, record in sorted(found, key=lambda x: (x[0], x[1].cost)))

    def best(self, workload: Workload, target: Target) -> Match | None:
        """The first that ``lookup`` gives; whether the implementation is valid for a call is for selection to say."""
        return next(iter(self.lookup(workload, target)), None)

    def digest(self, workloads: Sequence[Workload], target: Target) -> str:
        """A digest of what look-ups of these workloads give; empty where they give nothing."""
        found = [
            [number, match.level, match.record.to_json()]
            for number, workload in enumerate(_all_of(Workload, workloads, "workloads"))
            for match in self.lookup(workload, target)
        ]
        return hashlib.sha256(canonical_json(found).encode()).hexdigest() if found else ""


def _all_of(kind: type[_Item], given: object, name: str) -> tuple[_Item, ...]:
    items = tuple(given) if isinstance(given, Iterable) else None
    if items is None or not all(isinstance(item, kind) for item in items):
        raise RecordError(f"{name} should be a list of {kind.__name__}, found {given!r}")
    return items


def _level(recorded: TargetKey, asked: TargetKey) -> Level | None:
    if recorded == asked:
        return Level.TARGET
    if (recorded.arch, recorded.cpu) == (asked.arch, asked.cpu):
        return Level.MODEL
    return Level.KEYS if recorded.keys == asked.keys else None


NO_RECORDS = TuningRecords()


def records_from(given: object) -> TuningRecords:
    """What users pass as ``records=``: a path, records, or None. Raises ``RecordError`` for anything else."""
    if given is None:
        return NO_RECORDS
    if isinstance(given, TuningRecords):
        return given
    if isinstance(given, (str, os.PathLike)):
        return TuningRecords.load(given)
    raise RecordError(f"records= takes the path of a file of tuning records, or lw.TuningRecords, not {given!r}")
