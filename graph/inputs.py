"""``lw.var`` and ``lw.const``: what graphs start from, of shapes, dtypes and values as users write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.dtype import DType
from ..ir.expr import ExprLike
from .node import Constant, Var
from .types import tensor_type


def var(name: str, shape: Sequence[ExprLike], dtype: str | DType | np.dtype[Any] | type[Any] = "float32") -> Var:
    """An input of a graph function; extents are numbers or ``te.var`` dimensions.

    Graphs are made of it by ``lw.nn``, Python's operators and numpy's functions: ``np.tanh(x @ w) + 1``.
    Raises ``ExpressionError`` for an unknown dtype, ``TypeInferenceError`` for a negative extent.
    """
    return Var(name, tensor_type(shape, dtype))


def const(value: object, name: str = "") -> Constant:
    """A constant of a graph: anything that numpy makes an array of. A contiguous array is not copied: leave it be.

    Raises ``ExpressionError`` for an array of anything but numbers and bools.
    """
    return Constant(np.asarray(value), name)
