"""What calls cost, and what it costs to bring a value from one layout to another, in estimated cycles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field, replace

from ...base.dataclass import dataclass
from ...base.errors import InternalError, LoopwrightError, SelectionError
from ...graph.node import Call, Constant, Node, Var
from ...graph.types import Type
from ...ops.definition.cost import moved
from ...ops.definition.implementation import OpImplementation
from ...ops.definition.layout_rule import Filling, Packed
from ...ops.definition.registry import op_of
from ..selection.select import Selection, candidates_of, select_implementation
from ..settings import CompileSettings
from .expected_extents import ExpectedExtents
from .value_layouts import OperandLayout, ResultLayout, placeholder, placeholder_of_rank, transforms_between


@dataclass(slots=True)
class LayoutCosts:
    """The costs of calls by these settings, at the extents that are ``expected``. Mutable: it remembers what it has
    found."""

    settings: CompileSettings
    expected: ExpectedExtents = field(default_factory=ExpectedExtents)
    _costs: dict[tuple[object, ...], float] = field(default_factory=dict)
    _transforms: dict[tuple[object, ...], float] = field(default_factory=dict)

    def direct(self) -> LayoutCosts:
        """The same where arithmetic is direct."""
        options = replace(self.settings.options, arithmetic="direct")
        return LayoutCosts(replace(self.settings, options=options), self.expected)

    def of_call(self, call: Call) -> float:
        """What the implementation that would be chosen declares; the cycles of its memory traffic, if it declares
        nothing; infinite, if all implementations are refused."""
        types = tuple(self.expected.of(a.type) for a in call.args)
        key = (call.op, call.attrs, types)
        if key not in self._costs:
            declared = self._declared(call, self._as_expected(call, types))
            self._costs[key] = moved((*types, self.expected.of(call.type))) if declared is None else declared
        return self._costs[key]

    def _as_expected(self, call: Call, types: Sequence[Type]) -> Call:
        """The call of arguments of these types; as it is, where those are none that its operator takes."""
        if all(argument.type is kind for argument, kind in zip(call.args, types, strict=True)):
            return call
        pairs = zip(call.args, types, strict=True)
        args = [argument if argument.type is kind else Var("x", kind) for argument, kind in pairs]
        try:
            return op_of(call)(*args, attrs=call.attrs)
        except LoopwrightError:
            return call

    def of_transform(self, node: Node, source: ResultLayout, destination: OperandLayout) -> float:
        """What it costs to have a value in another layout than its own. Constants are transformed, and packed,
        when the model is compiled, which costs a run nothing."""
        if source == destination or isinstance(node, Constant):
            return 0.0
        if isinstance(destination, Packed):
            raise InternalError(f"{destination} packs constants, and {node} is none")
        if destination is not None and destination.filling is Filling.ANY:  # only constants are filled up so
            return math.inf
        key = (node.type, source, destination)
        if key not in self._transforms:
            self._transforms[key] = self._of_transforms(node, source, destination)
        return self._transforms[key]

    def _of_transforms(self, node: Node, source: ResultLayout, destination: ResultLayout) -> float:
        value = placeholder(node, source)
        if destination is not None:
            value = placeholder_of_rank(node, source, destination.primal.ndim)
        total = 0.0
        for transform in transforms_between(node, source, destination):
            value = transform(value)
            total += self.of_call(value) if isinstance(value, Call) else 0.0
        return total

    def _declared(self, call: Call, expected: Call) -> float | None:
        """The cost of what serves a call, at the extents of the ``expected`` one."""
        try:
            selection = select_implementation(expected, self.settings)
        except SelectionError:  # several serve it together, or none does: the compile engine finds out
            return math.inf if self._is_refused(expected) else None
        if call is expected or selection.record is not None:
            return selection.chosen.cost
        return self._open_choice(call, selection).cost

    def _open_choice(self, call: Call, selection: Selection) -> OpImplementation:
        """What of a selection at expected extents serves a call whose extents are open: not what is for known ones
        alone. Open extents may have implementations of their own; then what was selected stands for these."""
        offered = [each for each in candidates_of(call, self.settings) if each.rejected is None]
        names = {each.implementation.name for each in offered}
        at_expected = {each.implementation.name: each.implementation for each in selection.candidates if each.valid}
        general = min((e.implementation for e in offered if e.valid), key=lambda i: i.rank, default=None)
        if selection.chosen.name in names or general is None or general.name not in at_expected:
            return selection.chosen
        return min((at_expected[name] for name in at_expected if name in names), key=lambda i: i.rank)

    def _is_refused(self, call: Call) -> bool:
        """Whether an operator has implementations, and none of them may serve a call for any extents."""
        try:
            candidates = candidates_of(call, self.settings)
        except SelectionError:  # it is served from outside, if at all
            return False
        return all(candidate.rejected is not None for candidate in candidates)
