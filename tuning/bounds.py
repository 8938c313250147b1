"""How sure a gain is: a bound that holds whatever the distribution of the noise."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import comb


def lower_bound(ratios: Sequence[float], doubt: float) -> float:
    """A number that the median of what the ratios are drawn from exceeds, but for a probability of ``doubt``; 0 where
    there are too few of them for that. By the one-sided sign test (Dixon and Mood, 1946)."""
    ordered, count = sorted(ratios), len(ratios)
    tails = accumulate(comb(count, below) for below in range(count))
    exceeded = sum(tail <= doubt * 2**count for tail in tails)
    return ordered[exceeded - 1] if exceeded else 0.0


def is_clear(ratios: Sequence[float], doubt: float) -> bool:
    """Whether the median of what the ratios are drawn from is on one side of 1, but for a probability of ``doubt``."""
    return lower_bound(ratios, doubt) > 1 or lower_bound([1 / ratio for ratio in ratios], doubt) > 1
