"""What tactics were measured to take: the records of a file, and those that an engine adds to it.

Mutable: it grows as engines measure. One engine's ``init`` uses it, under the engine's lock.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ...artifact.extents import evaluate
from ...artifact.function import OpCall
from ...artifact.records.record import Record, own_versions
from ...artifact.records.record_file import append_records, read_records
from ...artifact.records.workload import TargetKey, TensorKey, Workload
from ...base.errors import RuntimeArgumentError
from ...base.target import Target


class TacticRecords:
    """The records of a file, whose damaged lines are passed over; a file that is missing has none.

    Raises ``RecordError`` for a file that cannot be read, or written.
    """

    def __init__(self, path: str | os.PathLike[str] | None, target: Target) -> None:
        if path is not None and not isinstance(path, (str, os.PathLike)):
            raise RuntimeArgumentError(f"records should be the path of a file, found {path!r}")
        self._path = None if path is None else Path(path)
        self._target = TargetKey.of(target)
        known = read_records(self._path, Record.from_json)[0] if self._path is not None and self._path.exists() else ()
        self._records = [record for record in known if record.target == self._target]

    def costs(self, call: OpCall, own: str, threads: int) -> Mapping[str, float]:
        """Seconds by the names of the tactics that are recorded for a call on this target, by runs of so many threads.
        Of several records of one tactic the last counts; one that tells its threads before one that does not.

        Records with decisions or a trace are of code that only the compiler makes by them: they count for ``own``, the
        model's own code, and for no other tactic."""
        workload = _workload(call)
        found = [r for r in self._records if r.workload == workload and r.is_of_threads(threads)]
        found = [r for r in found if r.implementation == own or (r.decisions is None and r.trace_text is None)]
        found.sort(key=lambda record: record.threads is not None)  # keeps the order of the rest
        return {record.implementation: record.cost for record in found}

    def add(self, call: OpCall, tactic: str, seconds: tuple[float, ...], threads: int) -> None:
        """Keep what was measured, in the file too if there is one."""
        record = Record(_workload(call), self._target, tactic, seconds, threads=threads, versions=own_versions())
        self._records.append(record)
        if self._path is not None:
            append_records(self._path, [record])


def _workload(call: OpCall) -> Workload:
    """The workload of a call of known shapes."""
    arguments = (TensorKey(tuple(evaluate(e, {}) for e in spec.shape), str(spec.dtype)) for spec in call.inputs)
    return Workload(call.op, tuple(arguments), call.attributes)
