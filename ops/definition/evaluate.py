"""The value of a call whose arguments are known: its compute, whatever the operator, run by the interpreter.

That is the definition itself, and slow: for small values, such as shapes that a model computes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ... import te
from ...base.dtype import dtype
from ...base.errors import LoopwrightError
from ...base.target import Target
from ...graph.node import Call, Constant
from ...graph.types import TensorType
from ...ir.interpret import interpret
from ...lowering.pipeline import lower
from ...lowering.schedule import create_schedule
from .implementation import OpImplementation, outputs_of
from .registry import Op
from .strategy import strategy_of

_TARGET = Target("x86_64-unknown-linux-gnu", "x86-64")
"""One without features: what is computed does not depend on it."""


def evaluate_call(call: Call) -> npt.NDArray[Any] | None:
    """The value of a call of constants whose result is one tensor of known shape; None where the operator has no
    compute that tells, such as a function that is looked up when a model is loaded."""
    kind, args = call.type, [a for a in call.args if isinstance(a, Constant)]
    implementation = definition_of(call)
    if implementation is None or not isinstance(kind, TensorType) or kind.static_shape is None:
        return None
    tensors = tuple(te.placeholder(a.value.shape, dtype(a.value.dtype), name=f"x{k}") for k, a in enumerate(args))
    result = np.empty(kind.static_shape, kind.dtype.to_numpy())
    try:
        (output,) = outputs_of(implementation.compute(call.attrs, tensors, kind))
        interpret(lower(create_schedule(output), [*tensors, output]))(*(a.value for a in args), result)
    except LoopwrightError:  # compilation meets it too, and tells of it
        return None
    return result


def definition_of(call: Call) -> OpImplementation | None:
    """The first implementation that serves a call unconditionally."""
    if not isinstance(call.op, Op):
        return None
    try:
        offered = strategy_of(call.op, call.attrs, [a.type for a in call.args], call.type, _TARGET)
    except LoopwrightError:
        return None
    found = (implementation for condition, implementation in offered.candidates() if condition is None)
    return next(found, None)
