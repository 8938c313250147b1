"""When memory that has grown is given back: where each of the last runs needed much less than is held."""

from __future__ import annotations

IDLE_RUNS = 1000
"""So many runs in a row."""
AMPLE = 4
"""So many times as much as a run needed is much more."""


def is_ample(held: int, needed: int) -> bool:
    """Whether much more memory is held than a run needed."""
    return held > AMPLE * needed
