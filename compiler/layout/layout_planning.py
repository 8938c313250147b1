"""Layout planning: in which layouts the values of a graph are held, chosen for the graph as a whole.

Operators say by their layout rules (``ops/definition/layout_rule.py``) in which ways a call can be made, and
implementations what they cost (``ops/definition/cost.py``). Where a value is wanted in another layout than it has, a
transform stands between, which has a cost as well; constants are transformed, and packed, when the model is compiled,
for nothing.

Dynamic programming: forwards, a table for each value holds the least cost at which it can be had in each layout;
backwards, from the results on, each value takes the layout that is best for it and for all that use it. Along chains
and trees that is the optimum. Where a value has several users it is greedy: in the tables each user bears an equal
share of the value's cost, and the users have chosen when the value does.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ...base.aligned import aligned
from ...base.errors import LoopwrightError, SelectionError
from ...base.mapped import give_back
from ...graph.layout import Layout
from ...graph.node import Call, Constant, Function, ImportedValue, Node, Var, tensor_of
from ...graph.types import TensorType
from ...graph.visit import inputs, post_order, users, with_inputs
from ...ir.constants import ONE
from ...ops.definition.cost import moved
from ...ops.definition.layout_rule import Held, LayoutUse, Packed
from ...ops.definition.registry import op_of
from ...ops.families.layout_transform import LAYOUT_TRANSFORM, LayoutTransformAttrs, layout_transform
from ...ops.families.reshape import expand_dims
from ..selection.select import candidates_of, select_implementation
from ..selection.workload import workload_of
from ..settings import CompileSettings

LOG = logging.getLogger("loopwright.layout_planning")
WORTHWHILE = 0.98
"""A plan is taken if it costs at most this share of leaving the graph as it is: estimates are not that exact."""

State: TypeAlias = Held | None
"""How a value is held; None: as it is."""
Wanted: TypeAlias = Held | Packed | None
"""How a value is to be passed; only a constant can be packed."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to make a call, and what it costs, in cycles."""

    use: LayoutUse
    cost: float


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """What was chosen for a call that had a choice. ``ways`` are all, the first being the call as it is."""

    call: Call
    chosen: Way
    ways: tuple[Way, ...]

    def __str__(self) -> str:
        origin = f" ({', '.join(self.call.origin)})" if self.call.origin else ""
        listed = "; ".join(f"{_shown(way)}{' *' if way is self.chosen else ''}" for way in self.ways)
        return f"{self.call.op.name}{origin}: {listed}"


@dataclass(frozen=True, slots=True, eq=False)
class LayoutPlan:
    """The function as planned (the same object, if it is best left as it is), and how that came about.

    ``before`` and ``after`` are the estimated cycles of all calls, as they are and as planned, with all transforms.
    ``str()`` lists the choices: for each call the ways to make it, arguments → result: cycles, with a star at the one
    that was chosen.
    """

    function: Function
    choices: tuple[Choice, ...]
    before: float
    after: float

    def __str__(self) -> str:
        return "\n".join([*map(str, self.choices), f"{self.before:.0f} cycles as it is, {self.after:.0f} as planned"])


def plan_layouts(function: Function, settings: CompileSettings) -> LayoutPlan:
    """Choose layouts for the values of a function, those of its parameters and results apart.

    Strict precision leaves everything as it is, since other layouts are summed in another order. Direct arithmetic goes
    without ways that multiply other numbers than the call's definition, as their implementations say. A call that
    the tuning records know is left as it is: what was tuned so would not serve it otherwise.
    """
    planner = _Planner(settings)
    before = sum(planner.cost(node) for node in post_order(function.body) if isinstance(node, Call))
    if settings.options.is_strict:
        return LayoutPlan(function, (), before, before)
    used_by = users(function.body)
    table = _Table(planner, {node: len(by) for node, by in used_by.items()})
    order = post_order(function.body)
    for node in order:
        table.enter(node)
    decided = _decide(order, table, function.body)
    after = decided.cost(planner)
    if not after <= WORTHWHILE * before:
        return LayoutPlan(function, (), before, before)
    choices = tuple(
        Choice(node, decided.ways[node], table.ways[node])
        for node in order
        if isinstance(node, Call) and len(table.ways[node]) > 1
    )
    for choice in choices:
        LOG.info("%s", choice)
    return LayoutPlan(replace(function, body=_rebuilt(order, decided, function.body)), choices, before, after)


