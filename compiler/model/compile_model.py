"""Compiles a graph to a model: passes, fusion, one native function a group, the arena, and the entry point."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...artifact.model import CompiledFunction, CompiledModel, KernelCall, ModelStep
from ...artifact.options import arithmetic_of
from ...base.errors import RuntimeArgumentError
from ...base.granted_cpus import granted_cpus
from ...codegen.entry import compile_entry
from ...codegen.module import symbol_name
from ...graph.node import Function
from ..passes.constraints import least_extents
from ..passes.fold_constants import Evaluate
from ..passes.graph_passes import run_graph_passes
from ..selection.choices import warn_of_refusals
from ..settings import CompileSettings
from ..symbols import Symbol, checked_extents, dimension_names, with_batch_size
from .alternatives import alternatives_of, as_alternative
from .placement import Placement, place_values, step_result, tensor_spec
from .progress import Progress, progress_shown
from .units import Unit, Value, type_of, units_of
from .views import View, find_views
from .workers import Job, Workers, compile_all

_log = logging.getLogger("loopwright.compile_engine")


@dataclass(frozen=True, slots=True)
class _Parts:
    """A graph as what is compiled one by one, what of it a run gives, and the values that lie in others."""

    graph: Function
    units: Sequence[Unit]
    results: Sequence[Value]
    views: Mapping[Value, View]


@dataclass(frozen=True, slots=True)
class _Work:
    """What is compiled: ``keys`` of the units, and of other implementations of the functions of these keys."""

    jobs: Mapping[str, Job]
    keys: Sequence[str]
    alternatives: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class _Compiled:
    """The function of each unit; and by symbol the other implementations of it."""

    functions: Sequence[CompiledFunction]
    alternatives: Mapping[str, tuple[CompiledFunction, ...]]


def compile_model(
    function: Function,
    settings: CompileSettings,
    jobs: int | None = None,
    progress: Progress | bool | None = False,
    evaluate: Evaluate | None = None,
) -> CompiledModel:
    """Compile a graph function; each run chooses the dimensions that are symbolic.

    ``jobs`` is the number of processes (default: one a core). ``progress`` is as for ``progress_shown``, which counts
    functions. ``evaluate`` runs what depends on constants alone; without it that is computed at each run. Raises
    ``ModelError`` for dimensions that the inputs do not tell or operators do not take, ``RuntimeArgumentError`` for
    ``jobs`` that are no positive number.
    """
    count = _job_count(jobs)
    name, output_names = function.name, function.output_names
    handed_on = [function]  # not kept: weights that a pass has made others of need their memory no longer
    del function
    with progress_shown(f"compiling {name}", progress) as advance, Workers(count) as workers:
        workers.start_ahead(handed_on[0])
        graph = run_graph_passes(handed_on.pop(), settings, evaluate)
        units, results = units_of(graph, settings.unfused)
        units, views = find_views(units, results)
        parts = _Parts(graph, units, results, views)
        compiled = _compile(_work_of(parts.units, settings), workers, advance)
    names = output_names or tuple(f"output{k}" for k in range(len(results)))
    return _assemble(name, names, parts, compiled, settings)


def _assemble(
    name: str,
    output_names: Sequence[str],
    parts: _Parts,
    compiled: _Compiled,
    settings: CompileSettings,
) -> CompiledModel:
    """The steps on values whose slots and memory are planned, and the entry that calls them."""
    graph, options = parts.graph, settings.options
    dims = dimension_names(graph.params)
    plan = place_values(graph, parts.units, parts.results, parts.views, dims)
    steps = [_step(unit, code, plan, dims) for unit, code in zip(parts.units, compiled.functions, strict=True)]
    entry = compile_entry(symbol_name(f"{name}_run"), [s.call for s in steps], settings.target, options)
    return CompiledModel(
        name=name,
        target=settings.target,
        dims=tuple(dims.values()),
        derived=plan.derived,
        least=least_extents(graph, dims),
        extents=checked_extents(graph, dims),
        inputs=tuple(tensor_spec(p.name, with_batch_size(p.type, graph), dims) for p in graph.params),
        outputs=tuple(
            tensor_spec(name, with_batch_size(type_of(value), graph), dims)
            for name, value in zip(output_names, parts.results, strict=True)
        ),
        constants=plan.constants,
        intermediates=plan.intermediates,
        slices=plan.slices,
        steps=tuple(steps),
        entry=entry.entry,
        entry_object=entry.object,
        entry_llvm_ir=entry.llvm_ir,
        alternatives=compiled.alternatives,
        precision=options.precision,
        arithmetic=arithmetic_of(options.precision, options.arithmetic),
    )


def _work_of(units: Sequence[Unit], settings: CompileSettings) -> _Work:
    """Equal functions are compiled once."""
    jobs: dict[str, Job] = {}
    keys = []
    for unit in units:
        job = Job(unit.function, settings)
        keys.append(key := job.key)
        jobs.setdefault(key, job)
    others: dict[str, tuple[str, ...]] = {}
    for key, job in list(jobs.items()) if settings.alternatives else ():
        forced = [Job(job.function, made_so) for made_so in alternatives_of(job.function, settings)]
        found = {other.key: other for other in forced}
        if found:
            jobs.update(found)
            others[key] = tuple(found)
    return _Work(jobs, keys, others)


def _compile(work: _Work, workers: Workers, advance: Progress) -> _Compiled:
    done: list[str] = []

    def note(name: str) -> None:
        done.append(name)
        advance(len(done), len(work.jobs), name)

    compiled = compile_all(work.jobs, workers, note)
    _log_choices(compiled[key] for key in dict.fromkeys(work.keys))
    for key in dict.fromkeys(other for others in work.alternatives.values() for other in others):
        warn_of_refusals(compiled[key].choices)
    alternatives = {
        compiled[key].symbol: tuple(
            as_alternative(compiled[other])
            for other in others
            if _implementation(compiled[other]) != _implementation(compiled[key])  # its own was refused
        )
        for key, others in work.alternatives.items()
    }
    return _Compiled([compiled[key] for key in work.keys], alternatives)


def _log_choices(functions: Iterable[CompiledFunction]) -> None:
    """A line a call, here where the user listens: functions may come from other processes, or from the cache."""
    for function in functions:
        warn_of_refusals(function.choices)
        for choice in function.choices:
            _log.info("%s: %s: %s, %s", function.name, choice.call, choice.implementation, choice.reason)


def _implementation(function: CompiledFunction) -> str | None:
    """The one whose schedule a function has."""
    return next((choice.implementation for choice in function.choices if choice.anchor), None)


def _job_count(jobs: object) -> int:
    if jobs is None:
        return granted_cpus()
    if not isinstance(jobs, int) or isinstance(jobs, bool) or jobs < 1:
        raise RuntimeArgumentError(f"jobs should be a whole number of processes, at least 1, found {jobs!r}")
    return jobs


def _step(unit: Unit, compiled: CompiledFunction, plan: Placement, names: Mapping[Symbol, str]) -> ModelStep:
    values = (plan.slots[value] for value in (*unit.inputs, *unit.outputs))
    dims = (plan.dims[unit.symbols[name]] for name in compiled.dims)
    results = (
        step_result(imported, type_of(unit.outputs[number]), plan.slots[unit.outputs[number]], names)
        for number, imported in unit.imported.items()
    )
    return ModelStep(compiled, KernelCall(compiled.symbol, (*values, *dims)), unit.origin, tuple(results))
