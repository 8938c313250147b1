"""Compiles fused functions by candidates, in a child process."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ..artifact.function import CompiledFunction
from ..artifact.function_bytes import to_bytes
from ..base.errors import LoopwrightError, SelectionError
from ..compiler.model.compile_function import compile_function
from ..compiler.model.function_cache import function_cache, function_key
from ..compiler.selection.choices import choose
from ..compiler.selection.records import TuningRecords
from ..compiler.selection.tuning_record import TuningRecord
from ..compiler.settings import CompileSettings
from ..graph.node import Function
from .outcome import OutcomeKind
from .sandbox import Answer


def compile_candidates(job: Mapping[str, Any]) -> Iterator[Answer]:
    """Answer that it is ready, then for each item with its code, or why there is none."""
    yield {}
    for item in job["items"]:
        found = _known(item["graph"], item["key"])
        if isinstance(found, str):
            yield {"kind": OutcomeKind.FOREIGN.value, "detail": found}
            continue
        try:
            yield _compiled(item["key"], *found, item["candidate"])
        except LoopwrightError as error:
            yield {"kind": OutcomeKind.REFUSED.value, "detail": _first_line(error)}
        except Exception as error:  # whatever it is, the run goes on
            yield {"kind": OutcomeKind.FAILED.value, "detail": f"{type(error).__name__}: {_first_line(error)}"}


@lru_cache(maxsize=1)
def _known(graph: bytes, key: str) -> tuple[Function, CompileSettings] | str:
    """The function and the settings of an item; where they are not what they are to who asks, what differs."""
    try:
        function, settings = pickle.loads(graph)
        if function_key(function, settings) == key:
            return function, settings
    except (LoopwrightError, ImportError, AttributeError) as error:  # an operator, or its attributes
        return f"the worker has other operators registered: {_first_line(error)}"
    return "the worker has other operators, strategies or targets registered"


def _compiled(key: str, function: Function, settings: CompileSettings, candidate: Mapping[str, Any] | None) -> Answer:
    if candidate is None:
        made = _untuned(key, function, settings)
    else:
        uncached = replace(settings, options=replace(settings.options, cache=False))
        forced = TuningRecords([_forced(function, settings, candidate)])
        made = compile_function("", function, uncached.with_records(forced))
        if (problem := _why_not_as_asked(made, candidate["implementation"])) is not None:
            return {"kind": OutcomeKind.REFUSED.value, "detail": problem}
    nest = hashlib.sha256(made.loop_ir.encode()).hexdigest()[:16]
    return {"kind": OutcomeKind.MEASURED.value, "code": _bare_code(made), "nest": nest}


def _untuned(key: str, function: Function, settings: CompileSettings) -> CompiledFunction:
    """A function by the untuned choice, which the cache has where the model was compiled before."""
    found = function_cache.find(key, function, settings.target) if settings.options.cache else None
    return compile_function(key, function, settings) if found is None else found


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
