"""What the rounds of contenders come to: percentiles of their calls, and ratios with intervals."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import accumulate
from math import comb
from typing import Any

import numpy as np

from ...base.dataclass import dataclass
from ...base.quantities import digits, ratio_text

PERCENTILES = (50, 90, 99)
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times as long another one took: the median over rounds, and an interval that holds the true median with
    ``CONFIDENCE``."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{ratio_text(self.median)} ({digits(self.low)}–{digits(self.high)})"


@dataclass(frozen=True, slots=True)
class Latency:
    """The calls of a contender with one number of threads: ``rounds`` are the seconds of its median call in each,
    ``samples`` the seconds of all calls. ``difference`` is how far its outputs are from ours, None of ours itself, and
    ``allowed`` how far they may be. ``problem`` is why it did not get through; it has no times then."""

    contender: str
    threads: int
    rounds: tuple[float, ...] = ()
    samples: tuple[float, ...] = ()
    difference: float | None = None
    allowed: float = 0.0
    problem: str = ""

    @property
    def median(self) -> float:
        """Seconds of the median call."""
        return self.percentile(50)

    @property
    def agrees(self) -> bool:
        """Whether its outputs are ours, but for rounding."""
        return self.difference is None or self.difference <= self.allowed

    def percentile(self, percent: float) -> float:
        """Seconds that so many of hundred calls take at the most."""
        return float(np.percentile(self.samples, percent))

    def ratio_to(self, ours: Latency) -> Ratio:
        """How many times as long it takes as ours, round by round."""
        ratios = [theirs / our for theirs, our in zip(self.rounds, ours.rounds, strict=False)]
        return Ratio(statistics.median(ratios), *median_interval(ratios))

    def to_json(self, ours: Latency) -> dict[str, Any]:
        """All as JSON values, times in milliseconds; ``ratio`` is to ``ours``."""
        facts: dict[str, Any] = {"contender": self.contender, "threads": self.threads}
        if self.problem:
            return facts | {"problem": self.problem}
        if self is not ours:
            ratio = self.ratio_to(ours)
            facts["ratio"] = {"median": ratio.median, "low": ratio.low, "high": ratio.high}
            finite = self.difference is not None and np.isfinite(self.difference)
            facts |= {"difference": self.difference if finite else None, "agrees": self.agrees}
        mean = statistics.fmean(self.samples)
        return facts | {
            "calls": len(self.samples),
            "least_ms": min(self.samples) * 1e3,
            **{f"p{p}_ms": self.percentile(p) * 1e3 for p in PERCENTILES},
            "mean_ms": mean * 1e3,
            "calls_per_second": 1 / mean,
        }


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Two of the values between which the median of what they are drawn from lies with ``CONFIDENCE``, whatever its
    distribution: those of which the sign test (Dixon and Mood, 1946) rejects neither. Of fewer than six values these
    are the least and the largest, whose confidence is less."""
    ordered, count = sorted(values), len(values)
    tails = accumulate(comb(count, beyond) for beyond in range(count // 2))
    left_out = max(0, sum(2 * tail <= (1 - CONFIDENCE) * 2**count for tail in tails) - 1)
    return ordered[left_out], ordered[count - 1 - left_out]
