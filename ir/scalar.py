"""The value semantics of operators on Python scalars, as ``expr.py`` states them; constant folding uses it."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.dtype import DType
from .expr import BinaryOp, CompareOp, UnaryOp
from .rounding import round_number

Scalar = bool | int | float

_COMPARE: dict[CompareOp, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def wrap(kind: DType, value: int) -> int:
    """Reduce an integer into the range of a data integer dtype; index values stay as they are."""
    limits = kind.int_range()
    if limits is None:
        return value
    low, _ = limits
    return (value - low) % (1 << kind.bits) + low


def eval_compare(op: CompareOp, a: Scalar, b: Scalar) -> bool:
    """The truth of a comparison of two Python scalars; where one is NaN, only ``!=`` is true."""
    return _COMPARE[op](a, b)


def eval_unary(op: UnaryOp, kind: DType, a: Scalar) -> Scalar:
    """The value of a unary operator on a scalar of dtype ``kind``; integers wrap around."""
    match op:
        case "not":
            return not a
        case "-":
            return -a if kind.is_float else wrap(kind, -int(a))
        case "~":
            return wrap(kind, ~int(a))


def eval_binary(op: BinaryOp, kind: DType, a: Scalar, b: Scalar) -> Scalar:
    """The result of one operation in the element dtype ``kind``; an index division by 0 raises ZeroDivisionError."""
    if kind.is_float:
        return _eval_float(op, kind, float(a), float(b))
    return wrap(kind, _eval_int(op, kind, int(a), int(b)))


def _eval_int(op: BinaryOp, kind: DType, a: int, b: int) -> int:
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "//":
            return 0 if b == 0 and not kind.is_index else a // b
        case "%":
            return 0 if b == 0 and not kind.is_index else a % b
        case "min":
            return min(a, b)
        case "max":
            return max(a, b)
        case "&":
            return a & b
        case "|":
            return a | b
        case "^":
            return a ^ b
        case "<<":
            return a << b if 0 <= b < kind.bits else 0
        case ">>":
            return a >> (b if 0 <= b < kind.bits else kind.bits)
        case "/":
            raise AssertionError("`/` is not an integer operator")


_FLOAT: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "min": np.minimum,
    "max": np.maximum,
}


def _eval_float(op: BinaryOp, kind: DType, a: float, b: float) -> float:
    numpy_type = kind.to_numpy()
    with np.errstate(all="ignore"):
        return float(_FLOAT[op](np.asarray(a, numpy_type), np.asarray(b, numpy_type)))


def eval_cast(to: DType, value: Scalar) -> Scalar:
    """Convert: float to integer truncates and saturates (NaN is 0), integers wrap, bool is ``!= 0``."""
    if to.is_bool:
        return value != 0
    if to.holds_floats:
        return round_number(to, value)
    if not isinstance(value, float):
        return wrap(to, int(value))
    low, high = to.int_range() or (-(1 << 63), (1 << 63) - 1)
    if math.isnan(value):
        return 0
    return low if value <= low else high if value >= high else int(value)
