"""Samples on machines that do other things too: what is preempted adds time to some calls, and takes none away."""

from __future__ import annotations

from collections.abc import Callable

BURSTS = 8
"""A sample is of so many bursts of calls, if it has as many calls, of which the fastest counts."""


def fastest_burst(seconds_of: Callable[[int], float], count: int) -> float:
    """Seconds of a call in the fastest of the bursts of a sample of ``count`` calls; ``seconds_of`` makes so many calls
    in a row, and gives the seconds of all."""
    bursts = min(BURSTS, count)
    calls = count // bursts
    return min(seconds_of(calls) for _ in range(bursts)) / calls
