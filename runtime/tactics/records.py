"""What tactics were measured to take: files with a tuning record a line, which ``lw.TuningRecords`` reads too."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from ...codegen.model import OpCall
from ...ir.errors import RecordError
from ...ir.target import Target
from ...ir.version import VERSION

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class TacticRecord:
    """Seconds that a tactic took for a call."""

    call: OpCall
    tactic: str
    seconds: tuple[float, ...]

    def to_json(self, target: Target) -> dict[str, Any]:
        """The record as a tuning record has it."""
        return {
            "format": _FORMAT,
            **_key(self.call, target),
            "implementation": self.tactic,
            "seconds": list(self.seconds),
            "versions": {"loopwright": VERSION},
        }


class TacticRecords:
    """The records of a file, and those that are added to it. One that is missing is empty."""

    def __init__(self, path: str | os.PathLike[str] | None, target: Target) -> None:
        self._path = None if path is None else Path(path)
        self._target = target
        self._costs: dict[str, dict[str, float]] = {}
        for line in self._lines():
            self._note(line)

    def costs(self, call: OpCall) -> Mapping[str, float]:
        """Seconds by the names of the tactics that are recorded for a call on this target."""
        return self._costs.get(json.dumps(_key(call, self._target), sort_keys=True), {})

    def add(self, record: TacticRecord) -> None:
        """Keep a record, in the file too if there is one. Raises ``RecordError`` where that cannot be written."""
        data = record.to_json(self._target)
        self._note(data)
        if self._path is None:
            return
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(data) + "\n")
        except OSError as error:
            raise RecordError(f"the records {self._path} cannot be written: {error.strerror}") from error

    def _lines(self) -> list[dict[str, Any]]:
        if self._path is None or not self._path.exists():
            return []
        try:
            text = self._path.read_text(encoding="utf-8")
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        except (OSError, ValueError) as error:
            raise RecordError(f"the records {self._path} cannot be read: {error}") from error

    def _note(self, data: Any) -> None:
        """Of several records of one tactic the last counts."""
        try:
            key = json.dumps({"workload": data["workload"], "target": data["target"]}, sort_keys=True)
            self._costs.setdefault(key, {})[data["implementation"]] = median(data["seconds"])
        except (KeyError, TypeError, ValueError) as error:
            raise RecordError(f"{self._path} has a line that is no record: {error!r}") from error


def _key(call: OpCall, target: Target) -> dict[str, Any]:
    """What a record is looked up by; the call is of known shapes."""
    arguments = [{"shape": list(spec.shape), "dtype": str(spec.dtype)} for spec in call.inputs]
    machine = {"line": str(target), "arch": target.arch, "cpu": target.cpu, "keys": list(target.keys)}
    return {
        "workload": {"op": call.op, "arguments": arguments, "attributes": json.loads(call.attributes)},
        "target": machine | {"l1_bytes": target.l1_bytes, "l2_bytes": target.l2_bytes},
    }
