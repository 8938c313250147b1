"""Jobs: what workers are given, as plain data, and what they refuse.

A job holds numbers, texts and bytes: the graph of a function, object code, a library. No function of Python is in it.
Workers are of the same version as who asks, and measure on the same cpu: what another one would say is no answer.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..artifact.cache_key import sources_digest
from ..artifact.options import CodegenOptions
from ..artifact.records.record import own_versions
from ..base.child_python import python_command
from ..base.target import Target
from ..codegen.features import is_level
from ..codegen.host import host_target
from ..compiler.model.function_cache import SOURCES, function_key
from ..compiler.selection.records import NO_RECORDS
from ..compiler.settings import CompileSettings
from ..graph.node import Function
from ..te.tensor import Tensor
from .candidate import TuningCandidate
from .outcome import OutcomeKind
from .paired_rounds import RoundLimits
from .sandbox import START_SECONDS, Answer, in_children

TuningJob: TypeAlias = dict[str, Any]
Reference: TypeAlias = tuple[bytes, int, int]
"""The untuned code of a function, the number of its inputs, and how many calls count."""
COMPILE_SECONDS = 60.0
"""What compiling one candidate may take."""
MEASURE_SECONDS = 20.0
"""What measuring one candidate may take, beside calls of the untuned code."""


def compile_job(
    function: Function, settings: CompileSettings, candidates: Sequence[TuningCandidate | None], seconds: float
) -> TuningJob:
    """Compile a closed function by each candidate; None is the untuned choice. An answer has the ``code``."""
    asked = [None if c is None else {"implementation": c.implementation, "decisions": c.decided} for c in candidates]
    function_data = _function_data(function, settings)
    return _compiling([{**function_data, "candidate": each} for each in asked], seconds)


def untuned_job(functions: Sequence[Function], settings: CompileSettings, seconds: float) -> TuningJob:
    """Compile closed functions, each by the untuned choice. An answer has the ``code``."""
    return _compiling([{**_function_data(each, settings), "candidate": None} for each in functions], seconds)


def _compiling(items: Sequence[Mapping[str, Any]], seconds: float) -> TuningJob:
    return {"kind": "compile", "versions": versions(), "seconds": seconds, "items": list(items)}


def _function_data(function: Function, settings: CompileSettings) -> Mapping[str, Any]:
    untuned = settings.with_records(NO_RECORDS)
    return {"key": function_key(function, untuned), "graph": pickle.dumps((function, untuned))}


def traces_job(
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    target: Target,
    traces: Sequence[str],
    seconds: float,
) -> TuningJob:
    """Compile tensor expressions by the traces of schedules, each as JSON. An answer has the ``code``."""
    computes = pickle.dumps((tuple(inputs), tuple(outputs), target, CodegenOptions(cache=False)))
    return {"kind": "traces", "versions": versions(), "seconds": seconds, "items": list(traces), "computes": computes}


def measure_job(
    target: Target,
    threads: int,
    references: Sequence[Reference],
    candidates: Sequence[Sequence[bytes]],
    limits: RoundLimits,
    seed: int,
    direct: bool,
    seconds: float,
) -> TuningJob:
    """Measure candidates, each the code of several functions, beside the untuned code of these. ``direct`` arithmetic
    lets outliers reach no further than the definition does. An answer has ratios and seconds."""
    return {
        "kind": "measure",
        "versions": versions(),
        "machine": machine_of(target),
        "seconds": seconds,
        "target": str(target),
        "threads": threads,
        "references": [list(reference) for reference in references],
        "items": [list(codes) for codes in candidates],
        "limits": [limits.least, limits.most, limits.wide],
        "seed": seed,
        "direct": direct,
    }


def time_job(
    target: Target, threads: int, tasks: Sequence[Sequence[Reference]], seed: int, seconds: float
) -> TuningJob:
    """Measure untuned code by itself, of each task several functions. An answer has the seconds of a call of each."""
    return {
        "kind": "time",
        "versions": versions(),
        "machine": machine_of(target),
        "seconds": seconds,
        "target": str(target),
        "threads": threads,
        "items": [[list(reference) for reference in references] for references in tasks],
        "seed": seed,
    }


def model_job(
    target: Target,
    threads: int,
    libraries: tuple[str | bytes, str | bytes],
    inputs: Mapping[str, npt.NDArray[Any]],
    limits: RoundLimits,
    seed: int,
    seconds: float,
) -> TuningJob:
    """Measure a whole model tuned beside the same untuned: ``libraries`` are the untuned and the tuned one, each a path
    or what is in its file. ``inputs`` are arrays for some of the inputs; the others are random."""
    return {
        "kind": "model",
        "versions": versions(),
        "machine": machine_of(target),
        "seconds": seconds,
        "threads": threads,
        "libraries": list(libraries),
        "inputs": {name: np.asarray(array) for name, array in inputs.items()},
        "items": [None],
        "limits": [limits.least, limits.most, limits.wide],
        "seed": seed,
    }


def versions() -> dict[str, str]:
    """What a worker must have too: the same loopwright, by its sources, and the same LLVM."""
    return {**dict(own_versions()), "sources": sources_digest((*SOURCES, "runtime", "tuning"))[:16]}


def machine_of(target: Target) -> str:
    """The cpu on which code for a target is measured: the one it names, or this one where it names none in
    particular."""
    host = host_target()
    return host.cpu if is_level(target.triple, target.cpu) or target.cpu.startswith("generic") else target.cpu


def refusal(job: Mapping[str, Any]) -> str | None:
    """Why this process does not do a job; None if it does."""
    asked, own = job["versions"], versions()
    differing = [f"{name} {own.get(name)} instead of {asked[name]}" for name in asked if own.get(name) != asked[name]]
    if differing:
        return f"the worker has {', '.join(differing)}"
    machine = job.get("machine")
    if machine is not None and machine != (here := host_target().cpu):
        return f"the worker's cpu is {here}, and the measurements are for {machine}"
    return None


def run_job(job: TuningJob, stop: threading.Event | None = None) -> Answer:
    """Do a job in child processes of this one, and give the answers, one an item, whatever becomes of candidates. This
    is what workers run. ``stop`` calls it off."""
    problem = refusal(job)
    cpu = host_target().cpu
    if problem is not None:
        foreign = {"kind": OutcomeKind.FOREIGN.value, "detail": problem, "cpu": cpu}
        return {"ready": {}, "answers": [foreign] * len(job["items"])}
    command = python_command(f"from {__package__}.child import main\nmain()")
    threads = {"LOOPWRIGHT_NUM_THREADS": str(job["threads"])} if "threads" in job else {}
    found = in_children(command, job, threads, stop, START_SECONDS + job["seconds"])
    answers = [{**answer, "cpu": cpu} for answer in found["answers"]]
    return {"ready": found["ready"], "answers": answers}