@dataclass(slots=True)
class _Planner:
    """What calls cost, and in which ways they can be made. Mutable: it remembers."""

    settings: CompileSettings
    _costs: dict[tuple[object, ...], float] = field(default_factory=dict)

    def cost(self, call: Call) -> float:
        """What the implementation that would be chosen says; memory traffic, if it says nothing; infinite, if all are
        refused."""
        types = tuple(a.type for a in call.args)
        key = (call.op, call.attrs, types)
        if key not in self._costs:
            declared = self._declared(call)
            self._costs[key] = moved((*types, call.type)) if declared is None else declared
        return self._costs[key]

    def _declared(self, call: Call) -> float | None:
        try:
            selection = select_implementation(call, self.settings)
        except SelectionError:  # several serve it together, or none does: the compile engine finds out
            return math.inf if self._is_refused(call) else None
        return selection.chosen.cost

    def _is_refused(self, call: Call) -> bool:
        """Whether an operator has implementations, and none of them may serve a call for any extents."""
        try:
            candidates = candidates_of(call, self.settings)
        except SelectionError:  # it is served from outside, if at all
            return False
        return all(candidate.rejected is not None for candidate in candidates)

    def ways(self, call: Call, states: Sequence[Sequence[State]]) -> tuple[Way, ...]:
        """The ways to make a call whose arguments can be had in these states; first the call as it is."""
        found = [Way(_as_it_is(call), self.cost(call))]
        op = op_of(call)
        if op.layout_rule is None or self._is_tuned(call):
            return tuple(found)
        given: dict[State, None] = {None: None, **dict.fromkeys(s for of_argument in states for s in of_argument)}
        for use in op.layout_uses(call, given, self.settings.target):
            if _suits(call, use):
                made = remade(call, use, [_stand_in(a, held) for a, held in zip(call.args, use.arguments, strict=True)])
                found.append(Way(use, self.cost(made)))
        return (found[0], *(way for way in found[1:] if way.cost < math.inf))

    def _is_tuned(self, call: Call) -> bool:
        workload = workload_of(call)
        return workload is not None and bool(self.settings.records.lookup(workload, self.settings.target))

    def move(self, node: Node, state: State, wanted: Wanted) -> float:
        """What it costs to have a value in another state than it is in."""
        if state == wanted or isinstance(node, Constant):
            return 0.0
        assert not isinstance(wanted, Packed)
        value: Node = _stand_in(node, state) if wanted is None else _of_rank(node, state, wanted.primal.ndim)
        total = 0.0
        for source, destination in _steps(state, wanted):
            call = LAYOUT_TRANSFORM(value, attrs=LayoutTransformAttrs(str(source), str(destination)))
            total += self.cost(call)
            value = call
        return total


def _as_it_is(call: Call) -> LayoutUse:
    return LayoutUse((None,) * len(call.args), call.attrs, None)


def _suits(call: Call, use: LayoutUse) -> bool:
    held = zip((*use.arguments, use.result), (*call.args, call), strict=True)
    return all(
        isinstance(node, Constant) if isinstance(state, Packed) else state is None or state.suits(node.type)
        for state, node in held
    )


def _stand_in(node: Node, state: Wanted) -> Node:
    """A variable of the type that a value has in a state; a constant as it is may be looked at."""
    if state is None:
        return node
    if isinstance(state, Packed):
        return Var("x", state.type)
    return Var("x", state.type_of(tensor_of(node)))


def _of_rank(node: Node, state: State, rank: int) -> Node:
    """As ``_stand_in``, with leading axes where the value has fewer."""
    kind = tensor_of(node)
    missing = rank - kind.ndim
    if state is None and missing:
        return Var("x", TensorType((*(ONE,) * missing, *kind.shape), kind.dtype))
    return _stand_in(node, state)


def remade(call: Call, use: LayoutUse, args: Sequence[Node]) -> Call:
    """A call made in another way, of arguments that are held as the use says.

    Raises ``LoopwrightError`` if the result is not held so: then the operator's rule is wrong.
    """
    op = op_of(call) if use.op is None else use.op
    made = replace(op(*args, attrs=use.attrs, origin=call.origin), value=_value_in_layout(call, use.result))
    expected = call.type if use.result is None else use.result.type_of(tensor_of(call))
    if made.type is not expected:
        raise LoopwrightError(
            f"the layout rule of {call.op.name} says that its result is {expected} in layout {use.result}, "
            f"but {op.name} gives {made.type}"
        )
    return made


def _value_in_layout(call: Call, state: State) -> ImportedValue | None:
    """What the imported model calls the result of a call that is now held in a state."""
    if call.value is None or state is None:
        return call.value
    order = tuple(place for name in state.primal.names for place in state.layout.digits(name))
    return replace(call.value, order=order, shape=tensor_of(call).shape)


def _steps(state: State, wanted: State) -> Iterator[tuple[Layout, Layout]]:
    """The transforms from one state to another: one, unless the axes have different names."""
    if state is not None and wanted is not None and state.primal is wanted.primal:
        yield state.layout, wanted.layout
        return
    if state is not None and state.layout is not state.primal:
        yield state.layout, state.primal
    if wanted is not None and wanted.layout is not wanted.primal:
        yield wanted.primal, wanted.layout


