"""Errors of runs that refuse a stage: for a number that they have computed, or for memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn, assert_never

from ..artifact.block import RunStage
from ..artifact.extents import Extent, demand, dimensions_in, evaluate
from ..artifact.model import CompiledModel
from ..artifact.stage_refusals import (
    NegativeExtent,
    NoExtent,
    NoOutputMemory,
    NoStageMemory,
    TooManyBytes,
    TooSmallExtent,
    refusals_of,
)
from ..base.errors import InternalError, OutOfMemoryError, RuntimeArgumentError


def refuse_stage(
    model: CompiledModel, stage: RunStage, number: int, frame: Sequence[int], cause: BaseException | None
) -> NoReturn:
    """Raise the error for refusal ``number`` of a stage, of a run that has left ``frame``; ``cause`` is why memory was
    refused, if somebody said so."""
    refusals = refusals_of(stage)
    if not 0 <= number < len(refusals):
        raise InternalError(f"{model.name} returned the unknown code {number} of a stage")
    if cause is not None:
        raise cause
    dims = model.dims_in(frame)
    match refusals[number]:
        case NoExtent(birth, dim):
            raise RuntimeArgumentError(
                f"{model.name}: {birth} should be 0 or more, and no more than 2**47, found {dims[dim.name]}"
            )
        case TooSmallExtent(least):
            raise RuntimeArgumentError(f"{model.name}: {least.demand}, found {dims[least.dim]}")
        case NegativeExtent(extent):
            wanted = demand(extent) or f"the extent {extent} should not be negative"
            raise RuntimeArgumentError(f"{model.name}: {wanted}, found {_shown(extent, dims)}")
        case TooManyBytes():
            found = ", ".join(f"{name} = {number}" for name, number in dims.items())
            raise RuntimeArgumentError(f"{model.name}: for {found} it needs more than 2**47 bytes of memory")
        case NoStageMemory():
            raise OutOfMemoryError(f"{model.name}: there is no memory for intermediates")
        case NoOutputMemory(output):
            spec = model.outputs[output.number]
            shape = tuple(evaluate(extent, dims) for extent in spec.shape)
            if frame[model.layout.output(output.number)] != 0:
                raise RuntimeArgumentError(
                    f"{model.name}: the buffer of output {spec.name} is too small for its shape, which is {shape}"
                )
            raise OutOfMemoryError(f"{model.name}: there is no memory for output {spec.name} of shape {shape}")
        case refusal:
            assert_never(refusal)


def _shown(extent: Extent, dims: dict[str, int]) -> str:
    return ", ".join(f"{name} = {dims[name]}" for name in dimensions_in(extent))
