"""Which dtypes the operands of a node of ``expr.py`` may have, and which one they give it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.dtype import BOOL, DType
from ..base.errors import ExpressionError
from .buffer import Buffer

if TYPE_CHECKING:
    from .expr import Expr

MAX_LANES = 256

BINARY_DOMAIN: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("+", "-", "*", "min", "max"), ("int", "uint", "float", "bfloat", "index")),
    "/": ("float", "bfloat"),
    **dict.fromkeys(("//", "%"), ("int", "uint", "index")),
    **dict.fromkeys(("&", "|", "^", "<<", ">>"), ("int", "uint")),
}
"""The kinds of numbers that each operator applies to."""


def same_dtype(what: str, a: Expr, b: Expr) -> DType:
    """The dtype of two operands of ``what``; raises ``ExpressionError`` where they differ."""
    if a.dtype is not b.dtype:
        raise ExpressionError(
            f"`{what}` needs two values of one dtype, found {a.dtype} and {b.dtype}: `{a}` and `{b}`; "
            "convert one of them with te.cast"
        )
    return a.dtype


def choice_dtype(what: str, condition: Expr, a: Expr, b: Expr) -> DType:
    """The dtype of a choice between two values; raises ``ExpressionError`` where these or the condition do not fit."""
    kind = same_dtype(what, a, b)
    if not condition.dtype.is_bool:
        raise ExpressionError(f"the condition of {what} must be bool, found {condition.dtype}: {condition}")
    if condition.dtype.lanes not in (1, kind.lanes):
        raise ExpressionError(f"{what}: {condition.dtype.lanes} lanes of condition for {kind}")
    return kind


def check_lanes(lanes: int) -> None:
    """Raise ``ExpressionError`` for a number of lanes that no vector has."""
    if not 1 < lanes <= MAX_LANES:
        raise ExpressionError(f"a vector has 2 to {MAX_LANES} lanes, not {lanes}")


def access_dtype(buffer: Buffer, indices: tuple[Expr, ...], mask: Expr | None) -> DType:
    """The dtype that an access of ``buffer[indices]`` moves; raises ``ExpressionError`` where the parts do not fit."""
    if len(indices) != buffer.ndim:
        raise ExpressionError(
            f"{buffer.name} has {buffer.ndim} dimensions, but is accessed with {len(indices)} indices"
        )
    lanes = 1
    for index in indices:
        if not index.dtype.is_index:
            raise ExpressionError(f"an index of {buffer.name} is a {index.dtype}, expected index: {index}")
        if index.dtype.lanes != 1:
            if lanes not in (1, index.dtype.lanes):
                raise ExpressionError(f"the indices of {buffer.name} disagree in their lanes: {indices}")
            lanes = index.dtype.lanes
    if mask is not None and mask.dtype is not BOOL.with_lanes(lanes):
        raise ExpressionError(
            f"the mask of an access of {buffer.name} is a {mask.dtype}, expected {lanes} lanes of bool"
        )
    if lanes > 1 and buffer.dtype.lanes > 1:
        raise ExpressionError(f"{buffer.name} holds {buffer.dtype} elements: its index must be scalar")
    return buffer.dtype.with_lanes(max(lanes, buffer.dtype.lanes))
