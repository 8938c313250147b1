"""Constants among expressions: made of Python's and numpy's numbers, and read as numbers again."""

from __future__ import annotations

import math

import numpy as np

from ..base.dtype import BOOL, INDEX, DType, dtype
from ..base.errors import ExpressionError, IndexRangeError
from .expr import Broadcast, Const, Expr
from .operand import Operand
from .rounding import round_number

TRUE: Expr = Const(True, BOOL)
FALSE: Expr = Const(False, BOOL)
ZERO: Expr = Const(0, INDEX)
ONE: Expr = Const(1, INDEX)
MAX_INDEX = 1 << 62
"""No constant index is above this, or below minus this, so that a sum of two is no overflow."""


def const(value: bool | int | float | np.generic, as_dtype: str | DType) -> Expr:
    """A constant of the given dtype (lanes broadcast). Raises ``ExpressionError`` if the dtype cannot hold the value.

    Floats are rounded to the dtype; an integer must be in the range of an integer dtype.
    """
    kind = dtype(as_dtype)
    element = kind.element
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, (bool, int, float)):
        raise ExpressionError(f"a constant is a number or a bool, found {value!r}")
    scalar = Const(_fit(plain, element), element)
    return scalar if kind.lanes == 1 else Broadcast(scalar, kind.lanes)


def _fit(value: bool | int | float, kind: DType) -> bool | int | float:
    if kind.is_bool:
        if value not in (0, 1):
            raise ExpressionError(f"{value!r} is not a bool")
        return bool(value)
    if kind.holds_floats:
        return round_number(kind, value)
    if isinstance(value, float):
        if not value.is_integer():
            raise ExpressionError(f"{value!r} is not an integer, but {kind} is wanted; cast explicitly")
        value = int(value)
    low, high = kind.int_range() or (-MAX_INDEX, MAX_INDEX)
    if not low <= value <= high:
        if kind.is_index:
            raise IndexRangeError(f"{value} does not fit {kind} ({low} … {high})")
        raise ExpressionError(f"{value} does not fit {kind} ({low} … {high})")
    return int(value)


def const_int(value: Expr) -> int | None:
    """The value of an integer constant (or a broadcast one), else None."""
    match value:
        case Const(value=number) if not isinstance(number, float):
            return int(number)
        case Broadcast(value=inner):
            return const_int(inner)
        case _:
            return None


def is_const(value: Expr, number: int | float) -> bool:
    """Whether the expression is the constant ``number`` (``-0.0`` is not ``0.0``), or a broadcast of it."""
    match value:
        case Const(value=found):
            return found == number and math.copysign(1, found) == math.copysign(1, number)
        case Broadcast(value=inner):
            return is_const(inner, number)
        case _:
            return False


def constant_index(value: Operand) -> int | None:
    """The number that arithmetic on constant indices gives, as extents are; None for all else."""
    known = value.constant() if value.as_expr().dtype.is_index else None
    return None if known is None else int(known)
