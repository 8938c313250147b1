"""What each operator computes, on numpy scalars and on arrays of lanes: the semantics of ``expr.py``, executable.

A scalar is a numpy scalar of its dtype, a vector an array of its lanes; ``index`` values are Python ints, and vectors
of them arrays of Python ints (dtype object), so they cannot overflow. Runs under ``np.errstate(all="ignore")``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ...base.dtype import DType
from ..expr import BinaryOp, CompareOp, Const, LogicalOp, UnaryOp
from ..intrinsics import evaluate
from ..rounding import round_to_float
from ..scalar import wrap

Value: TypeAlias = Any  # bool | int | np.generic | np.ndarray
Op: TypeAlias = Callable[..., Value]

_INDEX_LOW, _INDEX_HIGH = -(1 << 63), (1 << 63) - 1

BINARY: dict[BinaryOp, Op] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "min": np.minimum,
    "max": np.maximum,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
}

COMPARE: dict[CompareOp, Op] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

LOGICAL: dict[LogicalOp, Op] = {"and": np.logical_and, "or": np.logical_or}
UNARY: dict[UnaryOp, Op] = {"-": operator.neg, "~": operator.invert, "not": np.logical_not}


def binary_op(op: BinaryOp, kind: DType) -> Op:
    """The operation on values of dtype ``kind``; an index divisor of 0 must be ruled out before."""
    if kind.is_index and kind.lanes == 1 and op in ("min", "max"):
        return min if op == "min" else max
    return BINARY[op]


def constant(value: Const) -> Value:
    """A constant as the interpreter holds it: a Python int for an index, else a scalar of numpy."""
    if value.dtype.is_index:
        return int(value)
    return value.dtype.to_numpy().type(value.value)


def lane_array(kind: DType, lanes: list[Any]) -> Value:
    """A vector of the element type of ``kind`` from Python or numpy scalars."""
    return np.array(lanes, object if kind.is_index else kind.to_numpy())


def from_memory(kind: DType, stored: Value) -> Value:
    """What was read from an array, as a value of dtype ``kind``."""
    if kind.lanes == 1:
        return int(stored) if kind.is_index else stored
    return stored.astype(object) if kind.is_index else stored.copy()


def ramp(kind: DType) -> Op:
    """base, base + stride, …; data integers wrap."""
    steps = range(kind.lanes)
    if kind.is_index:
        return lambda base, stride: lane_array(kind, [base + k * stride for k in steps])
    return lambda base, stride: lane_array(kind, [wrap(kind, int(base) + k * int(stride)) for k in steps])


def broadcast(kind: DType) -> Op:
    """The function that copies a scalar to all lanes of the vector dtype ``kind``."""
    return lambda value: lane_array(kind, [value] * kind.lanes)


def select(kind: DType, condition: DType) -> Op:
    """The function that chooses between two values of dtype ``kind``: as a whole by a scalar condition, lane by lane by
    a vector of them."""
    if condition.lanes == 1:
        return lambda which, a, b: a if which else b
    return np.where


def cast(to: DType, source: DType) -> Op:
    """Conversion between element types: see the casts in the docstring of ``expr.py``."""
    numpy_type = to.to_numpy().type
    scalar = to.lanes == 1
    if to.element is source.element:
        return lambda value: value
    if to.is_bool:
        return lambda value: value != 0
    if to.holds_floats and (source.is_index or to.kind == "bfloat" or to.is_narrow):
        convert = round_to_float(to)
        return (lambda value: convert(value)[()]) if scalar else convert
    if to.is_float:
        return numpy_type if scalar else lambda value: value.astype(numpy_type)
    if source.holds_floats:
        if scalar:
            return lambda value: _truncate(to, np.asarray([value]))[0]
        return lambda value: _truncate(to, value)
    if to.is_index:
        return int if scalar else lambda value: value.astype(object)
    if scalar:
        return lambda value: numpy_type(wrap(to, int(value)))
    return lambda value: lane_array(to, [wrap(to, int(v)) for v in value])


def _truncate(to: DType, values: Value) -> Value:
    """Floats to integers: towards zero, saturating, NaN becomes 0."""
    low, high = to.int_range() or (_INDEX_LOW, _INDEX_HIGH)
    return lane_array(to, [_truncate_one(float(v), low, high) for v in values])


def _truncate_one(value: float, low: int, high: int) -> int:
    if math.isnan(value):
        return 0
    return low if value <= low else high if value >= high else int(value)


def intrinsic(name: str, kind: DType) -> Op:
    """The intrinsic on arguments of dtype ``kind``, by its reference."""
    element = kind.element
    if kind.lanes > 1:
        return lambda *args: evaluate(name, element, *args)
    if kind.is_index:
        return lambda *args: int(evaluate(name, element, *args))
    return lambda *args: evaluate(name, element, *args)[()]
