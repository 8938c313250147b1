"""Two programs that take turns: the one that is judged, and the one that it is judged by."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable

from ..base.dataclass import dataclass
from ..runtime.contenders.latency import median_interval


@dataclass(frozen=True, slots=True)
class RoundLimits:
    """How many rounds there are: ``least``, and up to ``most`` while the interval of the ratio is wider than a share
    ``wide`` of it, and has not shown that the candidate is slower."""

    least: int = 5
    most: int = 15
    wide: float = 0.04


@dataclass(frozen=True, slots=True)
class PairedRounds:
    """Seconds of each round, of the two."""

    reference: tuple[float, ...]
    candidate: tuple[float, ...]

    @property
    def ratios(self) -> tuple[float, ...]:
        """How many times as fast as the reference the candidate was, round by round; none where the clock saw nothing
        pass."""
        pairs = zip(self.reference, self.candidate, strict=True)
        return tuple(a / b for a, b in pairs) if all(s > 0 for s in (*self.reference, *self.candidate)) else ()

    @property
    def ratio(self) -> float:
        """How many times as fast as the reference the candidate was: the ratio of the medians, or of the fastest rounds
        where that is less. What else runs on a machine adds time, and may do so in most rounds of one of the two."""
        medians = statistics.median(self.reference) / statistics.median(self.candidate)
        return min(medians, min(self.reference) / min(self.candidate))


def take_turns(
    reference: Callable[[], float], candidate: Callable[[], float], limits: RoundLimits, rng: random.Random
) -> PairedRounds:
    """Rounds in which both run once, in random order. Each gives the seconds that it took."""
    taken: list[tuple[float, float]] = []
    while len(taken) < limits.most:
        if rng.random() < 0.5:
            first = reference()
            taken.append((first, candidate()))
        else:
            second = candidate()
            taken.append((reference(), second))
        if len(taken) >= limits.least and _is_clear(taken, limits):
            break
    return PairedRounds(*zip(*taken, strict=True))


def _is_clear(taken: list[tuple[float, float]], limits: RoundLimits) -> bool:
    if not all(a > 0 and b > 0 for a, b in taken):
        return True
    low, high = median_interval([a / b for a, b in taken])
    return high - low <= limits.wide * low or high < 1 - limits.wide
