"""A Loop of a model: its body, what it carries, and how many iterations it has, as far as that is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from onnx import GraphProto

from ..base.dataclass import dataclass
from ..graph.node import Constant, Node, tensor_of
from ..ir.constants import MAX_INDEX
from ..ir.expr import Expr
from ..ops.families.binary import greater, logical_and, maximum, subtract
from .integers import integers
from .onnx_node import OnnxNode
from .subgraphs import Subgraphs, as_declared, as_scalar
from .values import Value


@dataclass(frozen=True, slots=True, eq=False)
class OnnxLoop:
    """A node whose body is a graph, of whose iterations the first ``done`` ones are converted already."""

    node: OnnxNode
    graph: GraphProto
    subgraphs: Subgraphs
    done: int = 0

    @property
    def carried(self) -> Sequence[Value]:
        """What it carries, as it is before the iterations that are left."""
        return [self.node.value(k) for k in range(2, len(self.node.inputs))]

    @property
    def trips(self) -> int | Expr | None:
        """The most iterations as a number or a formula, if they are known before the loop as such. More than any index
        counts, which exporters write for loops that only a condition ends, are not."""
        most = self.node.get(0)
        known = None if most is None else self.subgraphs.shapes.of(most)
        if known is None or known.size != 1:
            return None
        trips = known.ravel()[0]
        if isinstance(trips, Expr):
            return trips
        return max(0, int(trips)) if int(trips) <= MAX_INDEX else None

    def has_iterations(self) -> Node:
        """Whether it has any, as a scalar."""
        node, asked = self.node, []
        if node.get(0) is not None:
            asked.append(node.finish(greater(as_scalar(node[0]), integers(0))))
        if node.get(1) is not None:
            asked.append(node.finish(as_scalar(node[1])))
        if not asked:
            return Constant(np.array(True))
        return asked[0] if len(asked) == 1 else node.finish(logical_and(*asked))

    def iteration(self) -> tuple[Value, list[Value]]:
        """What the first iteration gives: whether it is to go on, and the other values."""
        count = as_declared(integers(self.done), self.graph.input[0])
        holds = as_declared(Constant(np.array(True)), self.graph.input[1])
        names = (i.name for i in self.graph.input)
        given = dict(zip(names, [count, holds, *self.carried], strict=True))
        goes_on, *values = self.subgraphs.results(self.graph, given)
        return goes_on, values

    def others(self, holds: Node | None, carried: Sequence[Value]) -> OnnxLoop:
        """The loop of the iterations behind the first one, which gives these."""
        most = self.node.get(0)
        if most is not None:
            one = integers(1 if tensor_of(most).ndim == 0 else [1])
            most = self.node.finish(maximum(self.node.finish(subtract(most, one)), integers(0)))
        return replace(self, node=replace(self.node, inputs=[most, holds, *carried]), done=self.done + 1)
