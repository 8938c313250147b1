"""A tuning record: what an implementation of an operator costs for a workload on a target, as one line of JSON.

``records.py`` looks records up, and selection goes by what it finds.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import llvmlite

from ..codegen.host import resolve_target
from ..graph.node import Call, Function
from ..graph.types import leaf_types
from ..graph.visit import post_order
from ..ir.errors import LoopwrightError, RecordError, TypeInferenceError
from ..ir.target import Target
from ..ir.version import VERSION
from ..lowering.trace import Trace

FORMAT = 1
"""Of the lines; it grows when a program that reads the old form would misread the new one."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TensorKey:
    """Shape and dtype of an argument."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Workload:
    """What is computed: an operator, its arguments (tuples taken apart), its attributes as canonical JSON text."""

    op: str
    arguments: tuple[TensorKey, ...]
    attributes: str = "{}"

    def to_json(self) -> dict[str, Any]:
        """``{"op": …, "arguments": [{"shape": […], "dtype": …}, …], "attributes": {…}}``."""
        arguments = [{"shape": list(a.shape), "dtype": a.dtype} for a in self.arguments]
        return {"op": self.op, "arguments": arguments, "attributes": json.loads(self.attributes)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Workload:
        """The workload that ``to_json`` gave. Raises ``RecordError`` for anything else."""
        _check_names("workload", data, ("op", "arguments", "attributes"))
        arguments = []
        for argument in _list_of(data, "arguments", dict):
            _check_names("argument", argument, ("shape", "dtype"))
            arguments.append(TensorKey(tuple(_list_of(argument, "shape", int)), _typed(argument, "dtype", str)))
        return cls(_typed(data, "op", str), tuple(arguments), canonical_json(_typed(data, "attributes", dict)))


def workload_of(call: Call) -> Workload | None:
    """The workload of a call; None where a dimension is symbolic, or an argument is no tensor or tuple of tensors."""
    try:
        kinds = [kind for argument in call.args for kind in leaf_types(argument.type)]
    except TypeInferenceError:
        return None
    arguments = [TensorKey(shape, str(kind.dtype)) for kind in kinds if (shape := kind.static_shape) is not None]
    attributes = {} if call.attrs is None else call.attrs.to_json()
    known = len(arguments) == len(kinds)
    return Workload(call.op.name, tuple(arguments), canonical_json(attributes)) if known else None


def workloads_of(function: Function) -> list[Workload]:
    """The workloads of a function's calls, in order of computation; those of symbolic shapes are left out."""
    calls = [node for node in post_order(function.body) if isinstance(node, Call)]
    return [workload for call in calls if (workload := workload_of(call)) is not None]


def canonical_json(value: object) -> str:
    """JSON text that equal values share, whatever the order of their fields."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


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
        return cls(str(target), target.arch, target.cpu, target.keys, target.l1_bytes, target.l2_bytes)

    def to_json(self) -> dict[str, Any]:
        caches = {"l1_bytes": self.l1_bytes, "l2_bytes": self.l2_bytes}
        return {"line": self.line, "arch": self.arch, "cpu": self.cpu, "keys": list(self.keys), **caches}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TargetKey:
        """The key that ``to_json`` gave. Raises ``RecordError`` for anything else."""
        _check_names("target", data, ("line", "arch", "cpu", "keys", "l1_bytes", "l2_bytes"))
        line, arch, cpu = (_typed(data, name, str) for name in ("line", "arch", "cpu"))
        l1_bytes, l2_bytes = (_typed(data, name, int) for name in ("l1_bytes", "l2_bytes"))
        return cls(line, arch, cpu, tuple(_list_of(data, "keys", str)), l1_bytes, l2_bytes)


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
    versions: tuple[tuple[str, str], ...] = field(default=())
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
        workload = workload_of(call)
        if workload is None:
            raise RecordError(f"a record is of known shapes; {call.op.name} is called with {_types(call)}")
        made = cls(
            workload,
            TargetKey.of(resolve_target(target)),
            implementation,
            tuple(map(float, seconds)),
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
    def from_json(cls, data: Mapping[str, Any]) -> TuningRecord:
        """The record that ``to_json`` gave. Raises ``RecordError`` for anything else."""
        needed = ("format", "workload", "target", "implementation", "seconds", "versions")
        _check_names("record", data, needed, ("config", "trace", "time"))
        made = cls(
            Workload.from_json(_typed(data, "workload", dict)),
            TargetKey.from_json(_typed(data, "target", dict)),
            _typed(data, "implementation", str),
            tuple(map(float, _list_of(data, "seconds", float))),
            canonical_json(_typed(data, "config", dict)) if "config" in data else None,
            _trace(data["trace"]) if "trace" in data else None,
            tuple(sorted((name, str(version)) for name, version in _typed(data, "versions", dict).items())),
            _typed(data, "time", str) if "time" in data else None,
        )
        made._check()
        return made


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


def _check_names(what: str, data: Mapping[str, Any], needed: Sequence[str], optional: Sequence[str] = ()) -> None:
    """That an object has all fields it needs, and no others."""
    missing = [name for name in needed if name not in data]
    unknown = [name for name in data if name not in (*needed, *optional)]
    if missing:
        raise RecordError(f"the {what} has no field {missing[0]!r}")
    if unknown:
        raise RecordError(
            f"the {what} has an unknown field {unknown[0]!r}; there are {', '.join((*needed, *optional))}"
        )


def _typed(data: Mapping[str, Any], name: str, kind: type[T]) -> T:
    value = data[name]
    if isinstance(value, kind) and not isinstance(value, bool):
        return value
    raise RecordError(f"the field {name!r} should be {_KINDS[kind]}, found {value!r}")


def _list_of(data: Mapping[str, Any], name: str, kind: type[T]) -> list[T]:
    values = _typed(data, name, list)
    for value in values:
        wanted = (int, float) if kind is float else (kind,)
        if not isinstance(value, wanted) or isinstance(value, bool):
            raise RecordError(f"the field {name!r} should be a list, each {_KINDS[kind]}, found {value!r} in it")
    return values


_KINDS: dict[type, str] = {str: "a text", int: "a whole number", float: "a number", list: "a list", dict: "an object"}
