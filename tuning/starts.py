"""The records that a search begins with: of the workload itself, then of the closest that resemble it."""

from __future__ import annotations

import math
from collections.abc import Callable

from ..artifact.records.workload import TensorKey, Workload
from ..base.target import Target
from ..compiler.selection.records import TuningRecords
from ..compiler.selection.tuning_record import TuningRecord

STARTS = 6
"""Candidates of records of other targets and shapes that a search begins with, at most."""


def closest_records(
    workload: Workload, target: Target, records: TuningRecords, is_kin: Callable[[Workload], bool]
) -> list[TuningRecord]:
    """What records say of a workload on a target; then those of it on any other, and of workloads that ``is_kin``
    accepts, those of the same cpu first, then those whose extents differ the least."""
    own = [match.record for match in records.lookup(workload, target)]
    others = [record for record in records if is_kin(record.workload) and record not in own]
    others.sort(key=lambda r: (r.target.cpu != target.cpu, _distance(r.workload, workload)))
    return [*own, *others]


def _distance(one: Workload, other: Workload) -> float:
    """How many times as large the extents of two workloads are, multiplied; infinite where those are of other ranks."""
    pairs = list(zip(one.arguments, other.arguments, strict=False))
    if len(one.arguments) != len(other.arguments) or any(len(a.shape) != len(b.shape) for a, b in pairs):
        return math.inf
    return sum(_steps(a, b) for a, b in pairs)


def _steps(one: TensorKey, other: TensorKey) -> float:
    pairs = zip(one.shape, other.shape, strict=True)
    return sum(abs(math.log2((a + 1) / (b + 1))) for a, b in pairs) + (one.dtype != other.dtype)
