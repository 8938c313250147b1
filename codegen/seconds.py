"""Durations as people read them."""

from __future__ import annotations


def seconds_text(seconds: float) -> str:
    """With a unit, to three digits: ``"1.5 ms"``."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
