"""Layout planning: the layout of each value, chosen for the graph as a whole.

Operators say by their layout rules (``ops/definition/layout_rule.py``) in which layouts a call can be made: these are
the candidates (``layout_candidates.py``). Implementations say what they cost (``ops/definition/cost.py``), and so do
the transforms between layouts (``layout_costs.py``). ``layout_search.py`` chooses among the candidates, and
``layout_rewriting.py`` makes the graph of that.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from types import MappingProxyType

from ...base.dataclass import dataclass
from ...graph.node import Call, Function
from ...graph.visit import post_order
from ...ops.definition.registry import op_of
from ..settings import CompileSettings
from ..symbols import Numbers
from .expected_extents import expected_extents
from .layout_candidates import CostedCandidate
from .layout_costs import LayoutCosts
from .layout_rewriting import rewrite_layouts
from .layout_search import assign_layouts
from .recorded_rewrite import recorded_rewrite

LOG = logging.getLogger("loopwright.layout_planning")
WORTHWHILE = 0.98
"""A plan is taken if what it changes costs at most this share of what that costs now: estimates are not that exact."""


@dataclass(frozen=True, slots=True, eq=False)
class LayoutChoice:
    """What was chosen for a call that had several ``candidates``, the first of which is the call as it is; or whose
    rewrite tuning records name, which then is the only one."""

    call: Call
    chosen: CostedCandidate
    candidates: tuple[CostedCandidate, ...]

    def __str__(self) -> str:
        origin = f" ({', '.join(self.call.origin)})" if self.call.origin else ""
        listed = "; ".join(f"{found}{' *' if found is self.chosen else ''}" for found in self.candidates)
        return f"{self.call.op.name}{origin}: {listed}"


@dataclass(frozen=True, slots=True, eq=False)
class LayoutPlan:
    """The function as planned (the same object, if it is best left as it is), and how that came about.

    ``before`` and ``after`` are the estimated cycles of all calls, as they are and as planned, with all transforms.
    ``str()`` lists the choices: for each call its candidates, arguments → result: cycles, with a star at the one that
    was chosen.
    """

    function: Function
    choices: tuple[LayoutChoice, ...]
    before: float
    after: float

    def __str__(self) -> str:
        return "\n".join([*map(str, self.choices), f"{self.before:.0f} cycles as it is, {self.after:.0f} as planned"])


def plan_layouts(function: Function, settings: CompileSettings, around: Numbers = MappingProxyType({})) -> LayoutPlan:
    """Choose layouts for the values of a function; those of its parameters and results stay as they are. Costs are
    those at the extents that the settings expect; ``around`` are those of dimensions of what it is a body of.

    Strict precision leaves everything as it is, since other layouts are summed in another order. Direct arithmetic goes
    without candidates that multiply other numbers than the call's definition, as their implementations say. A call
    whose rewrite tuning records name is rewritten so, whatever that is predicted to cost. One whose implementations
    alone they know is left as it is: what was tuned so would not serve it otherwise.
    """
    costs = LayoutCosts(settings, expected_extents(function, settings.expect, around))
    order = post_order(function.body)
    own = {node: costs.of_call(node) for node in order if isinstance(node, Call)}
    before = sum(own.values())
    if settings.options.is_strict:
        return LayoutPlan(function, (), before, before)
    assignment = assign_layouts(order, function.body, costs)
    ruled = [node for node in order if isinstance(node, Call) and op_of(node).layout_rule is not None]
    recorded = {node for node in ruled if recorded_rewrite(node, settings) is not None}
    changed = sum(cost for node, cost in own.items() if assignment.chosen[node] is not assignment.candidates[node][0])
    if not recorded and not before - assignment.cost >= (1 - WORTHWHILE) * changed > 0:
        return LayoutPlan(function, (), before, before)
    choices = tuple(
        LayoutChoice(node, assignment.chosen[node], assignment.candidates[node])
        for node in order
        if isinstance(node, Call) and (len(assignment.candidates[node]) > 1 or node in recorded)
    )
    for choice in choices:
        LOG.info("%s", choice)
    body = rewrite_layouts(order, assignment, function.body)
    return LayoutPlan(replace(function, body=body), choices, before, assignment.cost)
