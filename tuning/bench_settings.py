"""How a bench of workers measures."""

from __future__ import annotations

from ..base.dataclass import dataclass
from .jobs import COMPILE_SECONDS, MEASURE_SECONDS


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """``compile_width`` and ``measure_width`` are how many jobs run at once, ``threads`` what a run uses. Candidates
    that take longer than the seconds have hung."""

    compile_width: int
    measure_width: int
    threads: int
    seed: int = 0
    compile_seconds: float = COMPILE_SECONDS
    measure_seconds: float = MEASURE_SECONDS
