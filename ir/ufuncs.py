"""Functions of numpy on expressions: ``np.exp(A[i])`` is ``te.exp(A[i])``, and ``np.float32(2) * A[i]`` a product."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .errors import ExpressionError
from .expr import Expr, maximum, minimum
from .intrinsics import call

_OPERATORS: dict[np.ufunc, Callable[..., Any]] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.divide: operator.truediv,
    np.floor_divide: operator.floordiv,
    np.remainder: operator.mod,
    np.negative: operator.neg,
    np.bitwise_and: operator.and_,
    np.bitwise_or: operator.or_,
    np.bitwise_xor: operator.xor,
    np.invert: operator.invert,
    np.left_shift: operator.lshift,
    np.right_shift: operator.rshift,
    np.equal: operator.eq,
    np.not_equal: operator.ne,
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
    np.maximum: maximum,
    np.minimum: minimum,
    np.power: operator.pow,
    np.square: lambda x: x * x,
}
_INTRINSICS: dict[np.ufunc, str] = {
    np.absolute: "abs",
    np.arccos: "acos",
    np.arcsin: "asin",
    np.arctan: "atan",
    np.rint: "round",
}
_SAME_NAME = (
    "ceil copysign cos cosh exp exp2 expm1 floor isfinite isinf isnan log log10 log1p log2 sin sinh sqrt tan tanh trunc"
)
_INTRINSICS.update({getattr(np, name): name for name in _SAME_NAME.split()})


def apply_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Expr:
    """The value of a numpy function, of which some input is an expression.

    Raises ``ExpressionError`` for a function that has no counterpart here, and for arrays among the inputs.
    """
    if method != "__call__":
        raise ExpressionError(
            f"np.{ufunc.__name__}.{method} does not apply to the symbolic expression of one element: "
            "reductions are te.sum, te.max, … over a te.reduce_axis"
        )
    if options or not (ufunc in _OPERATORS or ufunc in _INTRINSICS):
        raise ExpressionError(f"np.{ufunc.__name__} does not apply to symbolic expressions: use the functions of te")
    values = [x.item() if isinstance(x, (np.generic, np.ndarray)) and x.ndim == 0 else x for x in inputs]
    for array in values:
        if isinstance(array, np.ndarray):
            raise ExpressionError(f"cannot use a ndarray in an expression: {array!r}")
    if ufunc in _INTRINSICS:
        return call(_INTRINSICS[ufunc], *values)
    made: Expr = _OPERATORS[ufunc](*values)
    return made
