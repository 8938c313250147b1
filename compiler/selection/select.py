"""The choice among the implementations of a call, with its reasons: by tuning records, else by priority and cost.

Strategies offer, and this module chooses: nothing of an implementation runs before it is chosen. Where its schedule
turns out to be illegal, whoever schedules chooses again without it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from ...artifact.options import CodegenOptions
from ...base.dataclass import dataclass
from ...base.errors import LoopwrightError, ScheduleError, SelectionError
from ...base.quantities import seconds_text
from ...base.target import Target
from ...graph.node import Call
from ...ops.definition.registry import op_of
from ...ops.definition.strategy import OpImplementation, SpecializedCondition, strategy_of
from ..settings import CompileSettings
from .records import Match
from .traced_schedule import require_fitting_trace
from .tuning_record import TuningRecord
from .workload import workload_of

Verdict: TypeAlias = tuple[str, bool | None]
"""A clause of a condition as text, and whether it holds; None where symbolic extents leave that open."""


KEEPS_ORDER = "sums in the order of the definition (strict precision)"
IS_DIRECT = "the products of the definition (direct arithmetic)"


@dataclass(frozen=True, slots=True)
class Refusal:
    """What came of trying an implementation for a call: its compute or its schedule is illegal there. ``record`` is the
    one whose decisions it had; None: it was as its strategy offers it."""

    implementation: str
    record: TuningRecord | None
    error: ScheduleError

    @classmethod
    def of(cls, selection: Selection, implementation: str, error: ScheduleError) -> Refusal:
        """The refusal of an implementation that a selection led to."""
        match = selection.record if selection.chosen.name == implementation else None
        configured = match is not None and match.record.decisions is not None
        return cls(implementation, match.record if match is not None and configured else None, error)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One implementation that was looked at: it is valid, or guarded, or rejected."""

    implementation: OpImplementation
    condition: SpecializedCondition | None
    verdicts: tuple[Verdict, ...]
    recorded: Match | None = None
    """The closest and cheapest record of it for the call, if there is one."""
    refused: str | None = None
    """The error that its schedule raised for the call, where it was tried."""

    @property
    def failed(self) -> tuple[str, ...]:
        """The clauses that do not hold here."""
        return tuple(clause for clause, holds in self.verdicts if holds is False)

    @property
    def guards(self) -> tuple[str, ...]:
        """The clauses that would have to be tested at run time."""
        return tuple(clause for clause, holds in self.verdicts if holds is None)

    @property
    def rejected(self) -> str | None:
        """Why it can never serve the call; None if it can."""
        if self.refused is not None:
            return f"its schedule is refused: {self.refused.splitlines()[0]}"
        return f"needs {', '.join(self.failed)}" if self.failed else None

    @property
    def guarded(self) -> bool:
        """Whether it serves the call for some extents of the symbolic dimensions only, as far as can be told."""
        return self.rejected is None and bool(self.guards)

    @property
    def valid(self) -> bool:
        """Whether it serves the call, whatever its symbolic dimensions turn out to be."""
        return self.rejected is None and not self.guards


@dataclass(frozen=True, slots=True)
class Selection:
    """What was chosen for a call, why, and among what. ``record`` is what the choice went by, if it went by one;
    ``notes`` tell of records that were passed over."""

    op: str
    chosen: OpImplementation
    reason: str
    candidates: tuple[Candidate, ...]
    record: Match | None = None
    notes: tuple[str, ...] = ()


def get_valid_implementations(call: Call, settings: CompileSettings) -> tuple[Candidate, ...]:
    """The candidates for a call that hold for all its extents, in order of registration."""
    return tuple(c for c in candidates_of(call, settings) if c.valid)


def candidates_of(call: Call, settings: CompileSettings) -> tuple[Candidate, ...]:
    """All that the operator's strategy offers for a call, in order of registration.

    Raises ``SelectionError`` where the operator has no strategy for the target.
    """
    types = [a.type for a in call.args]
    offered = strategy_of(op_of(call), call.attrs, types, call.type, settings.target).candidates()
    return tuple(
        Candidate(made, condition, _verdicts(condition, made, settings.options)) for condition, made in offered
    )


def _verdicts(
    condition: SpecializedCondition | None,
    implementation: OpImplementation,
    options: CodegenOptions,
) -> tuple[Verdict, ...]:
    clauses = () if condition is None else condition.verdicts()
    asked = (
        (KEEPS_ORDER, implementation.keeps_order or not options.is_strict),
        (IS_DIRECT, implementation.direct or not options.is_direct),
    )
    refused = ((what, False) for what, holds in asked if not holds)
    return (*((str(clause), holds) for clause, holds in clauses), *refused)


