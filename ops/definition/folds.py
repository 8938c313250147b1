"""The order in which operators fold long and short rows, so that float results are the same on every target.

And the maximum that softmax subtracts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from ... import te
from ...base.dataclass import dataclass
from ...base.dtype import DType
from ...ir.constants import const_int
from ...ir.expr import Axis, Expr
from ...ir.simplify import simplify
from ...schedules.rows import extent_of, row_span
from .condition import Clause, clause, of_terms

Fold: TypeAlias = Callable[..., Expr]
"""A reduction of one value, as ``te.sum``: ``fold(source, axis=…, where=…, lanes=…, neighbours=…)``."""


@dataclass(frozen=True, slots=True)
class LaneOrder:
    """Rows are folded in so many lanes, and these by halves or by neighbours; see ``te.sum``."""

    lanes: int
    neighbours: bool = False


LONG_ROWS = LaneOrder(64)
"""Four of the longest vectors: as many sums side by side hide how long an addition takes."""
ROWS_OF_VECTORS = LaneOrder(16)
"""One of the longest vectors, for rows that are gone through one after the other."""
SHORT_ROWS = LaneOrder(16, neighbours=True)
"""The same; neighbours are folded in several rows at once."""
PART_OF_VECTOR = 5
"""From so many elements on it is quicker to read a row as one vector than to gather an element of some rows each."""


def long_rows(axes: Sequence[int], shape: Sequence[Expr]) -> Clause | bool:
    """The clause that the innermost axes are among ``axes``, and long enough to be folded in the order of long rows."""
    span = row_span(axes, shape)
    return bool(span) and of_terms(extent_of([shape[d] for d in span]) >= LONG_ROWS.lanes)


def rows_of_vectors(axes: Sequence[int], shape: Sequence[Expr], least: int = ROWS_OF_VECTORS.lanes) -> Clause:
    """The clause that the innermost axes are among ``axes``, and together of ``least`` elements to a few vectors, or of
    an open number."""
    span = row_span(axes, shape)
    return clause("rows of a few vectors", bool(span) and _is_of_vectors([shape[d] for d in span], least))


def _is_of_vectors(row: Sequence[Expr], least: int) -> bool:
    extent = const_int(simplify(extent_of(row)))
    return extent is None or least <= extent < LONG_ROWS.lanes


def are_short_rows(axes: Sequence[int], shape: Sequence[Expr], least: int = PART_OF_VECTOR) -> bool:
    """Whether the reduced axes are the innermost ones, together of ``least`` elements to a few vectors, or of an open
    number, and others stay."""
    span = row_span(axes, shape)
    return bool(span) and len(span) == len(axes) < len(shape) and _is_of_vectors([shape[d] for d in span], least)


def short_rows(axes: Sequence[int], shape: Sequence[Expr], least: int = PART_OF_VECTOR) -> Clause:
    """The clause that says so."""
    return clause("rows of a few vectors", are_short_rows(axes, shape, least))


def lowest(kind: DType) -> Expr:
    """The least finite number: less -inf it is infinite, so that scores that are all -inf have exponentials of 0."""
    return te.const(float(np.finfo(kind.to_numpy()).min), kind)


def _larger(a: Expr, b: Expr) -> Expr:
    return te.select(b > a, b, a)


_peak_of = te.reducer("largest_finite", lambda a, b: (_larger(a[0], b[0]),), lambda kinds: (lowest(kinds[0]),))


def peak_of(
    source: Expr,
    axis: Axis | Sequence[Axis],
    where: Expr | None = None,
    lanes: int | None = None,
    neighbours: bool = False,
) -> Expr:
    """The maximum that softmax subtracts, one instruction a vector: it leaves out NaNs, which the sum of exponentials
    does not, and of nothing but -inf it is the lowest number, so that their exponentials are 0."""
    return _peak_of((source,), axis, where, lanes, neighbours)[0]
