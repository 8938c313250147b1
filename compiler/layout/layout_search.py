"""The search for the layouts of a graph's values: dynamic programming over its nodes.

Forwards, a table for each value holds the least cost at which it can be had in each layout; backwards, from the results
on, each value takes the layout that is best for it and for all that use it. Along chains and trees that is the optimum.
Where a value has several users it is greedy: in the tables each user bears an equal share of the value's cost, and the
users have chosen when the value does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import field

from ...base.dataclass import dataclass
from ...graph.node import Call, Node
from ...graph.visit import inputs, users
from .layout_candidates import CostedCandidate, KnownCandidates, layout_candidates
from .layout_costs import LayoutCosts
from .normalized_products import normalized_products
from .value_layouts import OperandLayout, ResultLayout


@dataclass(frozen=True, slots=True)
class LayoutAssignment:
    """What the search found: the candidates of each call, the one that was ``chosen``, the layout of each
    value, the layouts in which its users ``need`` it, and the ``cost`` of all calls and transforms, in cycles."""

    candidates: Mapping[Node, tuple[CostedCandidate, ...]]
    chosen: Mapping[Node, CostedCandidate]
    layouts: Mapping[Node, ResultLayout]
    needed: Mapping[Node, Mapping[OperandLayout, None]]
    cost: float


def assign_layouts(order: Sequence[Node], result: Node, costs: LayoutCosts) -> LayoutAssignment:
    """Choose the layouts of a graph's values, given in ``order`` of computation; ``result`` stays as it is.

    Shares make transforms of values with several users look cheap, and with them transposes that move nothing: where
    there are such, the assignment without any is found too, and the cheaper one is taken."""
    found = _assigned(order, result, costs, transposes_stay=False)
    if any(candidate.layouts.is_argument for candidate in found.chosen.values()):
        return min(found, _assigned(order, result, costs, transposes_stay=True), key=lambda each: each.cost)
    return found


def _assigned(order: Sequence[Node], result: Node, costs: LayoutCosts, transposes_stay: bool) -> LayoutAssignment:
    uses = {node: len(by) for node, by in users(result).items()}
    table = _CostTable(costs, uses, normalized_products(order), transposes_stay)
    for node in order:
        table.enter(node)
    chosen: dict[Node, CostedCandidate] = {}
    layouts: dict[Node, ResultLayout] = {}
    needed: dict[Node, dict[OperandLayout, None]] = {result: {None: None}}
    for node in reversed(order):
        layouts[node] = table.best_layout(node, needed[node])
        operands: Sequence[tuple[Node, OperandLayout]] = [(used, None) for used in inputs(node)]
        if isinstance(node, Call):
            chosen[node] = table.best_candidate(node, layouts[node])
            operands = chosen[node].layouts.operands(node)
        for operand, layout in operands:
            needed.setdefault(operand, {})[layout] = None
    transforms = (costs.of_transform(node, layouts[node], n) for node, uses in needed.items() for n in uses)
    total = sum(candidate.cost for candidate in chosen.values()) + sum(transforms)
    return LayoutAssignment(table.candidates, chosen, layouts, needed, total)


@dataclass(slots=True)
class _CostTable:
    """The candidates of each call, and the least cost of each value in each layout. Mutable: filled in the order of
    computation. ``uses`` are the numbers of users; the arithmetic of calls in ``direct`` is that. If
    ``transposes_stay``, no call's result is its argument as it lies."""

    costs: LayoutCosts
    uses: Mapping[Node, int]
    direct: Set[Node]
    transposes_stay: bool
    candidates: dict[Node, tuple[CostedCandidate, ...]] = field(default_factory=dict)
    least: dict[Node, dict[ResultLayout, float]] = field(default_factory=dict)
    known: KnownCandidates = field(default_factory=dict)
    known_direct: KnownCandidates = field(default_factory=dict)
    costs_if_direct: LayoutCosts = field(init=False)

    def __post_init__(self) -> None:
        self.costs_if_direct = self.costs.direct()

    def enter(self, node: Node) -> None:
        """Find the costs of a node whose inputs have been entered."""
        if not isinstance(node, Call):
            self.least[node] = {None: sum(self._operand_cost(used, None) for used in inputs(node))}
            return
        available = [list(self.least[a]) for a in node.args]
        costs, known = (self.costs, self.known)
        if node in self.direct:
            costs, known = (self.costs_if_direct, self.known_direct)
        found = layout_candidates(node, available, costs, known)
        self.candidates[node] = tuple(c for c in found if not (self.transposes_stay and c.layouts.is_argument))
        least: dict[ResultLayout, float] = {}
        for candidate in self.candidates[node]:
            cost = self._total(node, candidate)
            if candidate.layouts.result not in least or cost < least[candidate.layouts.result]:
                least[candidate.layouts.result] = cost
        self.least[node] = least

    def best_layout(self, node: Node, needed: Mapping[OperandLayout, None]) -> ResultLayout:
        """The layout of least cost for a value and for all that need it in some layouts."""

        def cost(layout: ResultLayout) -> float:
            return self.least[node][layout] + sum(self.costs.of_transform(node, layout, n) for n in needed)

        return min(self.least[node], key=cost)

    def best_candidate(self, call: Call, layout: ResultLayout) -> CostedCandidate:
        """The cheapest candidate whose result is in a layout."""
        fitting = (candidate for candidate in self.candidates[call] if candidate.layouts.result == layout)
        return min(fitting, key=lambda candidate: self._total(call, candidate))

    def _total(self, call: Call, candidate: CostedCandidate) -> float:
        """What a call costs with all that it needs."""
        operands = candidate.layouts.operands(call)
        return candidate.cost + sum(self._operand_cost(a, layout) for a, layout in operands)

    def _operand_cost(self, node: Node, needed: OperandLayout) -> float:
        """The least cost of a value in a layout, for one of its users."""
        share = max(1, self.uses[node])
        return min(
            cost / share + self.costs.of_transform(node, layout, needed) for layout, cost in self.least[node].items()
        )
