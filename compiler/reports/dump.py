"""A model as text at each stage of its compilation: graph, computes with schedules, loop nests, MLIR, LLVM IR,
assembly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeVar, get_args

from ...artifact.function import CompiledFunction
from ...artifact.model import CompiledModel
from ...artifact.options import CodegenOptions
from ...base.brief import BriefRepr
from ...base.dataclass import dataclass
from ...base.errors import MlirError, RuntimeArgumentError
from ...base.target import Target
from ...codegen.compile import CompiledCode
from ...codegen.mlir.loops import loops_text
from ...graph.node import Function
from ...graph.structural import graph_hash
from ...lowering.report import nest_text
from ...lowering.schedule import Schedule
from ..model.lower_function import lower_function, schedule_function
from ..model.op_call import packed_choice
from ..model.parts import take_apart
from ..model.units import Unit
from ..selection.choices import warn_of_refusals
from ..settings import CompileSettings
from .linalg import linalg_text

_Found = TypeVar("_Found")
Stage = Literal["graph", "te", "linalg", "loop", "mlir", "llvm", "asm"]
STAGES: Sequence[Stage] = get_args(Stage)
MODEL_STAGES: Sequence[Stage] = ("loop", "llvm", "asm")
"""Those that a compiled model still has."""


_NO_CODE = "a packed function: engines look it up, and there is no code of it"


@dataclass(frozen=True, slots=True, repr=False)
class StageText(BriefRepr):
    """What a stage has of one fused function; of the graph, of all."""

    name: str
    symbol: str
    text: str


def graph_stage(graph: Function) -> list[StageText]:
    """The graph behind all passes, as one text."""
    return [StageText(graph.name, graph.name, str(graph))]


def unit_stage(
    graph: Function,
    stage: Stage,
    settings: CompileSettings,
    wanted: str | None = None,
) -> list[StageText]:
    """A stage of each fused function, or of the one called ``wanted``: what it computes, as the nest of its unscheduled
    computes with the steps of its schedule, or in MLIR; or its loop nest in MLIR."""
    found = _units_named(graph, wanted)
    return [StageText(n, symbol, _unit_text(unit.function, stage, symbol, settings)) for n, symbol, unit in found]


def function_schedules(graph: Function, settings: CompileSettings, wanted: str) -> dict[str, Schedule]:
    """The schedules of the one fused function called ``wanted``, one for each of its kernels, by the implementations.

    Raises ``RuntimeArgumentError`` where no function, or several, are called so, and where it has no schedule.
    """
    found = _units_named(graph, wanted)
    if len(found) > 1:
        symbols = ", ".join(symbol for _, symbol, _ in found)
        raise RuntimeArgumentError(f"several functions are called {wanted!r}; take the symbol of one: {symbols}")
    ((_, _, unit),) = found
    if packed_choice(unit.function) is not None:
        raise RuntimeArgumentError(f"{wanted} is {_NO_CODE}")
    made = schedule_function(unit.function, settings)
    warn_of_refusals(made.choices)
    names = [choice.implementation for choice in made.choices if choice.anchor] or ["a copy"]
    return dict(zip(names, (variant.schedule for variant in made.variants), strict=True))


def model_stage(model: CompiledModel, stage: Stage, wanted: str | None = None) -> list[StageText]:
    """The loop nest, LLVM IR or assembly of each function of a compiled model, or of the one called ``wanted``."""
    texts: dict[str, Callable[[CompiledFunction], str]] = {
        "loop": lambda function: function.loop_ir or _NO_CODE,
        "llvm": lambda function: function.llvm_ir or _NO_CODE,
        "asm": lambda function: _assembly(function, model.target),
    }
    found = _wanted([(function.name, function.symbol, function) for function in model.functions], wanted)
    return [StageText(name, symbol, texts[stage](function)) for name, symbol, function in found]


def check_stage(stage: object) -> None:
    """Raises ``RuntimeArgumentError`` for what is none of ``STAGES``."""
    if not isinstance(stage, str) or stage not in STAGES:
        raise RuntimeArgumentError(f"a stage is one of {', '.join(STAGES)}, found {stage!r}")


def _wanted(functions: Sequence[tuple[str, str, _Found]], wanted: str | None) -> list[tuple[str, str, _Found]]:
    found = [f for f in functions if wanted is None or wanted in f[:2]]
    if not found and wanted is not None:
        names = ", ".join(dict.fromkeys(name for name, _, _ in functions))
        raise RuntimeArgumentError(f"the model has no function {wanted!r}; its functions are {names or 'none'}")
    return found


def _units_named(graph: Function, wanted: str | None) -> list[tuple[str, str, Unit]]:
    """The fused functions of a graph, equal ones once: name, symbol, and the unit."""
    units: dict[str, Unit] = {}
    for unit in take_apart(graph).kernels():
        units.setdefault(f"{unit.function.name}_{graph_hash(unit.function)[:12]}", unit)
    return _wanted([(unit.function.name, symbol, unit) for symbol, unit in units.items()], wanted)


def _unit_text(function: Function, stage: Stage, symbol: str, settings: CompileSettings) -> str:
    packed = packed_choice(function)
    if packed is not None:
        return f"{'#' if stage == 'te' else '//'} calls the packed function {packed.implementation}"
    lowered = lower_function(function, settings, symbol)
    warn_of_refusals(lowered.choices)
    if stage == "te":
        return "\n\n".join(map(_schedule_text, lowered.schedules))
    try:
        if stage == "linalg":
            return linalg_text(lowered.func)
        return loops_text(lowered.func, contract=not settings.options.is_strict and settings.target.has_fma)
    except MlirError as error:
        return f"// {error}"  # the other functions of the model have a form


def _schedule_text(schedule: Schedule) -> str:
    assert schedule.trace.start is not None
    return f"{nest_text(schedule.trace.start)}\n\n{schedule.trace.python() or '# no steps'}"


def _assembly(function: CompiledFunction, target: Target) -> str:
    if function.is_packed:
        return _NO_CODE
    return CompiledCode(b"", function.symbol, (), function.llvm_ir, target, CodegenOptions()).assembly
