"""A task of tuning: one workload of a model, in the fused functions that are scheduled by it."""

from __future__ import annotations

from collections.abc import Sequence

from ..artifact.records.workload import Workload
from ..base.brief import BriefRepr
from ..base.dataclass import dataclass
from ..base.quantities import count_text, share_text
from ..compiler.selection.choices import call_text
from ..compiler.selection.records import NO_RECORDS, TuningRecords
from ..compiler.selection.select import get_valid_implementations
from ..compiler.settings import CompileSettings
from ..graph.node import Call, Function
from ..graph.types import leaf_types
from .candidate import TuningCandidate, decided_of
from .space import CallSpace
from .starts import STARTS, closest_records


@dataclass(frozen=True, slots=True, eq=False)
class FusedUse:
    """A fused function that a workload schedules, and how often the model calls it."""

    function: Function
    calls: int

    @property
    def inputs(self) -> int:
        """The number of tensors that it reads."""
        return sum(len(leaf_types(param.type)) for param in self.function.params)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TuningTask(BriefRepr):
    """``call`` is the operator's call by which the functions of ``uses`` are scheduled, the one that most of the time
    goes to first; a record of its ``workload`` is for all of them. ``share`` is the part of the model's time that is
    predicted for them, from 0 to 1. ``settings`` say how it is compiled, and ``untuned`` is the name of the
    implementation that serves without records. ``key`` is what trials are kept by: a digest of all that the code
    depends on."""

    call: Call
    workload: Workload
    uses: tuple[FusedUse, ...]
    share: float
    settings: CompileSettings
    untuned: str
    key: str

    @property
    def name(self) -> str:
        """The name of the first fused function."""
        return self.uses[0].function.name

    @property
    def implementations(self) -> tuple[str, ...]:
        """The names of all implementations that may serve the call."""
        return tuple(c.implementation.name for c in get_valid_implementations(self.call, self.settings))

    def space(self, records: TuningRecords = NO_RECORDS) -> CallSpace:
        """The task's candidates. Those that records of other targets, or of the same operator on other shapes, tell of
        come first."""
        return CallSpace(self.call, self.settings, self.untuned, _starts(self, records))

    def __str__(self) -> str:
        functions = count_text(len(self.uses), "function")
        calls = count_text(sum(use.calls for use in self.uses), "call")
        return f"{call_text(self.call)}: {share_text(self.share)} of the time, {calls} of {functions} as {self.name}"


def _starts(task: TuningTask, records: TuningRecords) -> Sequence[TuningCandidate]:
    """What records say of this workload on any target, then of those of the same operator that are the closest."""
    workload, target = task.workload, task.settings.target
    known = closest_records(workload, target, records, lambda other: other.op == workload.op)
    candidates = (
        TuningCandidate(record.implementation, tuple(decided_of(record.decisions).items()))
        for record in known
        if record.trace_text is None
    )
    return list({candidate.key: candidate for candidate in candidates}.values())[:STARTS]
