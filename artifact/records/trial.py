"""A trial: what came of trying one candidate for a task of tuning, as one line of JSON beside the records.

Nothing is chosen by trials. They let a run of tuning that was interrupted go on where it was.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, ClassVar, Self

from ...base.brief import BriefRepr
from ...base.dataclass import dataclass
from ...base.errors import RecordError
from ...base.json_object import read_object
from .note import NOTE_FORMAT
from .workload import canonical_json

_NEEDED = {
    "format": int,
    "kind": str,
    "task": str,
    "threads": int,
    "implementation": str,
    "outcome": str,
}
_OPTIONAL = {
    "decisions": dict,
    "ratio": float,
    "low": float,
    "high": float,
    "seconds": tuple[float, ...],
    "nest": str,
    "detail": str,
    "cpu": str,
}


@dataclass(frozen=True, slots=True, repr=False)
class Trial(BriefRepr):
    """``task`` is the key of a fused function, of all that its code depends on, and ``threads`` how many a run used.
    ``decisions`` are canonical JSON, None where the implementation has none. ``outcome`` is one of those of
    ``tuning/outcome.py``. ``ratio`` is how many times as fast as the untuned code it was, between ``low`` and ``high``;
    ``seconds`` are those of a call, in each round. ``nest`` is a digest of its loop nest, ``cpu`` where it ran."""

    KIND: ClassVar[str] = "trial"

    task: str
    threads: int
    implementation: str
    decisions: str | None
    outcome: str
    ratio: float = 0.0
    low: float = 0.0
    high: float = 0.0
    seconds: tuple[float, ...] = ()
    nest: str = ""
    detail: str = ""
    cpu: str = ""

    def to_json(self) -> dict[str, Any]:
        """The trial as a JSON object; fields that say nothing are left out."""
        known = {name: value for name, value in asdict(self).items() if value not in (None, "", 0.0, ())}
        if self.decisions is not None:
            known["decisions"] = json.loads(self.decisions)
        return {"format": NOTE_FORMAT, "kind": self.KIND, **known}

    @classmethod
    def from_json(cls, data: object) -> Self:
        """The trial that ``to_json`` gave. Raises ``RecordError`` for anything else."""
        given = read_object("trial", data, _NEEDED, _OPTIONAL)
        if given["threads"] < 1:
            raise RecordError(f"a trial is of 1 thread or more, found {given['threads']}")
        decisions = canonical_json(given["decisions"]) if "decisions" in given else None
        rest = {name: value for name, value in given.items() if name not in ("format", "kind", "decisions")}
        return cls(**rest, decisions=decisions)
