"""Tuning records as users make them: of a call, with a schedule's trace.

``records.py`` looks records up, and selection goes by what it finds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Self

from ...artifact.records.record import Record, own_versions
from ...artifact.records.workload import TargetKey, Workload, canonical_json
from ...base.errors import LoopwrightError, RecordError
from ...base.target import Target
from ...codegen.host import resolve_target
from ...graph.node import Call
from ...lowering.decisions import DecisionValue
from ...lowering.trace import Trace
from .workload import workload_of


class TuningRecord(Record):
    """Costs of one implementation of a call: see ``TuningRecord.of``."""

    __slots__ = ()

    @classmethod
    def of(
        cls,
        call: Call,
        target: str | Target | None,
        implementation: str,
        seconds: Sequence[float],
        decisions: Mapping[str, DecisionValue] | None = None,
        trace: Trace | None = None,
        time: str | None = None,
        threads: int | None = None,
    ) -> Self:
        """The record of a call, whose dimensions must be numbers. ``decisions``, by name, or ``trace`` say how the
        implementation was made to measure it, ``threads`` how many a run used. ``time`` is for people: when it was
        measured.

        Raises ``RecordError`` for what no record can hold.
        """
        _check_given(call, implementation, trace, threads)
        workload = workload_of(call)
        if workload is None:
            raise RecordError(f"a record is of known shapes; {call.op.name} is called with {_types(call)}")
        decided = None if decisions is None else _decisions_text(decisions)
        return cls.of_workload(workload, resolve_target(target), implementation, seconds, decided, trace, time, threads)

    @classmethod
    def of_workload(
        cls,
        workload: Workload,
        target: Target,
        implementation: str,
        seconds: Sequence[float],
        decisions: str | None = None,
        trace: Trace | None = None,
        time: str | None = None,
        threads: int | None = None,
    ) -> Self:
        """The record of a workload that need not be a call's: of a schedule of tensor expressions, or of the rewrite of
        a call, whose name then stands for an implementation. Raises ``RecordError`` as ``of`` does."""
        made = cls(
            workload,
            TargetKey.of(target),
            implementation,
            _numbers(seconds),
            decisions,
            None if trace is None else canonical_json(json.loads(trace.to_json())),
            threads,
            own_versions(),
            time,
        )
        made.check()
        return made

    @property
    def trace(self) -> Trace | None:
        """The schedule by which it was measured, if it has one of its own."""
        return None if self.trace_text is None else Trace.from_json(self.trace_text)

    def check(self) -> None:
        super().check()
        try:
            _ = self.trace
        except LoopwrightError as error:
            raise RecordError(f"its trace is none: {error}") from error


def _check_given(call: object, implementation: object, trace: object, threads: object) -> None:
    if not isinstance(call, Call):
        raise RecordError(f"a record is of a call of an operator, as lw.nn.relu(x) makes it, found {call!r}")
    if not isinstance(implementation, str):
        raise RecordError(f"a record has the name of an implementation, found {implementation!r}")
    if not isinstance(trace, Trace | None):
        raise RecordError(f"a record has a trace as s.trace or lw.Trace.from_json(text) gives it, found {trace!r}")
    if not isinstance(threads, int | None) or isinstance(threads, bool):
        raise RecordError(f"a record has a number of threads, found {threads!r}")


def _numbers(seconds: Sequence[float]) -> tuple[float, ...]:
    try:
        return tuple(map(float, seconds))
    except (TypeError, ValueError, OverflowError):
        raise RecordError(f"the costs of a record are a list of seconds, found {seconds!r}") from None


def _types(call: Call) -> str:
    return ", ".join(str(argument.type) for argument in call.args)


def _decisions_text(decisions: Mapping[str, DecisionValue]) -> str:
    given: object = decisions
    if not isinstance(given, Mapping) or not all(
        isinstance(name, str) and type(value) in (bool, int, str) for name, value in given.items()
    ):
        raise RecordError(f"decisions are integers, bools and strings by their names, found {given!r}")
    return canonical_json(dict(given))
