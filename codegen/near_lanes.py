"""Lanes at known distances from each other that a few vectors of memory span, for loads and shuffles, no gather."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.buffer import Buffer
from ..ir.constants import const_int
from ..ir.expr import Expr
from .facts import as_ramp, known_lanes, lane_offsets

MAX_SHUFFLED_STRIDE = 4


def lanes_behind_mask(buffer: Buffer, index: Expr, condition: Expr) -> tuple[Expr, tuple[int, ...]] | None:
    """Lanes as ``lane_offsets`` gives them, for a masked load of elements that are no neighbours, which would be a
    gather. None unless a few vectors span these elements and may be read whole: all lanes are inside the buffer, or it
    is known which ones the mask hides. These are put where one is that it does not hide."""
    near, ramp, shown = lane_offsets(index), as_ramp(index), known_lanes(condition)
    if near is None or (ramp is not None and const_int(ramp[1]) in (-1, 0, 1)):
        return None
    base, offsets = near
    if shown is not None and any(shown):
        seen = offsets[shown.index(True)]
        offsets = tuple(offset if is_shown else seen for offset, is_shown in zip(offsets, shown, strict=True))
    elif not _all_inside(buffer, base, offsets):
        return None
    return (base, offsets) if _few_vectors_span(offsets) else None


def lies_inside(buffer: Buffer, index: Expr) -> bool:
    """Whether all lanes are known to be inside of a buffer."""
    near = lane_offsets(index)
    return near is not None and _all_inside(buffer, *near)


def _all_inside(buffer: Buffer, base: Expr, offsets: Sequence[int]) -> bool:
    start, extent = const_int(base), const_int(buffer.shape[0]) if len(buffer.shape) == 1 else None
    return start is not None and extent is not None and 0 <= start + min(offsets) <= start + max(offsets) < extent


def _few_vectors_span(offsets: Sequence[int]) -> bool:
    return max(offsets) - min(offsets) < MAX_SHUFFLED_STRIDE * len(offsets)


def shuffled_lanes(index: Expr, masked: bool) -> tuple[Expr, tuple[int, ...]] | None:
    """Lanes as ``lane_offsets`` gives them, if they are loaded as the few vectors that span them, and shuffled."""
    ramp = as_ramp(index)
    if ramp is not None and (not masked or const_int(ramp[1]) in (-1, 0, 1)):
        return None
    near = lane_offsets(index)
    return near if near is not None and _few_vectors_span(near[1]) else None


def first_whole_vector(buffer: Buffer, base: Expr, offsets: Sequence[int]) -> int | None:
    """Where the whole vectors of a buffer that have all these elements begin, seen from ``base``, if that is known."""
    at, extent, lanes = const_int(base), const_int(buffer.shape[0]) if len(buffer.shape) == 1 else None, len(offsets)
    if at is None or extent is None:
        return None
    begin, end = (at + min(offsets)) // lanes * lanes, (at + max(offsets)) // lanes * lanes + lanes
    return begin - at if end <= extent else None
