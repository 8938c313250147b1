"""A tuning record: what an implementation of an operator costs for a workload on a target, as one line of JSON.

``records.py`` looks records up, and selection goes by what it finds.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite

from ..codegen.host import resolve_target
from ..graph.node import Call
from ..ir.errors import LoopwrightError, RecordError
from ..ir.target import Target
from ..ir.version import VERSION
from ..lowering.trace import Trace
from .json_object import read_object
from .workload import TargetKey, Workload, canonical_json, workload_of

FORMAT = 1
"""Of the lines; it grows when a program that reads the old form would misread the new one."""
_NEEDED = {
    "format": int,
    "workload": dict,
    "target": dict,
    "implementation": str,
    "seconds": tuple[float, ...],
    "versions": dict,
}
_OPTIONAL = {"config": dict, "trace": dict, "time": str}


def _own_versions() -> dict[str, str]:
    return {"loopwright": VERSION, "llvmlite": llvmlite.__version__}


@dataclass(frozen=True, slots=True)
class TuningRecord:
    """Costs of one implementation. ``config`` (canonical JSON text) or ``trace`` say how it was made to measure them;
    without either it is measured as it comes. ``seconds`` are all that was measured; the cost is their median.
    """

    workload: Workload
    target: TargetKey
    implementation: str
    seconds: tuple[float, ...]
    config: str | None = None
    trace: Trace | None = None
    versions: tuple[tuple[str, str], ...] = ()
    time: str | None = None

    @classmethod
    def of(
        cls,
        call: Call,
        target: str | Target | None,
        implementation: str,
        seconds: Sequence[float],
        config: Mapping[str, Any] | None = None,
        trace: Trace | None = None,
        time: str | None = None,
    ) -> TuningRecord:
        """The record of a call, whose dimensions must be numbers. ``time`` is for people: when it was measured.

        Raises ``RecordError`` for what no record can hold.
        """
        _check_given(call, implementation, trace)
        workload = workload_of(call)
        if workload is None:
            raise RecordError(f"a record is of known shapes; {call.op.name} is called with {_types(call)}")
        made = cls(
            workload,
            TargetKey.of(resolve_target(target)),
            implementation,
            _numbers(seconds),
            None if config is None else _json_text(config),
            trace,
            tuple(sorted(_own_versions().items())),
            time,
        )
        made._check()
        return made

    @property
    def cost(self) -> float:
        """Seconds: the median of what was measured."""
        return statistics.median(self.seconds)

    def _check(self) -> None:
        if not self.seconds or not all(math.isfinite(s) and s > 0 for s in self.seconds):
            raise RecordError(f"the costs of a record are seconds, at least one and all positive, found {self.seconds}")
        if self.config is not None and self.trace is not None:
            raise RecordError("a record has a config or a trace, not both")

    def to_json(self) -> dict[str, Any]:
        """The record as a JSON object."""
        made: dict[str, Any] = {
            "format": FORMAT,
            "workload": self.workload.to_json(),
            "target": self.target.to_json(),
            "implementation": self.implementation,
        }
        if self.config is not None:
            made["config"] = json.loads(self.config)
        if self.trace is not None:
            made["trace"] = json.loads(self.trace.to_json())
        made |= {"seconds": list(self.seconds), "versions": dict(self.versions)}
        return made if self.time is None else made | {"time": self.time}

    @classmethod
    def from_json(cls, data: object) -> TuningRecord:
        """The record that ``to_json`` gave. Raises ``RecordError`` for anything else."""
        given = read_object("record", data, _NEEDED, _OPTIONAL)
        made = cls(
            Workload.from_json(given["workload"]),
            TargetKey.from_json(given["target"]),
            given["implementation"],
            tuple(map(float, given["seconds"])),
            canonical_json(given["config"]) if "config" in given else None,
            _trace(given["trace"]) if "trace" in given else None,
            tuple(sorted((name, str(version)) for name, version in given["versions"].items())),
            given.get("time"),
        )
        made._check()
        return made


def _check_given(call: object, implementation: object, trace: object) -> None:
    if not isinstance(call, Call):
        raise RecordError(f"a record is of a call of an operator, as lw.nn.relu(x) makes it, found {call!r}")
    if not isinstance(implementation, str):
        raise RecordError(f"a record has the name of an implementation, found {implementation!r}")
    if not isinstance(trace, Trace | None):
        raise RecordError(f"a record has a trace as s.trace or lw.Trace.from_json(text) gives it, found {trace!r}")


def _numbers(seconds: Sequence[float]) -> tuple[float, ...]:
    try:
        return tuple(map(float, seconds))
    except (TypeError, ValueError):
        raise RecordError(f"the costs of a record are a list of seconds, found {seconds!r}") from None


def _types(call: Call) -> str:
    return ", ".join(str(argument.type) for argument in call.args)


def _json_text(config: Mapping[str, Any]) -> str:
    try:
        return canonical_json(dict(config))
    except (TypeError, ValueError) as error:
        raise RecordError(f"a config is an object of JSON, found {config!r}: {error}") from error


def _trace(data: object) -> Trace:
    try:
        return Trace.from_json(data)  # type: ignore[arg-type]
    except LoopwrightError as error:
        raise RecordError(f"its trace is none: {error}") from error
