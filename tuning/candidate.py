"""A candidate: an implementation, and what its schedule decides."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ..artifact.records.workload import canonical_json
from ..base.brief import BriefRepr
from ..base.dataclass import dataclass
from ..lowering.decisions import DecisionValue


@dataclass(frozen=True, slots=True, repr=False)
class TuningCandidate(BriefRepr):
    """The name of an implementation, and a value for each of its decisions, in their order."""

    implementation: str
    decisions: tuple[tuple[str, DecisionValue], ...] = ()

    @property
    def decided(self) -> dict[str, DecisionValue]:
        """The values by the names of the decisions."""
        return dict(self.decisions)

    @property
    def decisions_json(self) -> str | None:
        """The decisions as tuning records have them: canonical JSON, None where there are none."""
        return canonical_json(self.decided) if self.decisions else None

    @property
    def key(self) -> tuple[str, str | None]:
        """What tells it from others, ``True`` from 1 too."""
        return self.implementation, self.decisions_json

    def __str__(self) -> str:
        """``matmul.paneled(pack=True, rows=12)``."""
        return f"{self.implementation}({', '.join(f'{name}={value!r}' for name, value in self.decisions)})"


def decided_of(text: str | None) -> Mapping[str, DecisionValue]:
    """The decisions that ``decisions_json`` gave."""
    found: dict[str, DecisionValue] = {} if text is None else json.loads(text)
    return found
