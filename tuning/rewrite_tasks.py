"""The rewrites of a model's calls that are worth measuring: other operators in their place, and other layouts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ..artifact.records.workload import Workload
from ..base.brief import BriefRepr
from ..base.dataclass import dataclass
from ..compiler.layout.layout_costs import LayoutCosts
from ..compiler.layout.layout_planning import LayoutChoice, plan_layouts
from ..compiler.layout.recorded_rewrite import recorded_rewrite, rewrite_name, rewrite_workload
from ..compiler.passes.write_out_attention import FUSED, WRITTEN_OUT, is_attention
from ..compiler.selection.choices import call_text
from ..compiler.selection.records import NO_RECORDS
from ..compiler.settings import CompileSettings
from ..graph.node import Call, Function
from ..graph.visit import post_order
from ..ops.families.attention.written_out import written_out

LEAST_SHARE = 0.01
"""Calls that are predicted to take less of a model's time are left as they are planned."""
PLAUSIBLE = 1.6
"""A rewrite is worth measuring if it is predicted to take at most so many times as long as the one that is planned."""
ALIKE = 1.02
"""Calls whose rewrites are predicted to take the same go along with the layouts of their neighbours."""
MOST_REWRITES = 4


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RewriteTask(BriefRepr):
    """Calls of one ``workload``, of which ``call`` is the first: ``share`` is the part of the model's time that is
    predicted for them, ``planned`` the name of their rewrite in the plan, and ``rewrites`` are the others, the most
    promising first."""

    call: Call
    workload: Workload
    share: float
    planned: str
    rewrites: tuple[str, ...]

    @property
    def name(self) -> str:
        """What progress is told by."""
        return f"rewriting {self.call.op.name}"

    def __str__(self) -> str:
        return f"rewriting {call_text(self.call)}: {self.planned}"


def rewrite_tasks(graph: Function, settings: CompileSettings, only: Collection[str] = ()) -> tuple[RewriteTask, ...]:
    """The tasks of a graph whose layouts are not planned yet, those that the most time is predicted for first. ``only``
    are the names of operators, by default all. Calls with open dimensions are none."""
    if settings.options.is_strict:
        return ()
    plain = settings.with_records(NO_RECORDS)
    plan, costs = plan_layouts(graph, plain), LayoutCosts(plain)
    found = [
        *map(_of_layouts, plan.choices),
        *(_of_attention(n, costs) for n in post_order(graph.body) if is_attention(n)),
    ]
    groups: dict[Workload, list[_Rewrites]] = {}
    for each in found:
        workload = rewrite_workload(each.call)
        if workload is not None and (not only or each.call.op.name in only):
            groups.setdefault(workload, []).append(each)
    tasks = [_task(workload, calls, plan.after, settings) for workload, calls in groups.items()]
    return tuple(sorted((t for t in tasks if t.rewrites and t.share >= LEAST_SHARE), key=lambda task: -task.share))


@dataclass(frozen=True, slots=True, eq=False)
class _Rewrites:
    """The cycles that are predicted for the rewrites of a call, by name, and which one would be chosen by them."""

    call: Call
    costs: Mapping[str, float]
    predicted: str


def _of_layouts(choice: LayoutChoice) -> _Rewrites:
    costs: dict[str, float] = {}
    for candidate in choice.candidates:
        rewrite = rewrite_name(candidate.layouts)
        costs[rewrite] = min(candidate.cost, costs.get(rewrite, candidate.cost))
    return _Rewrites(choice.call, costs, rewrite_name(choice.chosen.layouts))


def _of_attention(call: Call, costs: LayoutCosts) -> _Rewrites:
    """Attention as one operator, which it is unless a record says otherwise, and written out."""
    found, made = {FUSED: costs.of_call(call)}, written_out(call)
    if made is not None:
        inner = set(post_order(made)).difference(post_order(call))
        found[WRITTEN_OUT] = sum(costs.of_call(node) for node in inner if isinstance(node, Call))
    return _Rewrites(call, found, FUSED)


def _task(workload: Workload, calls: Sequence[_Rewrites], total: float, settings: CompileSettings) -> RewriteTask:
    costs: dict[str, float] = {}
    for rewrite, cost in (item for each in calls for item in each.costs.items()):
        costs[rewrite] = min(cost, costs.get(rewrite, cost))
    call, predicted = calls[0].call, calls[0].predicted
    planned = recorded_rewrite(call, settings) or predicted
    most = PLAUSIBLE * costs[predicted]
    follows = max(costs.values()) <= ALIKE * min(costs.values())
    others = [rewrite for rewrite, cost in costs.items() if rewrite != planned and cost <= most and not follows]
    rewrites = sorted(others, key=lambda rewrite: costs[rewrite])
    share = sum(each.costs[each.predicted] for each in calls) / total if total else 0.0
    return RewriteTask(call, workload, share, planned, tuple(rewrites[:MOST_REWRITES]))


def unplanned(settings: CompileSettings) -> CompileSettings:
    """The settings by which a graph's layouts are left for ``rewrite_tasks`` to plan."""
    return replace(settings, layouts="keep")
