"""Makes the scalar condition that a vector mask is true in some lane, for what must not run where no lane is on."""

from __future__ import annotations

from typing import Literal

from ...ir.constants import const, const_int
from ...ir.expr import Binary, Broadcast, Compare, Expr, Logical, Ramp, Unary
from .folding import add, multiply

Shape = Literal["uniform", "prefix", "suffix"]
_FLIPPED: dict[Shape, Shape] = {"uniform": "uniform", "prefix": "suffix", "suffix": "prefix"}


def any_lane(mask: Expr) -> Expr | None:
    """A scalar condition that holds exactly if some lane of the mask is true; None where it is not known how to say it.

    A mask that is true on the first lanes only, as ``ramp(i, 1, 8) < n`` is, has a true lane if its lane 0 is true.
    """
    shape = _shape(mask)
    if shape is None:
        return None
    return _lane(mask, mask.dtype.lanes - 1 if shape == "suffix" else 0)


def _shape(mask: Expr) -> Shape | None:
    """Where the true lanes of a mask lie: all or none, from the first lane on, or up to the last lane."""
    match mask:
        case Broadcast():
            return "uniform"
        case Unary("not", a):
            inner = _shape(a)
            return None if inner is None else _FLIPPED[inner]
        case Logical(_, a, b):
            return _joint(_shape(a), _shape(b))
        case Compare("<" | "<=", a, b):
            return _growth(a, b)
        case Compare(">" | ">=", a, b):
            return _growth(b, a)
        case _:
            return None


def _joint(a: Shape | None, b: Shape | None) -> Shape | None:
    if b in (a, "uniform"):
        return a
    return b if a == "uniform" else None


def _growth(low: Expr, high: Expr) -> Shape | None:
    """The shape of ``low < high``."""
    a, b = _slope(low), _slope(high)
    if a is None or b is None or not low.dtype.is_index:
        return None
    return "uniform" if a == b else "prefix" if a > b else "suffix"


def _slope(value: Expr) -> int | None:
    """How much a vector grows from lane to lane, if that is a known number."""
    match value:
        case Broadcast():
            return 0
        case Ramp(_, stride, _):
            return const_int(stride)
        case Binary("+" | "-" as op, a, b):
            left, right = _slope(a), _slope(b)
            if left is None or right is None:
                return None
            return left + right if op == "+" else left - right
        case _:
            return None


def _lane(value: Expr, lane: int) -> Expr:
    """One lane of a vector of the forms that have a shape."""
    match value:
        case Broadcast(inner, _):
            return inner
        case Ramp(base, stride, _):
            return add(base, multiply(const(lane, stride.dtype), stride))
        case Unary(op, a):
            return Unary(op, _lane(a, lane))
        case Binary(op, a, b):
            return Binary(op, _lane(a, lane), _lane(b, lane))
        case Compare(op, a, b):
            return Compare(op, _lane(a, lane), _lane(b, lane))
        case Logical(op, a, b):
            return Logical(op, _lane(a, lane), _lane(b, lane))
        case _:
            raise AssertionError(f"not a mask with a shape: {value}")
