"""Why an implementation serves a call, as plain data: it goes with compiled functions into caches and library files."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ..base.brief import BriefRepr
from ..base.dataclass import dataclass
from ..base.quantities import seconds_text

_WORDS = {True: "holds", False: "fails", None: "guard"}


@dataclass(frozen=True, slots=True)
class ClauseReport:
    """A clause of a condition; ``holds`` None: symbolic extents leave it open, it would be a guard at run time."""

    text: str
    holds: bool | None

    def __str__(self) -> str:
        return f"{_WORDS[self.holds]}: {self.text}"


@dataclass(frozen=True, slots=True)
class CostReport:
    """A recorded cost in seconds: the median, least and largest of ``count`` measurements; on what machine; with
    which decisions (JSON text) or trace."""

    median: float
    least: float
    most: float
    count: int
    level: str
    how: str

    def __str__(self) -> str:
        spread = f" ({seconds_text(self.least)} to {seconds_text(self.most)})" if self.count > 1 else ""
        return f"{seconds_text(self.median)}{spread} on {self.level}{f' with {self.how}' if self.how else ''}"


@dataclass(frozen=True, slots=True, repr=False)
class CandidateReport(BriefRepr):
    """An implementation that was looked at."""

    implementation: str
    plevel: int
    clauses: tuple[ClauseReport, ...]
    recorded: CostReport | None
    refused: str | None = None
    """The error of its schedule, where that is illegal for the call; the next implementation was taken then."""

    @property
    def verdict(self) -> str:
        """``"valid"``, ``"rejected"``, ``"refused"``, or ``"guarded"``: valid for some extents of symbolic
        dimensions."""
        if self.refused is not None:
            return "refused"
        if any(clause.holds is False for clause in self.clauses):
            return "rejected"
        return "guarded" if any(clause.holds is None for clause in self.clauses) else "valid"


@dataclass(frozen=True, slots=True, repr=False)
class Choice(BriefRepr):
    """Which implementation serves a call (its operator, types and attributes as text), why, and among what.

    A call may have several, which a run tests in turn: ``kernel`` is the number of this one. ``anchor``: whether the
    function has the schedule of this implementation.
    """

    op: str
    call: str
    implementation: str
    reason: str
    candidates: tuple[CandidateReport, ...] = ()
    notes: tuple[str, ...] = ()
    kernel: int = 0
    anchor: bool = False

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values; of candidates also the verdict."""
        candidates = [
            asdict(c) | {"clauses": [asdict(clause) for clause in c.clauses], "verdict": c.verdict}
            for c in self.candidates
        ]
        return asdict(self) | {"candidates": candidates, "notes": list(self.notes)}
