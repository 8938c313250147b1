"""Borders: ``clamp`` holds an index between two ends, ``pad`` adds elements around a tensor.

Both are plain index arithmetic. ``loop_partition`` tells the interior of a loop, where the index is the one that is
asked for, from its borders, so that what reads through them has neither a gather nor a test in its inner loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, TypeGuard, cast

from ..base.choices import is_count
from ..base.dtype import INDEX
from ..base.errors import ExpressionError
from ..ir.constants import ZERO, const_int
from ..ir.expr import Axis, Expr, ExprLike
from ..ir.makers import logical_and, maximum, minimum
from ..ir.simplify import simplify
from .compute import compute
from .math import const, if_then_else
from .tensor import Tensor

Count: TypeAlias = int | Expr
"""How many elements: a number, or an expression over symbolic extents."""
PAD_MODES = ("constant", "edge", "reflect", "wrap")


def clamp(x: ExprLike, low: ExprLike, high: ExprLike) -> Expr:
    """``x``, but ``low`` where it is below and ``high`` where it is above; ``low`` where the two cross.

    Of an index, ``A[te.clamp(i - 1, 0, n - 1)]`` reads the nearest element at the borders. NaN stays NaN.
    """
    return maximum(minimum(x, high), low)


def pad(
    x: Tensor,
    before: Count | Sequence[Count],
    after: Count | Sequence[Count] | None = None,
    mode: str = "constant",
    value: bool | int | float = 0,
    name: str = "pad",
) -> Tensor:
    """``x`` with elements added before and after each axis: a tensor with extents ``before + extent + after``.

    ``before`` and ``after`` are counts, one an axis or one for all; without ``after`` it is as ``before``. A count may
    be an expression over symbolic extents; where that comes out negative, elements are taken away. What is added:
    ``"constant"`` the ``value``, ``"edge"`` the nearest element, ``"reflect"`` a mirror image without the edge itself,
    ``"wrap"`` the tensor again; as ``numpy.pad`` does. The result is a compute, of the same dtype: inline it into a
    stencil, or compute it where a tile is.

    Raises ``ExpressionError`` for a negative count, another number of counts than axes, an unknown mode, and where an
    empty axis is to be padded with its own elements.
    """
    if not isinstance(x, Tensor):
        raise ExpressionError(f"{name} adds a border to a tensor, found {x!r}")
    begins, ends = _counts(x, before, "before"), _counts(x, before if after is None else after, "after")
    if str(mode) not in PAD_MODES:
        raise ExpressionError(f"pad of {x.name}: mode is one of {', '.join(PAD_MODES)}, not {mode!r}")
    for axis, extent in enumerate(x.shape):
        if mode != "constant" and const_int(extent) == 0 and (_may_be_any(begins[axis]) or _may_be_any(ends[axis])):
            raise ExpressionError(
                f"pad of {x.name}: axis {axis} is empty, there is nothing to pad it with by {mode!r}: "
                f'use mode="constant"'
            )
    element = _constant(x, begins, ends, value) if mode == "constant" else _from_itself(x, begins, ends, _INDICES[mode])
    shape = [simplify(extent + (b + a)) for extent, b, a in zip(x.shape, begins, ends, strict=True)]
    return compute(shape, element, name=name)


def _counts(x: Tensor, given: object, what: str) -> tuple[Count, ...]:
    several = isinstance(given, Iterable) and not isinstance(given, Expr)
    counts: tuple[object, ...] = tuple(cast(Iterable[object], given)) if several else (given,) * x.ndim
    whole = [count if isinstance(count, Expr) else int(count) for count in counts if _is_count(count)]
    if not len(counts) == len(whole) == x.ndim:
        raise ExpressionError(
            f"pad of {x.name}: {what} is a count that is not negative, or one for each of {x.ndim} axes, not {given!r}"
        )
    return tuple(whole)


def _is_count(value: object) -> TypeGuard[Count]:
    return is_count(value) or (isinstance(value, Expr) and value.dtype is INDEX)


def _may_be_any(count: Count) -> bool:
    """Whether a count is not known to be 0."""
    return isinstance(count, Expr) or count > 0


def _constant(
    x: Tensor, before: Sequence[Count], after: Sequence[Count], value: bool | int | float
) -> Callable[..., Expr]:
    def element(*axes: Axis) -> Expr:
        inside: list[Expr] = []
        for axis, extent, b, a in zip(axes, x.shape, before, after, strict=True):
            if _may_be_any(b):
                inside.append(axis >= b)
            if _may_be_any(a):
                inside.append(axis < extent + b)
        read = x[tuple(axis - b for axis, b in zip(axes, before, strict=True))]
        return if_then_else(logical_and(inside), read, const(value, x.dtype)) if inside else read

    return element


def _from_itself(
    x: Tensor, before: Sequence[Count], after: Sequence[Count], source: Callable[[Expr, Expr, Count, Count], Expr]
) -> Callable[..., Expr]:
    def element(*axes: Axis) -> Expr:
        return x[
            tuple(
                source(axis - b, extent, b, a) if _may_be_any(a) or _may_be_any(b) else axis
                for axis, extent, b, a in zip(axes, x.shape, before, after, strict=True)
            )
        ]

    return element


def _nearest(index: Expr, extent: Expr, before: Count, after: Count) -> Expr:
    index = minimum(index, extent - 1) if _may_be_any(after) else index
    return maximum(index, ZERO) if _may_be_any(before) else index


def _mirrored(index: Expr, extent: Expr, before: Count, after: Count) -> Expr:
    last, known = extent - 1, const_int(extent)
    if known == 1:
        return ZERO
    counts = [count if isinstance(count, int) else None for count in (before, after)]
    if known is not None and all(count is not None and count < known for count in counts):
        return _mirrored_once(index, extent, before, after)
    folded = index % maximum(last * 2, 1)  # mirrored again and again
    return minimum(folded, last * 2 - folded)


def _mirrored_once(index: Expr, extent: Expr, before: Count, after: Count) -> Expr:
    """The index in a mirror image of fewer elements than there are, for one that lies outside."""
    folded = maximum(index, -index) if _may_be_any(before) else index
    return minimum(folded, (extent - 1) * 2 - folded) if _may_be_any(after) else folded


def _wrapped(index: Expr, extent: Expr, before: Count, after: Count) -> Expr:
    return index % extent


def pad_by_less(x: Tensor, before: Sequence[Count], after: Sequence[Count], name: str = "pad") -> Tensor:
    """``pad`` with a mirror image, where less is added at each end than there is, whatever the extents are."""
    shape = [simplify(extent + (b + a)) for extent, b, a in zip(x.shape, before, after, strict=True)]
    return compute(shape, _from_itself(x, before, after, _mirrored_once), name=name)


_INDICES: dict[str, Callable[[Expr, Expr, Count, Count], Expr]] = {
    "edge": _nearest,
    "reflect": _mirrored,
    "wrap": _wrapped,
}
"""Of each mode the element to read for an index that may lie outside, by so much as is added before and after."""
