"""How many elements of a loop are a vector."""

from __future__ import annotations

from ..sketch import StageSketch


def lane_count(at: StageSketch, extent: int | None) -> int:
    """The lanes of a vector, or as many as there are."""
    return at.lanes if extent is None else max(1, min(at.lanes, extent))
