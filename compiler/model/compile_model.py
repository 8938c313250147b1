"""Compiles a graph to a model: passes, fusion, one native function a group, the arena, and the entry point."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from ...artifact.block import Least, ModelStep, RunBlock, RunStage
from ...artifact.extents import Extent, dimensions_in
from ...artifact.function import CompiledFunction
from ...artifact.model import CompiledModel
from ...artifact.options import arithmetic_of
from ...base.dataclass import dataclass
from ...base.errors import RuntimeArgumentError
from ...base.granted_cpus import granted_cpus
from ...base.timing import timed
from ...codegen.entry import compile_entry
from ...codegen.module import symbol_name
from ...graph.node import Call, Function
from ...graph.visit import nested_order
from ...ops.families.segments import SegmentAttrs
from ..layout.expected_extents import expected_by_name
from ..passes.constraints import least_extents
from ..passes.fold_constants import Evaluate
from ..passes.graph_passes import run_graph_passes
from ..selection.choices import warn_of_refusals
from ..settings import CompileSettings
from ..symbols import Symbol, bounds_of, checked_extents, dimension_names, with_batch_size, with_born_names
from .alternatives import alternatives_of, as_alternative
from .constant_arrays import Array, ConstantArrays
from .control import ControlCompiler
from .parts import Parts, take_apart
from .placement import Placement, place_values, step_result, tensor_spec
from .progress import Progress, progress_shown
from .shared_code import share_code
from .units import Unit, type_of, units_of
from .workers import Job, Workers, compile_all, log_counts

_log = logging.getLogger("loopwright.compile_engine")
Keep: TypeAlias = Callable[[str, Iterable[Array]], None]
"""Called with the name of a model and the arrays of its constants, which come as they are made."""


@dataclass(frozen=True, slots=True)
class _Work:
    """What is compiled: ``keys`` of the units, and of other implementations of the functions of these keys."""

    jobs: Mapping[str, Job]
    keys: Sequence[str]
    alternatives: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class _Compiled:
    """The function of each kernel; and by symbol the other implementations of it."""

    functions: Sequence[CompiledFunction]
    alternatives: Mapping[str, tuple[CompiledFunction, ...]]


def compile_model(
    function: Function,
    settings: CompileSettings,
    jobs: int | None = None,
    progress: Progress | bool | None = False,
    evaluate: Evaluate | None = None,
    keep: Keep | None = None,
) -> CompiledModel:
    """Compile a graph function; each run chooses the dimensions that are symbolic.

    ``jobs`` is the number of processes (default: one a core). ``progress`` is as for ``progress_shown``, which counts
    functions. ``evaluate`` runs what depends on constants alone; without it that is computed at each run. ``keep`` is
    given the arrays of constants before there is a model that has them. Raises ``ModelError`` for dimensions that the
    inputs do not tell or operators do not take, ``RuntimeArgumentError`` for ``jobs`` that are no positive number.
    """
    count = job_count(jobs)
    name, output_names, forms = function.name, function.output_names, function.forms
    grouped = function.grouped_inputs, function.grouped_outputs
    strings = function.string_inputs
    handed_on = [function]  # not kept: weights that a pass has made others of need their memory no longer
    del function
    with progress_shown(f"compiling {name}", progress) as advance, Workers(count) as workers:
        workers.start_ahead(handed_on[0])
        graph = timed(run_graph_passes, handed_on.pop(), settings, evaluate)
        with ConstantArrays(graph) as arrays:
            if keep is not None:
                keep(name, arrays)
            parts = timed(share_code, take_apart(graph, settings.unfused), settings)
            work = timed(_work_of, list(parts.kernels()), settings)
            compiled = timed(_compile, work, workers, advance)
            names = output_names or tuple(f"output{k}" for k in range(len(parts.results)))
            model = timed(_assemble, name, names, parts, compiled, arrays, settings)
    return replace(model, forms=forms, grouped_inputs=grouped[0], grouped_outputs=grouped[1], string_inputs=strings)


def tell_of(model: CompiledModel, jobs: int | None, progress: Progress | bool | None) -> None:
    """Say of a model that was compiled before what ``compile_model`` says, and refuse what that refuses."""
    job_count(jobs)
    with progress_shown(f"compiling {model.name}", progress) as advance:
        for number, function in enumerate(model.functions, 1):
            advance(number, len(model.functions), function.name)
    _log_choices(model.functions)
    for others in model.alternatives.values():
        for function in others:
            warn_of_refusals(function.choices)
    log_counts(len(model.functions), 0)


def _assemble(
    name: str,
    output_names: Sequence[str],
    parts: Parts,
    compiled: _Compiled,
    arrays: ConstantArrays,
    settings: CompileSettings,
) -> CompiledModel:
    """The steps on values whose slots and memory are planned, and the entry that calls them."""
    graph, options = parts.graph, settings.options
    names = with_born_names(dimension_names(graph.params), graph)
    plan = timed(place_values, graph, parts.ordered, parts.results, parts.views, names)
    kernels = dict(zip(parts.kernels(), compiled.functions, strict=True))
    control = ControlCompiler(kernels, settings, segments_of(graph))
    functions = [control.function_of(unit, parts) for unit in units_of(parts.ordered)]
    body = _body(graph, plan, iter(functions), names)
    entry = timed(compile_entry, symbol_name(f"{name}_run"), body, plan.layout, settings.target, options)
    return CompiledModel(
        name=name,
        target=settings.target,
        dims=plan.layout.dims,
        inputs=tuple(tensor_spec(p.name, with_batch_size(p.type, graph), names) for p in graph.params),
        outputs=tuple(
            tensor_spec(name, with_batch_size(type_of(value), graph), names)
            for name, value in zip(output_names, parts.results, strict=True)
        ),
        constants=timed(arrays.finished, plan.constants),
        functions=tuple({f.symbol: f for f in (*control.inner.values(), *functions)}.values()),
        body=body,
        entry=entry.entry,
        entry_object=entry.object,
        entry_llvm_ir=entry.llvm_ir,
        alternatives=compiled.alternatives,
        precision=options.precision,
        arithmetic=arithmetic_of(options.precision, options.arithmetic),
        bounds=bounds_of(names),
        states=graph.states,
        expected=expected_by_name(graph, settings, names),
        repeated=tuple(sorted(graph.repeated)),
        segments=control.segments,
    )


def segments_of(graph: Function) -> int:
    """How many segments a graph has, the numbers of which are from 0."""
    attrs = (node.attrs for node in nested_order(graph.body) if isinstance(node, Call))
    return max((each.number + 1 for each in attrs if isinstance(each, SegmentAttrs)), default=0)


BOUNDS = "the bounds that it was compiled for"
"""Why a dimension is at least so much, though no operator asks for it."""


def _body(
    graph: Function, plan: Placement, functions: Iterator[CompiledFunction], names: Mapping[Symbol, str]
) -> RunBlock:
    """The stages, each with what it checks; ``functions`` are those of the units, in order."""
    least: dict[int, list[Least]] = {}
    bounds = bounds_of(names)
    for each in (*(Least(b.dim, b.low, BOUNDS) for b in bounds if b.low), *least_extents(graph, names)):
        least.setdefault(plan.stage_of([each.dim]), []).append(each)
    checked: dict[int, list[Extent]] = {}
    for check in (check for each in bounds for check in each.checks):
        checked.setdefault(plan.stage_of(dimensions_in(check)), []).append(check)
    for extent in checked_extents(graph, names):
        checked.setdefault(plan.stage_of(dimensions_in(extent)), []).append(extent)
    return RunBlock(
        tuple(
            RunStage(
                births=tuple(stage.born),
                least=tuple(least.get(number, ())),
                extents=tuple(checked.get(number, ())),
                derived=tuple(stage.derived),
                intermediates=tuple(stage.intermediates),
                slices=tuple(stage.slices),
                outputs=tuple(stage.outputs),
                steps=tuple(_step(unit, next(functions), plan, names) for unit in stage.units),
            )
            for number, stage in enumerate(plan.stages)
        )
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


def job_count(jobs: object) -> int:
    """How many processes compile. Raises ``RuntimeArgumentError`` for what is no positive number."""
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
    return ModelStep(compiled.symbol, (*values, *dims), unit.origin, tuple(results))
