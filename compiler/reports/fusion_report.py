"""What fusion makes of a function, in words: the calls of each group, and what keeps it apart from its readers."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import asdict
from typing import Any

from ...base.brief import BriefRepr, listed
from ...base.dataclass import dataclass
from ...graph.node import Call, Function
from ...graph.visit import post_order, users
from ..fusion.closed_function import function_name
from ..fusion.partition import Group, fuse, readers_of


@dataclass(frozen=True, slots=True)
class NumberedCall:
    """A call, by its number in the function's text (``%3``) and its operator."""

    number: int
    op: str

    def __str__(self) -> str:
        return f"%{self.number} {self.op}"


@dataclass(frozen=True, slots=True, repr=False)
class StoppedEdge(BriefRepr):
    """A call, one in another group that reads it, and the rule that keeps the two apart."""

    producer: NumberedCall
    consumer: NumberedCall
    reason: str


@dataclass(frozen=True, slots=True, repr=False)
class FusedGroup(BriefRepr):
    """The calls of a function to be, in order, and the edges that lead out of it."""

    name: str
    calls: tuple[NumberedCall, ...]
    stopped: tuple[StoppedEdge, ...]

    def __str__(self) -> str:
        lines = [f"{self.name}: {', '.join(map(str, self.calls))}"]
        reasons: dict[str, list[str]] = {}
        for edge in self.stopped:
            reasons.setdefault(edge.reason, []).append(str(edge.consumer))
        lines += [f"    not with {', '.join(into)}: {reason}" for reason, into in reasons.items()]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, repr=False)
class FusionReport:
    """What was fused, and what stopped fusion; ``str()`` is for people, ``to_json()`` for programs."""

    groups: tuple[FusedGroup, ...]

    def __repr__(self) -> str:
        return f"<FusionReport of {listed(group.name for group in self.groups)}>"

    def __str__(self) -> str:
        return "\n".join(map(str, self.groups))

    def to_json(self) -> dict[str, Any]:
        """All as JSON values: ``{"groups": [{"name": …, "calls": [{"number": …, "op": …}, …], "stopped": [{"producer":
        …, …}]}, …]}``."""
        return {"groups": [_plain(group) for group in self.groups]}


def _plain(group: FusedGroup) -> dict[str, Any]:
    calls, stopped = ([asdict(part) for part in parts] for parts in (group.calls, group.stopped))
    return {"name": group.name, "calls": calls, "stopped": stopped}


def fusion_report(function: Function, unfused: Collection[str] = ()) -> FusionReport:
    """What fusion makes of a graph function as it stands, with the operators ``unfused`` kept alone. Calls are numbered
    as in its text, ``str(function)``."""
    calls = (node for node in post_order(function.body) if isinstance(node, Call))
    names = {call: NumberedCall(number, call.op.name) for number, call in enumerate(calls)}
    used_by = users(function.body)
    fusion = fuse(function, unfused)

    def edges(group: Group) -> Iterator[StoppedEdge]:
        for call in group.outputs:
            for reader in readers_of(call, used_by):
                if isinstance(reader, Call):
                    yield StoppedEdge(names[call], names[reader], fusion.stopped[call])

    return FusionReport(
        tuple(FusedGroup(function_name(g), tuple(names[c] for c in g.calls), tuple(edges(g))) for g in fusion.groups)
    )
