"""Blocks of a compiled model as JSON values, and back: what a library file holds of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from ..base.dtype import DType
from .block import (
    Birth,
    BornOutput,
    DerivedExtent,
    Intermediate,
    KernelCall,
    Least,
    ModelStep,
    RunBlock,
    RunStage,
    Slice,
    StepResult,
)
from .extents import Extent, Formula, extent_json
from .function import CompiledFunction
from .plain_data import from_plain


@dataclass(frozen=True, slots=True)
class _Step:
    function: str
    operands: tuple[int, ...]
    origin: tuple[str, ...]
    results: tuple[StepResult, ...]


@dataclass(frozen=True, slots=True)
class _Stage:
    """The fields of a stage, with steps that name their functions."""

    births: tuple[Birth, ...]
    least: tuple[Least, ...]
    extents: tuple[Extent, ...]
    derived: tuple[DerivedExtent, ...]
    intermediates: tuple[Intermediate, ...]
    slices: tuple[Slice, ...]
    outputs: tuple[BornOutput, ...]
    items: tuple[_Step, ...]


def block_json(block: RunBlock) -> list[Any]:
    """The stages as JSON values; functions are named by their symbols."""
    return [_plain(stage) for stage in block.stages]


def block_from_json(data: Any, functions: Mapping[str, CompiledFunction]) -> RunBlock:
    """What ``block_json`` wrote. Raises ``ModelError`` for anything else."""
    stages: tuple[_Stage, ...] = from_plain(tuple[_Stage, ...], data, "stages")
    return RunBlock(tuple(_stage(stage, functions) for stage in stages))


def _stage(stage: _Stage, functions: Mapping[str, CompiledFunction]) -> RunStage:
    held = {field.name: getattr(stage, field.name) for field in fields(RunStage)}
    return RunStage(**(held | {"items": tuple(_step(step, functions) for step in stage.items)}))


def _step(step: _Step, functions: Mapping[str, CompiledFunction]) -> ModelStep:
    return ModelStep(functions[step.function], KernelCall(step.function, step.operands), step.origin, step.results)


def _plain(value: Any) -> Any:
    match value:
        case ModelStep(function, call, origin, results):
            return _plain(_Step(function.symbol, call.operands, origin, results))
        case Formula():
            return extent_json(value)
        case DType():
            return str(value)
        case tuple():
            return [_plain(each) for each in value]
        case _ if is_dataclass(value):
            return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        case _:
            return value
