"""Blocks of a compiled model as JSON values, and back: what a library file holds of them."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from ..base.dtype import DType
from .block import RunBlock, RunStage
from .extents import Formula, extent_json
from .plain_data import from_plain


def block_json(block: RunBlock) -> list[Any]:
    """The stages as JSON values."""
    return [_plain(stage) for stage in block.stages]


def block_from_json(data: Any) -> RunBlock:
    """The stages that ``block_json`` wrote. Raises ``ModelError`` for anything else."""
    stages: tuple[RunStage, ...] = from_plain(tuple[RunStage, ...], data, "stages")
    return RunBlock(stages)


def _plain(value: Any) -> Any:
    match value:
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
