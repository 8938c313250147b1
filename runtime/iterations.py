"""Which iteration of a loop an error comes from: its native function leaves the number in its workspace."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from ..artifact.block import ModelStep
from ..artifact.function import CompiledFunction
from ..codegen.control.code import NUMBER_OFFSET

LOOP = "loop"
"""The operator whose functions have a number there."""


def iteration_text(step: ModelStep, function: CompiledFunction, frame: Sequence[int]) -> str:
    """``, iteration 3`` for a step that failed in a loop, where ``function`` is its function and ``frame`` is what the
    run has left; nothing for a step that is no loop. Iterations count from 0."""
    if not frame or not function.calls or function.choices[0].op != LOOP:
        return ""
    workspace = frame[step.operands[len(step.operands) - len(function.dims) - 1]]
    return f", iteration {ctypes.c_int64.from_address(workspace + NUMBER_OFFSET).value}"
