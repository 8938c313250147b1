"""What may come of trying a candidate. Each is noted in the file of records, and the run goes on."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from ..base.brief import BriefRepr
from ..base.dataclass import dataclass


class OutcomeKind(StrEnum):
    """``MEASURED`` and ``SAME`` have times, all others are failures."""

    MEASURED = "measured"
    SAME = "same code"  # as the untuned code, or as another candidate
    REFUSED = "refused"  # the schedule is illegal in the fused function
    FAILED = "failed"  # an error of ours or of the operator's code, or an error code of the kernel
    CRASHED = "crashed"  # the process died, compiling or running
    HUNG = "hung"
    WRONG = "wrong result"
    NOT_FINITE = "not finite"  # where the untuned code's results are
    TIMELESS = "no time"  # the clock saw nothing pass
    FOREIGN = "foreign worker"  # of another version or cpu
    LOST = "lost"  # with its worker


UNNOTED = (OutcomeKind.FOREIGN, OutcomeKind.LOST)
"""What says nothing of a candidate."""


@dataclass(frozen=True, slots=True, repr=False)
class Outcome(BriefRepr):
    """``ratio`` is how many times as fast as the untuned code a candidate is, 0 where that is not known, and lies
    between ``low`` and ``high``. ``seconds`` are those of a call in each round, ``code`` the compiled function,
    ``nest`` a digest of its loop nest."""

    kind: OutcomeKind
    ratio: float = 0.0
    low: float = 0.0
    high: float = 0.0
    seconds: tuple[float, ...] = ()
    ratios: tuple[float, ...] = ()
    code: bytes = b""
    nest: str = ""
    detail: str = ""
    cpu: str = ""

    @property
    def is_timed(self) -> bool:
        """Whether it has a time."""
        return self.ratio > 0

    @classmethod
    def of(cls, answer: dict[str, Any]) -> Outcome:
        """What a worker answered."""
        return cls(**{**answer, "kind": OutcomeKind(answer["kind"])})


LOST = Outcome(OutcomeKind.LOST, detail="its worker was lost, again and again")
