"""Makers of expressions: they convert Python values, broadcast scalars against vectors, and check dtypes.

Python's operators on expressions (``operand.py``) come here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..base.dtype import BOOL, INDEX, DType, dtype
from ..base.errors import ExpressionError
from .constants import TRUE, const, constant_index
from .expr import Binary, BinaryOp, BitwiseOp, Broadcast, Cast, Compare, CompareOp, Expr, ExprLike, Logical, Unary
from .operand import Operand
from .operators import Operator, Operators


def as_expr(value: ExprLike, like: DType | None = None) -> Expr:
    """Convert to an expression. A Python number takes dtype ``like``; without it int becomes index, float float32."""
    if isinstance(value, Operand):
        return value.as_expr()
    if isinstance(value, np.generic):
        if not isinstance(value, (np.bool_, np.number)):
            raise ExpressionError(f"cannot use a numpy {type(value).__name__} in an expression")
        return const(value, dtype(value.dtype))
    if isinstance(value, bool):
        return const(value, like if like is not None and like.is_bool else BOOL)
    if isinstance(value, int):
        return const(value, like.element if like is not None and not like.is_bool else INDEX)
    if isinstance(value, float):
        if like is not None and not like.is_float:
            raise ExpressionError(f"{value!r} meets a {like} value: convert one of them with te.cast")
        return const(value, like.element if like is not None else "float32")
    raise ExpressionError(f"cannot use a {type(value).__name__} in an expression: {value!r}")


def as_index(value: ExprLike) -> Expr:
    """Convert to an expression of dtype index; a data integer is cast."""
    made = as_expr(value, INDEX)
    if made.dtype.is_index:
        return made
    if made.dtype.is_data_int:
        return Cast(INDEX.with_lanes(made.dtype.lanes), made)
    raise ExpressionError(f"an index must be an integer, found the {made.dtype} `{made}`")


def broadcast_to(value: Expr, lanes: int) -> Expr:
    """Broadcast a scalar; a vector that has the lanes already is returned as it is."""
    return value if value.dtype.lanes == lanes else Broadcast(value, lanes)


def cast(to: str | DType, value: ExprLike) -> Expr:
    """Conversion to another element type; the lanes stay. The same object if nothing changes."""
    made = as_expr(value)
    wanted = dtype(to).with_lanes(made.dtype.lanes)
    return made if made.dtype is wanted else Cast(wanted, made)


def operate(op: Operator, a: ExprLike, b: ExprLike) -> Expr:
    """What ``a op b`` stands for. What has operators of its own, as whole tensors have, says it instead."""
    if isinstance(b, Operators) and not isinstance(b, Operand):
        return NotImplemented
    if (number := _float_of_extents(op, a, b)) is not None:
        return number
    match op:
        case "+" | "-" | "*" | "/" | "//" | "%":
            return binary(op, a, b)
        case "<" | "<=" | ">" | ">=" | "==" | "!=":
            return compare(op, a, b)
        case "&" | "|" | "^" | "<<" | ">>":
            return bitwise(op, a, b)
        case "**":
            return power(a, b)


def inverted(value: Expr) -> Expr:
    """``~value``: ``not`` on bools, all bits the other way on data integers."""
    return Unary("not" if value.dtype.is_bool else "~", value)


def _pair(a: ExprLike, b: ExprLike) -> tuple[Expr, Expr]:
    left = as_expr(a, b.as_expr().dtype if isinstance(b, Operand) else None)
    right = as_expr(b, left.dtype)
    lanes = max(left.dtype.lanes, right.dtype.lanes)
    return broadcast_to(left, lanes), broadcast_to(right, lanes)


def binary(op: BinaryOp, a: ExprLike, b: ExprLike) -> Expr:
    """``a op b``; a Python number takes the other's dtype, and a scalar is broadcast against a vector. Raises
    ``ExpressionError`` for values that the operator does not apply to; so do the others."""
    return Binary(op, *_pair(a, b))


def bitwise(op: BitwiseOp, a: ExprLike, b: ExprLike) -> Expr:
    """``&``, ``|`` are logical on bools, ``^`` is ``!=``; on data integers all are bitwise."""
    left, right = _pair(a, b)
    if left.dtype.is_bool and right.dtype.is_bool:
        match op:
            case "&":
                return Logical("and", left, right)
            case "|":
                return Logical("or", left, right)
            case "^":
                return Compare("!=", left, right)
    return Binary(op, left, right)


def compare(op: CompareOp, a: ExprLike, b: ExprLike) -> Expr:
    """The comparison ``a op b``, of operands as ``binary`` takes them."""
    return Compare(op, *_pair(a, b))


def minimum(a: ExprLike, b: ExprLike) -> Expr:
    """The smaller of two operands, as ``binary`` takes them; NaN if either is NaN."""
    return binary("min", a, b)


def maximum(a: ExprLike, b: ExprLike) -> Expr:
    """The larger of two operands, as ``binary`` takes them; NaN if either is NaN."""
    return binary("max", a, b)


def logical_and(conditions: Sequence[Expr]) -> Expr:
    """The conjunction; true for none."""
    result: Expr | None = None
    for condition in conditions:
        result = condition if result is None else Logical("and", result, condition)
    return result if result is not None else TRUE


def power(base: ExprLike, exponent: ExprLike) -> Expr:
    """``base ** exponent``; the square is a product, as in numpy."""
    from .intrinsics import call  # which makes expressions

    if isinstance(exponent, (int, float)) and exponent == 2:
        return binary("*", base, base)
    return call("pow", *_pair(base, exponent))


def _float_of_extents(op: Operator, a: ExprLike, b: ExprLike) -> Expr | None:
    """The quotient of constant indices, or a power with a fraction, as Python has it; None for all else."""
    fraction = isinstance(b, float) and not b.is_integer()
    if op != "/" and not (op == "**" and fraction):
        return None
    left, right = (constant_index(x) if isinstance(x, Operand) else x for x in (a, b))
    if not isinstance(left, int) or not isinstance(right, (int, float)) or (op == "/" and not right):
        return None
    return const(left / right if op == "/" else left**right, "float64")
