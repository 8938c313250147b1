"""The candidates of a call: in which layouts it can take its arguments and give its result, and what each costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from ...base.dataclass import dataclass
from ...base.errors import LoopwrightError
from ...graph.node import Call, Constant, ImportedValue, Node, tensor_of
from ...ops.definition.layout_rule import LayoutCandidate, Packed, same_layout
from ...ops.definition.registry import op_of
from ..selection.workload import workload_of
from ..settings import CompileSettings
from .layout_costs import LayoutCosts
from .recorded_rewrite import recorded_rewrite, rewrite_name
from .value_layouts import ResultLayout, placeholder


@dataclass(frozen=True, slots=True)
class CostedCandidate:
    """The layouts in which a call can take its arguments and give its result, and what the call then costs, in
    cycles."""

    layouts: LayoutCandidate
    cost: float

    def __str__(self) -> str:
        """``(arguments) → result: cycles``, with ``-`` for what stays as it is."""
        result = "-" if self.layouts.result is None else str(self.layouts.result)
        return f"{rewrite_name(self.layouts)} → {result}: {self.cost:.0f}"


KnownCandidates: TypeAlias = dict[tuple[object, ...], tuple[CostedCandidate, ...]]
"""The candidates of calls by all that they depend on: equal layers of a network are asked about once."""


def layout_candidates(
    call: Call, available: Sequence[Sequence[ResultLayout]], costs: LayoutCosts, known: KnownCandidates
) -> tuple[CostedCandidate, ...]:
    """The candidates of a call whose arguments are each available in some layouts; first the call as it is, but where
    tuning records name a rewrite, which alone counts. ``known`` are those found before, which grow."""
    offered = (layout for layouts in available for layout in layouts if _may_be_given(call, layout))
    given: dict[ResultLayout, None] = {None: None, **dict.fromkeys(offered)}
    types = tuple((argument.type, isinstance(argument, Constant)) for argument in call.args)
    key = (call.op, call.attrs, types, tuple(given))
    if key not in known:
        known[key] = _candidates(call, tuple(given), costs)
    return known[key]


def _may_be_given(call: Call, layout: ResultLayout) -> bool:
    """Whether the rule of a call may be asked about a layout: what fills blocks up is for operators that compute each
    element by itself."""
    return layout is None or layout.filling is None or op_of(call).layout_rule is same_layout


def _candidates(call: Call, given: Sequence[ResultLayout], costs: LayoutCosts) -> tuple[CostedCandidate, ...]:
    as_it_is = CostedCandidate(unchanged_candidate(call), costs.of_call(call))
    op, recorded = op_of(call), recorded_rewrite(call, costs.settings)
    if op.layout_rule is None or (recorded is None and _is_tuned(call, costs.settings)):
        return (as_it_is,)
    found: list[CostedCandidate] = []
    for candidate in op.layout_candidates(call, given, costs.settings.target):
        if candidate.is_argument:
            found.append(CostedCandidate(candidate, 0.0))
        elif _suits(call, candidate):
            args = [placeholder(a, layout) for a, layout in candidate.operands(call)]
            found.append(CostedCandidate(candidate, costs.of_call(call_in_layouts(call, candidate, args))))
    found = [as_it_is, *(candidate for candidate in found if candidate.cost < math.inf)]
    named = [candidate for candidate in found if rewrite_name(candidate.layouts) == recorded]
    return tuple(named or found)


def unchanged_candidate(call: Call) -> LayoutCandidate:
    """The layouts of a call that stays as it is."""
    return LayoutCandidate((None,) * len(call.args), call.attrs, None)


def call_in_layouts(call: Call, candidate: LayoutCandidate, args: Sequence[Node]) -> Call:
    """The call made in other layouts, of arguments in the layouts of the candidate.

    Raises ``LoopwrightError`` if the result has another one: then the operator's rule is wrong.
    """
    op = op_of(call) if candidate.op is None else candidate.op
    made = replace(op(*args, attrs=candidate.attrs, origin=call.origin), value=_value_in_layout(call, candidate.result))
    expected = call.type if candidate.result is None else candidate.result.type_of(tensor_of(call))
    if made.type is not expected:
        raise LoopwrightError(
            f"the layout rule of {call.op.name} says that its result is {expected} in layout {candidate.result}, "
            f"but {op.name} gives {made.type}"
        )
    return made


def _is_tuned(call: Call, settings: CompileSettings) -> bool:
    workload = workload_of(call)
    return workload is not None and bool(settings.records.lookup(workload, settings.target))


def _suits(call: Call, candidate: LayoutCandidate) -> bool:
    """Whether the types of arguments and result can be in the layouts of a candidate."""
    wanted = [*candidate.operands(call), (call, candidate.result)]
    return all(
        isinstance(node, Constant) if isinstance(layout, Packed) else layout is None or layout.suits(node.type)
        for node, layout in wanted
    )


def _value_in_layout(call: Call, layout: ResultLayout) -> ImportedValue | None:
    """What the imported model calls the result of a call that is now in a layout."""
    if call.value is None or layout is None:
        return call.value
    if layout.filling is not None:
        return None
    order = tuple(position for name in layout.primal.names for position in layout.layout.digits(name))
    return replace(call.value, order=order, shape=tensor_of(call).shape)
