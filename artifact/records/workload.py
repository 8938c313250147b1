"""What records are looked up by: workloads and targets, as plain data that compares and goes into JSON."""

from __future__ import annotations

import json
from typing import Any

from ...base.brief import BriefRepr
from ...base.dataclass import dataclass
from ...base.errors import RecordError
from ...base.json_object import read_object
from ...base.target import Target


@dataclass(frozen=True, slots=True)
class TensorKey:
    """Shape and dtype of an argument."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True, repr=False)
class Workload(BriefRepr):
    """What is computed: an operator, its arguments (tuples taken apart), its attributes as canonical JSON text."""

    op: str
    arguments: tuple[TensorKey, ...]
    attributes: str = "{}"

    def to_json(self) -> dict[str, Any]:
        """The workload as JSON values: ``{"op": …, "arguments": [{"shape": […], "dtype": …}, …], "attributes":
        {…}}``."""
        arguments = [{"shape": list(a.shape), "dtype": a.dtype} for a in self.arguments]
        return {"op": self.op, "arguments": arguments, "attributes": json.loads(self.attributes)}

    @classmethod
    def from_json(cls, data: object) -> Workload:
        """The workload that ``to_json`` gave. Raises ``RecordError`` for anything else."""
        given = read_object("workload", data, {"op": str, "arguments": list, "attributes": dict})
        tensor = {"shape": tuple[int, ...], "dtype": str}
        arguments = tuple(TensorKey(**read_object("argument", a, tensor)) for a in given["arguments"])
        return cls(given["op"], arguments, canonical_json(given["attributes"]))


def canonical_json(value: object) -> str:
    """JSON text that equal values share, whatever the order of their fields. Raises ``ValueError`` where JSON has none,
    as for NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True, slots=True)
class TargetKey:
    """What a record says of its target: ``line`` and the sizes of the caches make the same code again."""

    line: str
    arch: str
    cpu: str
    keys: tuple[str, ...]
    l1_bytes: int
    l2_bytes: int

    @classmethod
    def of(cls, target: Target) -> TargetKey:
        """The key of a target. Raises ``RecordError`` for anything else."""
        if not isinstance(target, Target):
            raise RecordError(f"records are of a Target, as resolve_target gives it, found {target!r}")
        return cls(str(target), target.arch, target.cpu, target.keys, target.l1_bytes, target.l2_bytes)

    def to_json(self) -> dict[str, Any]:
        """The fields as records have them in a file; ``keys`` becomes a list."""
        caches = {"l1_bytes": self.l1_bytes, "l2_bytes": self.l2_bytes}
        return {"line": self.line, "arch": self.arch, "cpu": self.cpu, "keys": list(self.keys), **caches}

    @classmethod
    def from_json(cls, data: object) -> TargetKey:
        """The key that ``to_json`` gave. Raises ``RecordError`` for anything else."""
        texts = dict.fromkeys(("line", "arch", "cpu"), str)
        sizes = dict.fromkeys(("l1_bytes", "l2_bytes"), int)
        return cls(**read_object("target", data, {**texts, "keys": tuple[str, ...], **sizes}))
