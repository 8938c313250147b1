"""Reductions over one or several axes, with one or several outputs.

``where`` is a condition on the axes: terms for which it does not hold are left out, and their reads are not made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Protocol

from ..base.dtype import BOOL, INDEX, DType, dtype
from ..base.errors import ExpressionError
from ..ir.constants import ZERO, const, const_int
from ..ir.contents import free_vars
from ..ir.expr import Axis, Combiner, Expr, ExprLike, Logical, Reduce, Select, TensorRead, Var
from ..ir.intrinsics import call
from ..ir.makers import as_expr, binary, logical_and
from ..ir.makers import cast as cast_expr
from ..ir.visit import walk
from .lanes import checked_lanes
from .math import max_value, min_value

Combine = Callable[[tuple[Expr, ...], tuple[Expr, ...]], Sequence[Expr]]
Identity = Callable[[tuple[DType, ...]], Sequence[Expr]]
Axes = Axis | Sequence[Axis]


class Reducer(Protocol):
    """What ``reducer`` gives: folds the sources over the axes, where a condition holds; one expression an output."""

    def __call__(
        self,
        sources: Sequence[ExprLike],
        axis: Axes,
        where: Expr | None = None,
        lanes: int | None = None,
        neighbours: bool = False,
    ) -> tuple[Expr, ...]: ...


def reducer(name: str, combine: Combine, identity: Identity) -> Reducer:
    """A reduction of one's own over tuples of values.

    ``combine(lhs, rhs)`` gives the combined tuple, from its arguments and constants. ``identity(dtypes)`` gives what a
    fold begins with. ``combine`` should be associative and commutative, and the identity neutral: schedules that fold
    terms in another order, or in groups (``rfactor``), try that on some values, and are refused if it fails.
    The result is called as ``f(sources, axis=..., where=None, lanes=None, neighbours=False)``, which mean what they do
    for ``sum``, and gives one expression an output.

    >>> from loopwright import te
    >>> A = te.placeholder((8,), name="A")
    >>> r = te.reduce_axis((0, 8), name="r")
    >>> moments = te.reducer("moments", lambda a, b: (a[0] + b[0], a[1] + b[1]), lambda t: [te.const(0, k) for k in t])
    >>> S, Q = te.compute((), lambda: moments((A[r], A[r] * A[r]), axis=r), name="S")
    """

    @cache
    def combiner_of(*kinds: DType) -> Combiner:
        lhs = tuple(Var(f"lhs{k}", kind) for k, kind in enumerate(kinds))
        rhs = tuple(Var(f"rhs{k}", kind) for k, kind in enumerate(kinds))
        results = tuple(combine(lhs, rhs))
        neutral = tuple(identity(kinds))
        if [r.dtype for r in results] != list(kinds) or [e.dtype for e in neutral] != list(kinds):
            raise ExpressionError(f"reducer {name}: combine and identity must give values of the dtypes {kinds}")
        _check_operands(name, results, (*lhs, *rhs))
        _check_operands(name, neutral, ())
        return Combiner(name, lhs, rhs, results, neutral)

    def reduce(
        sources: Sequence[ExprLike],
        axis: Axes,
        where: Expr | None = None,
        lanes: int | None = None,
        neighbours: bool = False,
    ) -> tuple[Expr, ...]:
        values = tuple(as_expr(source) for source in sources)
        where = None if where is None else as_expr(where)
        combiner = combiner_of(*(value.dtype for value in values))
        axes = _check_axes(name, axis)
        if where is not None and where.dtype is not BOOL:
            raise ExpressionError(f"{name}: `where` must be bool, found {where.dtype}")
        count = checked_lanes(name, lanes, neighbours)
        return tuple(Reduce(combiner, values, axes, where, k, count, neighbours) for k in range(len(values)))

    return reduce


def _check_operands(name: str, values: Sequence[Expr], operands: Sequence[Var]) -> None:
    for value in values:
        foreign: list[Expr] = [node for node in walk(value) if isinstance(node, TensorRead)]
        foreign += [var for var in free_vars(value) if var not in set(operands)]
        if foreign:
            raise ExpressionError(
                f"reducer {name}: combine uses its two arguments and constants, and identity constants, but there is "
                f"{foreign[0]}; give it to the reduction as a source of its own"
            )


def _as_axes(axis: object) -> tuple[Axis, ...]:
    if not isinstance(axis, (Axis, Sequence)):
        raise ExpressionError(
            f"a reduction is over axes, found {axis!r}; "
            "of two values te.minimum and te.maximum give the smaller and the larger"
        )
    axes: tuple[object, ...] = (axis,) if isinstance(axis, Axis) else tuple(axis)
    if others := [a for a in axes if not isinstance(a, Axis)]:
        raise ExpressionError(f"a reduction is over axes, as te.reduce_axis makes them, found {others[0]!r}")
    return tuple(a for a in axes if isinstance(a, Axis))


def _check_axes(name: str, axis: Axes) -> tuple[Axis, ...]:
    axes = _as_axes(axis)
    if not axes or len({a.var for a in axes}) != len(axes):
        raise ExpressionError(f"{name} needs one or several different axes to reduce over")
    for a in axes:
        if a.kind != "reduce":
            raise ExpressionError(f"{name} reduces over te.reduce_axis objects; {a.name} is an axis of the compute")
    return axes


def _single(name: str, combine: Callable[[Expr, Expr], Expr], identity: Callable[[DType], Expr]) -> Callable[..., Expr]:
    over_tuples = reducer(name, lambda a, b: (combine(a[0], b[0]),), lambda kinds: (identity(kinds[0]),))
    return lambda source, axis, where, lanes, neighbours: over_tuples((source,), axis, where, lanes, neighbours)[0]


_sum = _single("sum", lambda a, b: a + b, lambda kind: const(0, kind))
_prod = _single("prod", lambda a, b: a * b, lambda kind: const(1, kind))
_min = _single("min", lambda a, b: binary("min", a, b), max_value)
_max = _single("max", lambda a, b: binary("max", a, b), min_value)
_any = _single("any", lambda a, b: Logical("or", a, b), lambda kind: const(False, kind))
_all = _single("all", lambda a, b: Logical("and", a, b), lambda kind: const(True, kind))


def sum(
    source: ExprLike, axis: Axes, where: Expr | None = None, lanes: int | None = None, neighbours: bool = False
) -> Expr:
    """The sum of the source over the axes, in its dtype, 0 if nothing is summed. ``axis`` is one axis of
    ``te.reduce_axis`` or several, ``where`` a bool that says which elements count.

    A float sum is in the order of the axes, unless a schedule changes it. With ``lanes``, a power of two, lane ``l``
    sums the terms ``l``, ``l + lanes``, … of the last axis; then the lanes are added by halves, each to the one that is
    half of them further, or each to its neighbour if ``neighbours`` is true, until there is one. That order is part of
    the definition: no schedule changes it, and strict precision keeps it. The lanes become stages of their own, which
    are computed before (``te.lane_parts``).

    Raises ``ExpressionError`` for other axes, an axis that is named twice, a ``where`` that is not bool, and lanes that
    are no power of two, as all reductions do.
    """
    return _sum(source, axis, where, lanes, neighbours)


def prod(
    source: ExprLike, axis: Axes, where: Expr | None = None, lanes: int | None = None, neighbours: bool = False
) -> Expr:
    """The product of the source over the axes, in its dtype, 1 if nothing is multiplied; otherwise as ``sum``."""
    return _prod(source, axis, where, lanes, neighbours)


def min(
    source: ExprLike, axis: Axes, where: Expr | None = None, lanes: int | None = None, neighbours: bool = False
) -> Expr:
    """The smallest value of the source over the axes; NaN if there is one, the dtype's largest value (infinity) if
    there is nothing. Otherwise as ``sum``."""
    return _min(source, axis, where, lanes, neighbours)


def max(
    source: ExprLike, axis: Axes, where: Expr | None = None, lanes: int | None = None, neighbours: bool = False
) -> Expr:
    """The largest value of the source over the axes; NaN if there is one, the dtype's smallest value (minus
    infinity) if there is nothing. Otherwise as ``sum``."""
    return _max(source, axis, where, lanes, neighbours)


def any(
    *sources: ExprLike,
    axis: Axes | None = None,
    where: Expr | None = None,
    lanes: int | None = None,
    neighbours: bool = False,
) -> Expr:
    """Whether the source, a bool, is true anywhere over the axes, as ``sum`` has them; without axes, whether one of
    the arguments is."""
    if axis is not None:
        return _any(*sources, axis, where, lanes, neighbours)
    return ~logical_and([~as_expr(source) for source in sources])


def all(
    *sources: ExprLike,
    axis: Axes | None = None,
    where: Expr | None = None,
    lanes: int | None = None,
    neighbours: bool = False,
) -> Expr:
    """Whether the source, a bool, is true everywhere over the axes, as ``sum`` has them; without axes, whether all
    arguments are."""
    if axis is not None:
        return _all(*sources, axis, where, lanes, neighbours)
    return logical_and([as_expr(source) for source in sources])


def _arg(
    name: str, better: Callable[[Expr, Expr], Expr], worst: Callable[[DType], Expr]
) -> Callable[..., tuple[Expr, ...]]:
    def combine(a: tuple[Expr, ...], b: tuple[Expr, ...]) -> tuple[Expr, Expr]:
        # The first of equals wins, and the first NaN over all else, as in numpy.
        wins = better(b[0], a[0]) | (b[0] == a[0]) & (b[1] < a[1])
        if a[0].dtype.is_float:
            a_nan, b_nan = call("isnan", a[0]), call("isnan", b[0])
            wins = Select(a_nan, b_nan & (b[1] < a[1]), b_nan | wins)
        return Select(wins, b[0], a[0]), Select(wins, b[1], a[1])

    return reducer(name, combine, lambda kinds: (worst(kinds[0]), max_value(kinds[1])))


_argmin = _arg("argmin", lambda b, a: b < a, max_value)
_argmax = _arg("argmax", lambda b, a: b > a, min_value)


def argmin(
    source: ExprLike, axis: Axes, where: Expr | None = None, index_dtype: str | DType = "int64"
) -> tuple[Expr, ...]:
    """The smallest value and its position, a pair for a compute with two outputs.

    The position counts row-major over the axes, as ``index_dtype``; the first wins among equals, a NaN over all else.
    Over empty axes the result is the largest value and the largest index.
    """
    return _argmin((source, _position(axis, index_dtype)), axis, where)


def argmax(
    source: ExprLike, axis: Axes, where: Expr | None = None, index_dtype: str | DType = "int64"
) -> tuple[Expr, ...]:
    """The largest value and its position, a pair for a compute with two outputs; over empty axes the smallest value
    and the largest index. Otherwise as ``argmin``."""
    return _argmax((source, _position(axis, index_dtype)), axis, where)


def _position(axis: Axes, index_dtype: str | DType) -> Expr:
    check_holds(index_dtype, count_terms(axis) - 1, "index_dtype")
    position = const(0, INDEX)
    for a in _as_axes(axis):
        offset = a.var if a.min is ZERO else a.var - a.min
        position = offset if position is ZERO else position * a.extent + offset
    return cast_expr(index_dtype, position)


def count_terms(axis: Axes) -> int:
    """How many terms there are over the axes, as far as their extents are known."""
    return math.prod(const_int(a.extent) or 1 for a in _as_axes(axis))


def check_holds(kind: str | DType, largest: int, parameter: str) -> None:
    """Raise ``ExpressionError`` if ``kind``, given for ``parameter``, is no integer dtype or cannot hold a number."""
    limits = dtype(kind).int_range()
    if limits is None or dtype(kind).is_bool:
        raise ExpressionError(f"{parameter} must be an integer dtype, found {kind}")
    if largest > limits[1]:
        raise ExpressionError(f"numbers up to {largest} do not fit {kind}: give a wider {parameter}")
