"""Functions by other implementations than the chosen one, which engines measure against it (``runtime/tactics``).

These are all that are valid for a function's anchor; what is fused with that stays. Another operator, such as a product
of packed constants instead of a plain one, is no alternative.
"""

from __future__ import annotations

from dataclasses import replace

from ...artifact.choice import Choice
from ...artifact.function import CompiledFunction
from ...graph.node import Function
from ..selection.choices import choose
from ..selection.records import TuningRecords
from ..selection.tuning_record import TuningRecord
from ..selection.workload import workload_of, workloads_of
from ..settings import CompileSettings
from .op_call import packed_choice

REASON = "an alternative, which engines may measure"


def alternatives_of(function: Function, settings: CompileSettings) -> tuple[CompileSettings, ...]:
    """The settings whose records have a function compiled by another implementation, for each of these; none for
    symbolic shapes, which go by priority."""
    if packed_choice(function) is not None:
        return ()
    choice = choose(function, settings)
    if choice is None:
        return ()
    anchor, selection = choice.calls[choice.anchor], choice.selections[choice.anchor]
    workload = workload_of(anchor)
    if workload is None:
        return ()
    others = [r for r in settings.records.about(workloads_of(function)) if r.workload != workload]
    valid = dict.fromkeys(c.implementation.name for c in selection.candidates if c.valid)
    return tuple(
        settings.with_records(TuningRecords([*others, TuningRecord.of(anchor, settings.target, name, [1.0])]))
        for name in valid
        if name != selection.chosen.name
    )


def as_alternative(function: CompiledFunction) -> CompiledFunction:
    """A function that was compiled by such records, which were made up: it tells of none."""
    return replace(function, choices=tuple(_told(c) if c.anchor else c for c in function.choices))


def _told(choice: Choice) -> Choice:
    candidates = tuple(replace(candidate, recorded=None) for candidate in choice.candidates)
    return replace(choice, reason=REASON, candidates=candidates)
