"""Points of an iteration space, spread evenly: how often code runs whose conditions and extents depend on loops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ....ir.expr import Binary, Broadcast, Compare, Const, Expr, IfThenElse, Logical, Select, Unary, Var

POINTS = 64
Numbers: TypeAlias = npt.NDArray[np.float64]
"""A value at each point."""
Points: TypeAlias = Mapping[Var, Numbers]
"""The value of each variable at each point."""
_OPERATORS = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "//": np.floor_divide,
    "%": np.mod,
    "min": np.minimum,
    "max": np.maximum,
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "and": np.logical_and,
    "or": np.logical_or,
}


def spread(number: int) -> Numbers:
    """Fractions from 0 to 1 for loop number ``number``, which go their own way for each: the multiples of roots of the
    primes, after Weyl."""
    primes = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
    step = float(np.sqrt(primes[number % len(primes)])) + number // len(primes)
    fractions: Numbers = (np.arange(POINTS, dtype=np.float64) + 0.5) * step % 1.0
    return fractions


def evaluate(e: Expr, points: Points) -> Numbers | None:
    """The value of an expression at each point; None where memory or an unknown variable decides."""
    match e:
        case Const(value=value):
            return np.full(POINTS, float(value))
        case Var():
            return points.get(e)
        case Binary(op, a, b) | Compare(op, a, b) | Logical(op, a, b) if op in _OPERATORS:
            left, right = evaluate(a, points), evaluate(b, points)
            if left is None or right is None:
                return None
            with np.errstate(divide="ignore", invalid="ignore"):
                found: Numbers = np.nan_to_num(_OPERATORS[op](left, right).astype(np.float64))
            return found
        case Unary(op, a) if (value_of := evaluate(a, points)) is not None:
            return -value_of if op == "-" else 1.0 - value_of if op == "not" else None
        case Select(condition, a, b) | IfThenElse(condition, a, b):
            parts = [evaluate(part, points) for part in (condition, a, b)]
            if parts[0] is None or parts[1] is None or parts[2] is None:
                return None
            chosen: Numbers = np.where(parts[0] != 0, parts[1], parts[2])
            return chosen
        case Broadcast(value=inner):
            return evaluate(inner, points)
        case _:
            return None
