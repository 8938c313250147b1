"""Why an implementation serves a call, as plain data: it goes with compiled functions into caches and library files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .seconds import seconds_text


@dataclass(frozen=True, slots=True)
class ClauseReport:
    """A clause of a condition; ``holds`` None: symbolic extents leave it open, it would be a guard at run time."""

    text: str
    holds: bool | None

    def __str__(self) -> str:
        return self.text + {True: " holds", False: " fails", None: " is a guard"}[self.holds]


@dataclass(frozen=True, slots=True)
class CostReport:
    """A recorded cost in seconds: the median, least and largest of ``count`` measurements; on what machine; of which
    config (JSON text) or trace."""

    median: float
    least: float
    most: float
    count: int
    level: str
    how: str

    def __str__(self) -> str:
        spread = f" ({seconds_text(self.least)} to {seconds_text(self.most)})" if self.count > 1 else ""
        return f"{seconds_text(self.median)}{spread} on {self.level}{f' with {self.how}' if self.how else ''}"


@dataclass(frozen=True, slots=True)
class CandidateReport:
    """An implementation that was looked at."""

    implementation: str
    plevel: int
    clauses: tuple[ClauseReport, ...]
    recorded: CostReport | None

    @property
    def verdict(self) -> str:
        """``"valid"``, ``"rejected"``, or ``"guarded"``: valid for some extents of symbolic dimensions."""
        if any(clause.holds is False for clause in self.clauses):
            return "rejected"
        return "guarded" if any(clause.holds is None for clause in self.clauses) else "valid"

    def __str__(self) -> str:
        conditions = f": {', '.join(map(str, self.clauses))}" if self.clauses else ""
        cost = f"; recorded {self.recorded}" if self.recorded is not None else ""
        return f"{self.implementation} ({self.plevel}), {self.verdict}{conditions}{cost}"


@dataclass(frozen=True, slots=True)
class Choice:
    """Which implementation serves a call (its operator, types and attributes as text), why, and among what."""

    op: str
    call: str
    implementation: str
    reason: str
    candidates: tuple[CandidateReport, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.call}: {self.implementation}, {self.reason}"]
        lines += [f"  {'→' if c.implementation == self.implementation else ' '} {c}" for c in self.candidates]
        return "\n".join([*lines, *(f"    {note}" for note in self.notes)])

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Choice:
        """The choice that ``to_json`` gave."""
        candidates = tuple(_candidate(c) for c in data["candidates"])
        return cls(**{**data, "candidates": candidates, "notes": tuple(data["notes"])})


def _candidate(data: Mapping[str, Any]) -> CandidateReport:
    clauses = tuple(ClauseReport(**clause) for clause in data["clauses"])
    recorded = CostReport(**data["recorded"]) if data["recorded"] is not None else None
    return CandidateReport(data["implementation"], data["plevel"], clauses, recorded)
