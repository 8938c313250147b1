"""Functions of numpy on expressions: ``np.exp(A[i])`` is ``te.exp(A[i])``, and ``np.float32(2) * A[i]`` a product.

What they are called here, and as operators, holds for graph nodes as well.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..base.dtype import BOOL
from ..base.errors import ExpressionError
from .constants import constant_index
from .expr import Expr, Logical, Unary
from .intrinsics import call
from .makers import as_expr, maximum, minimum
from .operand import Operand
from .operators import Operator

UFUNCS: dict[Operator, np.ufunc] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "//": np.floor_divide,
    "%": np.remainder,
    "**": np.power,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
    "<<": np.left_shift,
    ">>": np.right_shift,
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
"""What numpy calls Python's operators."""
OWN_NAMES: dict[np.ufunc, str] = {
    np.absolute: "abs",
    np.arccos: "acos",
    np.arcsin: "asin",
    np.arctan: "atan",
    np.rint: "round",
}
"""What we call functions of numpy on one number."""
_SAME_NAME = (
    "ceil copysign cos cosh exp exp2 expm1 floor isfinite isinf isnan log log10 log1p log2 sin sinh sqrt tan tanh trunc"
)
OWN_NAMES.update({getattr(np, name): name for name in _SAME_NAME.split()})
_ON_EXPRESSIONS: dict[np.ufunc, Callable[..., Any]] = {
    **{ufunc: partial(Operand.operate, op) for op, ufunc in UFUNCS.items()},
    **{ufunc: partial(call, name) for ufunc, name in OWN_NAMES.items()},
    np.negative: operator.neg,
    np.invert: operator.invert,
    np.maximum: maximum,
    np.minimum: minimum,
    np.square: lambda x: x * x,
    np.logical_and: lambda a, b: Logical("and", as_expr(a, BOOL), as_expr(b, BOOL)),
    np.logical_or: lambda a, b: Logical("or", as_expr(a, BOOL), as_expr(b, BOOL)),
    np.logical_not: lambda a: Unary("not", as_expr(a)),
}


def apply_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Expr:
    """The value of a numpy function, of which some input is an expression.

    Raises ``ExpressionError`` for a function that has no counterpart here, and for arrays among the inputs.
    """
    if method != "__call__":
        raise ExpressionError(
            f"np.{ufunc.__name__}.{method} does not apply to the symbolic expression of one element: "
            "reductions are te.sum, te.max, … over a te.reduce_axis"
        )
    if options or ufunc not in _ON_EXPRESSIONS:
        raise ExpressionError(f"np.{ufunc.__name__} does not apply to symbolic expressions: use the functions of te")
    values = [x.item() if isinstance(x, (np.generic, np.ndarray)) and x.ndim == 0 else x for x in inputs]
    for array in values:
        if isinstance(array, np.ndarray):
            raise ExpressionError(f"cannot use a ndarray in an expression: {array!r}")
    if ufunc in OWN_NAMES and isinstance(values[0], Operand) and (extent := constant_index(values[0])) is not None:
        number = ufunc(extent)
        return as_expr(number) if isinstance(number, np.floating) else as_expr(number.item())
    made: Expr = _ON_EXPRESSIONS[ufunc](*values)
    return made
