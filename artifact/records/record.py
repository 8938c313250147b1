"""A record: what an implementation of an operator costs for a workload on a target, as one line of JSON.

Plain data, which the compiler (``compiler/selection/tuning_record.py``) and engines (``runtime/tactics/records.py``)
look up.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping
from typing import Any, Self

from ...base.brief import BriefRepr
from ...base.dataclass import dataclass
from ...base.errors import RecordError
from ...base.json_object import read_object
from ...base.version import VERSION
from .workload import TargetKey, Workload, canonical_json

FORMAT = 2
"""Of the lines; it grows when a program that reads the old form would misread the new one. In format 1 decisions were
called the config, and traces had none."""
_NEEDED = {
    "format": int,
    "workload": dict,
    "target": dict,
    "implementation": str,
    "seconds": tuple[float, ...],
    "versions": dict,
}
_OPTIONAL = {"decisions": dict, "config": dict, "trace": dict, "threads": int, "time": str}


def own_versions() -> tuple[tuple[str, str], ...]:
    """What records of this process are made by."""
    import llvmlite

    return ("llvmlite", llvmlite.__version__), ("loopwright", VERSION)


@dataclass(frozen=True, slots=True, repr=False)
class Record(BriefRepr):
    """Costs of one implementation. ``decisions`` or ``trace_text`` (both canonical JSON) say how it was made to measure
    them; without either it is measured as it comes. ``threads`` is the most that a run used, None where nobody said.
    ``seconds`` are all that was measured; the cost is their median.
    """

    workload: Workload
    target: TargetKey
    implementation: str
    seconds: tuple[float, ...]
    decisions: str | None = None
    trace_text: str | None = None
    threads: int | None = None
    versions: tuple[tuple[str, str], ...] = ()
    time: str | None = None

    @property
    def cost(self) -> float:
        """Seconds: the median of what was measured."""
        return statistics.median(self.seconds)

    def is_of_threads(self, threads: int | None) -> bool:
        """Whether it counts for runs of so many threads, as far as both are known."""
        return threads is None or self.threads in (None, threads)

    def check(self) -> None:
        """Raises ``RecordError`` for what no record can hold."""
        if not self.seconds or not all(math.isfinite(s) and s > 0 for s in self.seconds):
            raise RecordError(f"the costs of a record are seconds, at least one and all positive, found {self.seconds}")
        if self.decisions is not None and self.trace_text is not None:
            raise RecordError("a record has decisions or a trace, not both")
        if self.threads is not None and self.threads < 1:
            raise RecordError(f"a record is of 1 thread or more, found {self.threads}")
        try:
            canonical_json(self.to_json()).encode()
        except UnicodeEncodeError as error:  # half of a pair of surrogates, which JSON can spell
            raise RecordError(f"a record has a text that UTF-8 has no bytes for: {error}") from error

    def to_json(self) -> dict[str, Any]:
        """The record as a JSON object."""
        texts = {"decisions": self.decisions, "trace": self.trace_text}
        plain = {"threads": self.threads, "time": self.time}
        return {
            "format": FORMAT,
            "workload": self.workload.to_json(),
            "target": self.target.to_json(),
            "implementation": self.implementation,
            **{name: json.loads(text) for name, text in texts.items() if text is not None},
            "seconds": list(self.seconds),
            "versions": dict(self.versions),
            **{name: value for name, value in plain.items() if value is not None},
        }

    @classmethod
    def from_json(cls, data: object) -> Self:
        """The record that ``to_json`` gave. Raises ``RecordError`` for anything else."""
        given = read_object("record", data, _NEEDED, _OPTIONAL)
        made = cls(
            Workload.from_json(given["workload"]),
            TargetKey.from_json(given["target"]),
            given["implementation"],
            tuple(map(float, given["seconds"])),
            _decisions_text(given),
            canonical_json(given["trace"]) if "trace" in given else None,
            given.get("threads"),
            tuple(sorted((name, str(version)) for name, version in given["versions"].items())),
            given.get("time"),
        )
        made.check()
        return made


def _decisions_text(given: Mapping[str, Any]) -> str | None:
    """The decisions of a record, or the config of one of format 1, as canonical JSON."""
    found = [given[name] for name in ("decisions", "config") if name in given]
    if len(found) > 1:
        raise RecordError("a record has decisions or, of format 1, a config, not both")
    return canonical_json(found[0]) if found else None
