"""Sums with constant factors: what Winograd's convolutions and Strassen's products are written with."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ... import te
from ...ir.expr import Axis, Expr


def weighted_sum(parts: Sequence[tuple[Fraction | int, Expr]]) -> Expr:
    """The sum of terms with factors other than 0, begun with one of factor 1 if there is one."""
    total: Expr | None = None
    for factor, term in sorted(parts, key=lambda part: part[0] != 1):
        scaled = term if abs(factor) == 1 else term * te.const(float(abs(factor)), term.dtype)
        if total is None:
            total = scaled if factor > 0 else -scaled
        else:
            total = total + scaled if factor > 0 else total - scaled
    assert total is not None
    return total


def chosen(index: Axis | Expr, values: Sequence[Expr]) -> Expr:
    """values[index]: just that value, where the loop of the index is unrolled."""
    *others, value = values
    for at in reversed(range(len(others))):
        value = te.select(index == at, others[at], value)
    return value