@dataclass(slots=True)
class _Table:
    """Forwards: the ways to make each call, the least cost of each value in each state. Mutable: filled in order."""

    planner: _Planner
    uses: dict[Node, int]
    ways: dict[Node, tuple[Way, ...]] = field(default_factory=dict)
    least: dict[Node, dict[State, float]] = field(default_factory=dict)

    def enter(self, node: Node) -> None:
        if not isinstance(node, Call):
            self.least[node] = {None: sum(self.had(used, None) for used in inputs(node))}
            return
        self.ways[node] = self.planner.ways(node, [list(self.least[a]) for a in node.args])
        least: dict[State, float] = {}
        for way in self.ways[node]:
            cost = self.total(node, way)
            if way.use.result not in least or cost < least[way.use.result]:
                least[way.use.result] = cost
        self.least[node] = least

    def total(self, call: Call, way: Way) -> float:
        """What a call costs with all that it needs."""
        return way.cost + sum(self.had(a, held) for a, held in zip(call.args, way.use.arguments, strict=True))

    def had(self, node: Node, wanted: Wanted) -> float:
        """The least cost of a value in a state, for one of its users."""
        share = max(1, self.uses[node])
        return min(cost / share + self.planner.move(node, state, wanted) for state, cost in self.least[node].items())


@dataclass(slots=True)
class _Decided:
    """Backwards: how each call is made, and in which states its users want each value. Mutable: filled in order."""

    ways: dict[Node, Way] = field(default_factory=dict)
    states: dict[Node, State] = field(default_factory=dict)
    wanted: dict[Node, dict[Wanted, None]] = field(default_factory=dict)

    def want(self, node: Node, state: Wanted) -> None:
        self.wanted.setdefault(node, {})[state] = None

    def cost(self, planner: _Planner) -> float:
        """All calls, and a transform for each state that a value is wanted in and is not."""
        moves = (planner.move(node, self.states[node], w) for node, wanted in self.wanted.items() for w in wanted)
        return sum(way.cost for way in self.ways.values()) + sum(moves)


def _decide(order: Sequence[Node], table: _Table, result: Node) -> _Decided:
    decided = _Decided()
    decided.want(result, None)
    for node in reversed(order):
        wanted = decided.wanted[node]

        def cost(state: State, node: Node = node, wanted: dict[Wanted, None] = wanted) -> float:
            return table.least[node][state] + sum(table.planner.move(node, state, w) for w in wanted)

        state = min(table.least[node], key=cost)
        decided.states[node] = state
        if not isinstance(node, Call):
            for used in inputs(node):
                decided.want(used, None)
            continue
        way = min((w for w in table.ways[node] if w.use.result == state), key=lambda w: table.total(node, w))
        decided.ways[node] = way
        for argument, held in zip(node.args, way.use.arguments, strict=True):
            decided.want(argument, held)
    return decided


def _rebuilt(order: Sequence[Node], decided: _Decided, result: Node) -> Node:
    """The graph with each call made in the way that was decided, and transforms between."""
    made: dict[Node, Node] = {}
    arranged: dict[tuple[Node, Wanted], Node] = {}

    def have(node: Node, wanted: Wanted) -> Node:
        if (node, wanted) not in arranged:
            arranged[node, wanted] = _arranged(made[node], decided.states[node], wanted)
        return arranged[node, wanted]

    for node in order:
        if isinstance(node, Call):
            use = decided.ways[node].use
            args = tuple(have(a, held) for a, held in zip(node.args, use.arguments, strict=True))
            made[node] = with_inputs(node, args) if use == _as_it_is(node) else remade(node, use, args)
        else:
            made[node] = with_inputs(node, tuple(have(used, None) for used in inputs(node)))
    return have(result, None)


def _arranged(node: Node, state: State, wanted: Wanted) -> Node:
    """A value that is in one state, in another; one of lower rank gets leading axes first."""
    if isinstance(wanted, Packed):
        assert isinstance(node, Constant)
        return wanted.packed(node)
    if wanted is not None and state is None:
        missing = wanted.primal.ndim - tensor_of(node).ndim
        if missing:
            node = _with_leading_axes(node, missing)
    for source, destination in _steps(state, wanted):
        before, node = node, layout_transform(node, source, destination)
        if isinstance(node, Constant):
            node = Constant(aligned(node.value), node.name)
        if isinstance(before, Constant):
            give_back(before.value)
    return node


def _with_leading_axes(node: Node, count: int) -> Node:
    if isinstance(node, Constant):
        return Constant(node.value.reshape((1,) * count + node.value.shape), node.name)
    return expand_dims(node, tuple(range(count)))


def _shown(way: Way) -> str:
    held = ", ".join("-" if state is None else str(state) for state in way.use.arguments)
    op = "" if way.use.op is None else way.use.op.name
    return f"{op}({held}) → {'-' if way.use.result is None else way.use.result}: {way.cost:.0f}"
