"""Depthwise convolutions of 8-bit integers in float32, where a core multiplies bytes no faster than floats.

Products of bytes, and the sums of few of them, are integers that float32 holds exactly: the result is that of integers,
by the schedule of floats, which reads bytes.
"""

from __future__ import annotations

import numpy as np

from .... import te
from ....base.dataclass import dataclass
from ....base.target import Target
from ....graph.types import Type
from ....ir.expr import Axis, Expr
from ....lowering.schedule import Schedule
from ....te.tensor import Tensors
from .attrs import ConvAttrs
from .definition import DefinedStages, Terms, definition
from .depthwise import Depthwise
from .problem import ConvProblem

MOST_TERMS = 2**22 // 255**2
"""Sums of so many products of bytes are exact in float32, with ``MIDDLE`` added as well."""
MIDDLE = np.float32(1.5 * 2**23)
"""Floats of up to 2²² more or less than this are integers, and their bits follow each other as these do."""


def _in_float32(value: Expr) -> Expr:
    return te.cast(value, "float32")


def _finish(total: Expr, _: Axis) -> Expr:
    """The integer that a sum is: conversions of floats that may be beyond int32 cost more."""
    return te.as_bits(total + te.const(float(MIDDLE), "float32"), "int32") - te.const(
        int(MIDDLE.view(np.int32)), "int32"
    )


FLOATS = Terms(_in_float32, lambda value, factor: value * _in_float32(factor), _finish)


@dataclass(frozen=True, slots=True)
class ByteFloats:
    """A depthwise convolution of bytes."""

    problem: ConvProblem

    @property
    def is_exact(self) -> bool:
        """Whether float32 holds all sums."""
        return self.problem.reduction_extent <= MOST_TERMS

    def compute(self, attrs: ConvAttrs, inputs: Tensors, result: Type) -> DefinedStages:
        """The definition, of floats."""
        return definition(attrs, inputs, result, FLOATS)

    def schedule(self, attrs: ConvAttrs, anchor: DefinedStages, outputs: Tensors, target: Target) -> Schedule:
        """The schedule of a depthwise convolution of floats, which are a copy of x."""
        made = Depthwise.of(self.problem, copied=True)
        return made.schedule_rows(attrs, anchor, outputs, target)
