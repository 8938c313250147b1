"""The numbers of a box's elements in row-major order, in which the last index runs fastest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from .constants import ZERO, const_int
from .expr import Expr


@overload
def ravel_index(indices: Sequence[int], extents: Sequence[int]) -> int: ...
@overload
def ravel_index(indices: Sequence[Expr], extents: Sequence[int | Expr]) -> Expr: ...
def ravel_index(indices: Sequence[int | Expr], extents: Sequence[int | Expr]) -> int | Expr:
    """The number of the element with these indices, of a box with these extents; 0 of a box without axes."""
    if not indices:
        return ZERO
    number = indices[0]
    for index, extent in zip(indices[1:], extents[1:], strict=True):
        number = number * extent + index
    return number


def unravel_index(number: Expr, extents: Sequence[int | Expr]) -> tuple[Expr, ...]:
    """The indices of the element with this number. Where that is too large, the first of an axis that is longer than 1
    is beyond its extent."""
    longer = [axis for axis, extent in enumerate(extents) if not _is_one(extent)]
    indices = [ZERO] * len(extents)
    for axis in reversed(longer):
        indices[axis] = number % extents[axis] if axis > longer[0] else number
        number = number // extents[axis]
    return tuple(indices)


def _is_one(extent: int | Expr) -> bool:
    return (extent if isinstance(extent, int) else const_int(extent)) == 1
