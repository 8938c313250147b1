"""The ways of a model's calls that are worth measuring: rewrites, and layouts that arguments are held in."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from ..artifact.records.workload import Workload
from ..base.brief import BriefRepr
from ..compiler.layout.layout_planning import LayoutChoice, plan_layouts
from ..compiler.layout.recorded_way import recorded_way, way_of, way_workload
from ..compiler.selection.choices import call_text
from ..compiler.selection.records import NO_RECORDS
from ..compiler.settings import CompileSettings
from ..graph.node import Call, Function

LEAST_SHARE = 0.01
"""Calls that are predicted to take less of a model's time are left as they are planned."""
PLAUSIBLE = 1.6
"""A way is worth measuring if it is predicted to take at most so many times as long as the one that is planned."""
ALIKE = 1.02
"""Calls that take the same in all ways go along with the layouts of their neighbours."""
MOST_WAYS = 4


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WayTask(BriefRepr):
    """Calls of one ``workload``, of which ``call`` is the first: ``share`` is the part of the model's time that is
    predicted for them, ``planned`` the way that they are made in, and ``ways`` the others, the most promising first."""

    call: Call
    workload: Workload
    share: float
    planned: str
    ways: tuple[str, ...]

    @property
    def name(self) -> str:
        """What progress is told by."""
        return f"the way of {self.call.op.name}"

    def __str__(self) -> str:
        return f"the way of {call_text(self.call)}: {self.planned}"


def way_tasks(graph: Function, settings: CompileSettings, only: Collection[str] = ()) -> tuple[WayTask, ...]:
    """The tasks of a graph whose layouts are not planned yet, those that the most time is predicted for first. ``only``
    are the names of operators, by default all. Calls with open dimensions are none."""
    plan = plan_layouts(graph, settings.with_records(NO_RECORDS))
    groups: dict[Workload, list[LayoutChoice]] = {}
    for choice in plan.choices:
        workload = way_workload(choice.call)
        if workload is not None and (not only or choice.call.op.name in only):
            groups.setdefault(workload, []).append(choice)
    tasks = [_task(workload, choices, plan.after, settings) for workload, choices in groups.items()]
    return tuple(sorted((t for t in tasks if t.ways and t.share >= LEAST_SHARE), key=lambda task: -task.share))


def _task(workload: Workload, choices: list[LayoutChoice], total: float, settings: CompileSettings) -> WayTask:
    call = choices[0].call
    costs: dict[str, float] = {}
    for candidate in (candidate for choice in choices for candidate in choice.candidates):
        way = way_of(candidate.layouts)
        costs[way] = min(candidate.cost, costs.get(way, candidate.cost))
    predicted = way_of(choices[0].chosen.layouts)
    planned = recorded_way(call, settings) or predicted
    most = PLAUSIBLE * costs[predicted]
    follows = max(costs.values()) <= ALIKE * min(costs.values())
    others = [way for way, cost in costs.items() if way != planned and cost <= most and not follows]
    ways = sorted(others, key=lambda way: costs[way])
    share = sum(choice.chosen.cost for choice in choices) / total if total else 0.0
    return WayTask(call, workload, share, planned, tuple(ways[:MOST_WAYS]))


def unplanned(settings: CompileSettings) -> CompileSettings:
    """The settings by which a graph's layouts are left for ``way_tasks`` to plan."""
    return replace(settings, layouts="keep")
