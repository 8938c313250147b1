"""Compiles a fused function by candidates, in a child process."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..artifact.function import CompiledFunction
from ..artifact.function_bytes import to_bytes
from ..base.errors import LoopwrightError, SelectionError
from ..compiler.model.compile_function import compile_function
from ..compiler.model.function_cache import function_key
from ..compiler.selection.choices import choose
from ..compiler.selection.records import TuningRecords
from ..compiler.selection.tuning_record import TuningRecord
from ..compiler.settings import CompileSettings
from ..graph.node import Function
from .outcome import OutcomeKind
from .sandbox import Answer


def compile_candidates(job: Mapping[str, Any]) -> Iterator[Answer]:
    """Answer that it is ready, then for each candidate with its code, or why there is none."""
    try:
        function, settings = pickle.loads(job["graph"])
        known = function_key(function, settings) == job["key"]
    except (LoopwrightError, ImportError, AttributeError):  # an operator, or its attributes
        known = False
    yield {}
    for item in job["items"]:
        if not known:
            detail = "the worker has other operators, strategies or targets registered"
            yield {"kind": OutcomeKind.FOREIGN.value, "detail": detail}
            continue
        try:
            yield _compiled(function, settings, item)
        except LoopwrightError as error:
            yield {"kind": OutcomeKind.REFUSED.value, "detail": _first_line(error)}
        except Exception as error:  # whatever it is, the run goes on
            yield {"kind": OutcomeKind.FAILED.value, "detail": f"{type(error).__name__}: {_first_line(error)}"}


def _compiled(function: Function, settings: CompileSettings, item: Mapping[str, Any] | None) -> Answer:
    if item is not None:
        settings = settings.with_records(TuningRecords([_forced(function, settings, item)]))
    made = compile_function("", function, settings)
    if item is not None and (problem := _why_not_as_asked(made, item["implementation"])) is not None:
        return {"kind": OutcomeKind.REFUSED.value, "detail": problem}
    nest = hashlib.sha256(made.loop_ir.encode()).hexdigest()[:16]
    return {"kind": OutcomeKind.MEASURED.value, "code": _bare_code(made), "nest": nest}


def _bare_code(function: CompiledFunction) -> bytes:
    """A function without the texts that it was made from."""
    return to_bytes(replace(function, loop_ir="", llvm_ir="", source_text=""))


def _forced(function: Function, settings: CompileSettings, item: Mapping[str, Any]) -> TuningRecord:
    """A record that has a candidate chosen, as its own would."""
    choice = choose(function, settings)
    if choice is None:
        raise SelectionError(f"{function.name} has no calls to choose for")
    anchor = choice.calls[choice.anchor]
    decisions = item["decisions"] or None
    return TuningRecord.of(anchor, settings.target, item["implementation"], [1.0], decisions)


def _why_not_as_asked(made: CompiledFunction, implementation: str) -> str | None:
    """Why a function was compiled otherwise, as where a record is passed over; None if it was not."""
    anchor = made.anchor
    if anchor is not None and anchor.implementation == implementation and anchor.reason.startswith("recorded"):
        return None
    told = anchor.notes[0] if anchor is not None and anchor.notes else "another implementation serves it"
    refused = [c.refused for c in anchor.candidates if c.implementation == implementation] if anchor is not None else []
    return next((text.splitlines()[0] for text in refused if text), told)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)[:300]