def select_implementation(call: Call, settings: CompileSettings, refusals: Sequence[Refusal] = ()) -> Selection:
    """The cheapest valid implementation by the records of the call's workload, with the decisions there; where no
    record serves, the valid one of highest priority, among equals that of least cost, then the first registered.

    ``refusals`` are of those that were tried and are illegal for the call. A record that does not fit is passed over,
    with a note. Raises ``SelectionError`` where no implementation is valid; ``ScheduleError`` if one was refused.
    """
    workload = workload_of(call)
    matches = () if workload is None else settings.records.lookup(workload, settings.target)
    candidates = _without(refusals, candidates_of(call, settings))
    valid = [c.implementation for c in candidates if c.valid]
    if not valid:
        raise _none_serves(call, candidates, refusals)
    notes: list[str] = []
    for number, match in enumerate(matches):
        try:
            chosen = _as_recorded(match, candidates, call, settings.target, refusals)
        except LoopwrightError as error:
            notes.append(f"passed over the record of {match}: {error}")
            continue
        reason = _reason_by_record(match, matches[number + 1 :], valid)
        known = _with_records(candidates, matches[number:])
        return Selection(call.op.name, chosen, reason, known, match, tuple(notes))
    best = min(valid, key=lambda i: i.rank)  # the first among equals
    return Selection(call.op.name, best, _reason_by_priority(best, valid), candidates, None, tuple(notes))


def _without(refusals: Sequence[Refusal], candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """The candidates, those that were refused as they are marked as such."""
    errors = {r.implementation: str(r.error) for r in refusals if r.record is None}
    return tuple(replace(c, refused=errors.get(c.implementation.name)) for c in candidates)


def _none_serves(call: Call, candidates: Sequence[Candidate], refusals: Sequence[Refusal]) -> LoopwrightError:
    types = ", ".join(str(a.type) for a in call.args)
    problem = f"no implementation serves {call.op.name}({types}): {_listed(candidates)}"
    if not refusals:
        return SelectionError(problem)
    error = ScheduleError(f"{problem}\n{refusals[-1].implementation}: {refusals[-1].error}")
    error.__cause__ = refusals[-1].error
    return error


def _with_records(candidates: Sequence[Candidate], matches: Sequence[Match]) -> tuple[Candidate, ...]:
    first = {match.record.implementation: match for match in reversed(matches)}
    return tuple(replace(c, recorded=first.get(c.implementation.name)) for c in candidates)


def _as_recorded(
    match: Match, candidates: Sequence[Candidate], call: Call, target: Target, refusals: Sequence[Refusal]
) -> OpImplementation:
    """The implementation of a record, with its decisions. Raises an error that says why where it cannot serve."""
    record = match.record
    for refusal in refusals:
        if refusal.record is record:
            raise refusal.error
    found = next((c for c in candidates if c.implementation.name == record.implementation), None)
    if found is None:
        raise SelectionError(f"{call.op.name} has no such implementation here")
    if not found.valid:
        raise SelectionError(_why_not(found))
    if record.decisions is not None:
        chosen = found.implementation.configured(json.loads(record.decisions))
        if chosen.decided:
            chosen.schedule_alone(call, target)  # which raises an error where there are no such decisions
        return chosen
    if record.trace is not None:
        require_fitting_trace(found.implementation, call, record.trace)
    return found.implementation


def _reason_by_record(match: Match, further: Sequence[Match], valid: Sequence[OpImplementation]) -> str:
    names = {i.name for i in valid}
    others = [m for m in further if m.level is match.level and m.record.implementation in names]
    equals = [m for m in others if m.record.cost == match.record.cost]
    tie = f", the first recorded of {len(equals) + 1} that cost the same" if equals else ""
    cheapest = f", the cheapest of {len(others) + 1} records" if others else ""
    return f"recorded on {match.level}: {seconds_text(match.record.cost)}{cheapest}{tie}"


def _reason_by_priority(best: OpImplementation, valid: Sequence[OpImplementation]) -> str:
    if len(valid) == 1:
        return "the only one"
    alike = [i for i in valid if i.plevel == best.plevel]
    equals = [i for i in alike if i.rank == best.rank]
    cheapest = f", the least cost of {len(alike)}" if len(equals) < len(alike) else ""
    names = ", ".join(i.name for i in equals[1:])
    tie = f", the first registered of {len(equals)} (a tie with {names})" if names else ""
    return f"highest priority {best.plevel} of {len(valid)}{cheapest}{tie}"


def _listed(candidates: Sequence[Candidate]) -> str:
    return "; ".join(f"{c.implementation.name}: {_why_not(c)}" for c in candidates) or "it has none"


def _why_not(candidate: Candidate) -> str:
    if candidate.rejected is not None:
        return candidate.rejected
    return f"holds only where {', '.join(candidate.guards)}"
