"""Which implementations serve the calls of a closed function, and the report of that as plain data.

Made before anything is computed or scheduled, so that a function can be explained without being compiled.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from ...artifact.choice import CandidateReport, Choice, ClauseReport, CostReport
from ...base.dataclass import dataclass
from ...base.errors import SelectionError
from ...base.target import Target
from ...graph.node import Call, Function
from ...graph.printer import attributes_text
from ...graph.types import leaf_types
from ...graph.visit import post_order
from ...ir import expr
from ...ops.definition.registry import OpPattern
from ...ops.definition.strategy import OpImplementation
from ..fusion.fusion_rules import pattern_of
from ..settings import CompileSettings
from .dispatch import Dispatch, DispatchedKernel, dispatch
from .records import Match
from .select import Candidate, Refusal, Selection, select_implementation

_log = logging.getLogger("loopwright.selection")


@dataclass(frozen=True, slots=True, eq=False)
class FunctionChoice:
    """What serves the calls of a function, which are in order of computation. ``anchor`` is the number of the one whose
    schedule the function has; it may need several kernels, each other call has one implementation."""

    calls: tuple[Call, ...]
    selections: tuple[Selection, ...]
    anchor: int
    dispatched: Dispatch

    def implementations(self, kernel: DispatchedKernel) -> tuple[OpImplementation, ...]:
        """The implementations of all calls in one of the anchor's kernels, in order of computation."""
        return tuple(kernel.implementation if k == self.anchor else s.chosen for k, s in enumerate(self.selections))

    def reports(self, note: str | None = None) -> tuple[Choice, ...]:
        """One a call, and one a kernel of the anchor; ``note`` is on what came up when that was scheduled."""
        found: list[Choice] = []
        for number, (call, selection) in enumerate(zip(self.calls, self.selections, strict=True)):
            report = choice_of(call, selection)
            if number != self.anchor:
                found.append(report)
                continue
            notes = report.notes if note is None else (*report.notes, note)
            kernels = zip(self.dispatched.kernels, self.dispatched.reasons, strict=True)
            for at, (kernel, reason) in enumerate(kernels):
                name = kernel.implementation.name
                found.append(replace(report, implementation=name, reason=reason, notes=notes, kernel=at, anchor=True))
        return tuple(found)


def choose(
    function: Function,
    settings: CompileSettings,
    refusals: Mapping[int, Sequence[Refusal]] = MappingProxyType({}),
) -> FunctionChoice | None:
    """The choice for a closed function; None for one without calls, which copies.

    ``refusals`` are of implementations that were tried, by the number of the call. Raises ``SelectionError`` where a
    call has no valid implementation; ``ScheduleError`` if one was refused.
    """
    calls = tuple(node for node in post_order(function.body) if isinstance(node, Call))
    if not calls:
        return None
    selections = tuple(
        select_implementation(call, settings, refusals.get(number, ())) for number, call in enumerate(calls)
    )
    anchor = anchor_number(calls)
    same_bits_over = _same_bits_over(function, calls[anchor], settings.target)
    return FunctionChoice(calls, selections, anchor, dispatch(selections[anchor], same_bits_over))


def _same_bits_over(function: Function, anchor: Call, target: Target) -> tuple[expr.Var, ...]:
    """The dimensions that may not decide in which order the anchor sums: those that count samples, if it sums floats.
    Of BLAS nobody knows the order, so that nothing is promised where a target has it."""
    kinds = (kind for node in (*anchor.args, anchor) for kind in leaf_types(node.type))
    sums = pattern_of(anchor) > OpPattern.INJECTIVE and any(kind.dtype.is_float for kind in kinds)
    return function.batch if sums and not target.libs else ()


def anchor_number(calls: Sequence[Call]) -> int:
    """The last call of the highest pattern: its schedule serves the function.

    Raises ``SelectionError`` where two calls are complex, which fusion never lets share a function.
    """
    patterns = [pattern_of(call) for call in calls]
    anchors = [number for number, pattern in enumerate(patterns) if pattern is max(patterns)]
    if len(anchors) > 1 and max(patterns) >= OpPattern.OUT_ELEMENTWISE_FUSABLE:
        names = " and ".join(calls[number].op.name for number in anchors)
        raise SelectionError(
            f"{names} cannot share a function: each is scheduled by itself, and a function has the schedule of one of "
            "its calls; make one function of each, as lw.compile does"
        )
    return anchors[-1]


def choice_of(call: Call, selection: Selection) -> Choice:
    """The report of a selection."""
    candidates = tuple(_candidate(c) for c in selection.candidates)
    names = selection.op, call_text(call), selection.chosen.name
    return Choice(*names, selection.reason, candidates, selection.notes)


def call_text(call: Call) -> str:
    """``softmax(float32[4, 8], axis=0)``: a call by its types."""
    arguments = [str(a.type) for a in call.args]
    return f"{call.op.name}({', '.join([*arguments, *attributes_text(call.attrs)])})"


def _candidate(candidate: Candidate) -> CandidateReport:
    implementation = candidate.implementation
    clauses = tuple(ClauseReport(text, holds) for text, holds in candidate.verdicts)
    recorded = _cost(candidate.recorded) if candidate.recorded is not None else None
    return CandidateReport(implementation.name, implementation.plevel, clauses, recorded, candidate.refused)


def warn_of_refusals(choices: Iterable[Choice]) -> None:
    """A warning, of one line, for each implementation that was left because its schedule is illegal for the call: it
    runs slower than it could."""
    for choice in choices:
        for candidate in choice.candidates if choice.kernel == 0 else ():
            if candidate.refused is not None:
                _log.warning(
                    "%s: the schedule of %s is refused, and %s serves it: %s",
                    choice.call,
                    candidate.implementation,
                    choice.implementation,
                    candidate.refused.partition("\n")[0],
                )


def _cost(match: Match) -> CostReport:
    record = match.record
    how = record.decisions if record.decisions is not None else "a trace" if record.trace_text else ""
    seconds = record.seconds
    return CostReport(record.cost, min(seconds), max(seconds), len(seconds), str(match.level), how)
