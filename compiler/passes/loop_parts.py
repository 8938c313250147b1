"""Loops taken apart for passes that change what they carry, slice and capture, and put together again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Self, TypeAlias

from ...base.dataclass import dataclass
from ...base.errors import InternalError
from ...graph.node import Call, Node, Tuple, Var
from ...graph.visit import inputs, post_order, with_inputs
from ...ops.definition.extent_formulas import with_arguments
from ...ops.families.loop import LOOP, LoopAttrs

Bound: TypeAlias = tuple[Node, Var]
"""An argument of a loop, and the parameter of its body that it is."""


@dataclass(frozen=True, slots=True, eq=False)
class LoopParts:
    """The arguments of a loop and the results of its body. ``first`` are the limit and the condition, as far as there
    are any."""

    attrs: LoopAttrs
    first: tuple[Node, ...]
    number: Var
    carried: tuple[Bound, ...]
    sliced: tuple[Bound, ...]
    captured: tuple[Bound, ...]
    results: tuple[Node, ...]

    @classmethod
    def of(cls, call: Call) -> Self:
        """The parts of a call of ``loop``."""
        attrs = call.attrs
        if not isinstance(attrs, LoopAttrs) or not isinstance(attrs.body.body, Tuple):
            raise InternalError(f"{call.op.name} is no loop")
        number, *params = attrs.body.params
        pairs = tuple(zip(call.args[attrs.first :], params, strict=True))
        carried, sliced = attrs.carried, attrs.carried + len(attrs.sliced)
        first, results = call.args[: attrs.first], attrs.body.body.fields
        return cls(attrs, first, number, pairs[:carried], pairs[carried:sliced], pairs[sliced:], results)

    def call(self, old: Call) -> Call:
        """A loop of these parts in the place of ``old``, of which it has the arguments, and the origin."""
        pairs = (*self.carried, *self.sliced, *self.captured)
        args = (*self.first, *(arg for arg, _ in pairs))
        params = (self.number, *(param for _, param in pairs))
        trips = self.attrs.trips
        if isinstance(trips, str):
            trips = with_arguments(trips, lambda number: args.index(old.args[number]))
        body = replace(self.attrs.body, params=params, body=Tuple(self.results))
        attrs = replace(self.attrs, body=body, carried=len(self.carried), trips=trips)
        return LOOP(*args, attrs=attrs, origin=old.origin)

    def with_captured(self, more: Iterable[Bound]) -> Self:
        """The loop with further values that it captures."""
        return replace(self, captured=(*self.captured, *more))

    def with_values(self, values: Mapping[Node, Node]) -> Self:
        """The loop with other nodes in place of some of its body."""
        done: dict[Node, Node] = {}
        for node in post_order(Tuple(self.results), lambda n: n in values):
            used = () if node in values else tuple(done[n] for n in inputs(node))
            done[node] = values[node] if node in values else with_inputs(node, used)
        return replace(self, results=tuple(done[result] for result in self.results))
