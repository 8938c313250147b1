"""What a converter made of an ONNX node becomes part of the graph: constants are folded, calls know the node that they
are of, and extents that a run tells have a name."""

from __future__ import annotations

from dataclasses import field, replace

import numpy as np
from onnx import NodeProto

from ..base.dataclass import dataclass
from ..graph.node import Call, Constant, ImportedValue, Node, tensor_of
from ..graph.visit import inputs, post_order, with_inputs
from ..ir.expr import Expr
from ..ops.definition.registry import op_of
from ..ops.families.born_extents import born_extents
from ..ops.families.cast import cast
from ..ops.families.concatenate import concatenate
from ..ops.families.reduce import max as max_of
from ..ops.families.reshape import reshape
from .fold import fold
from .shape_values import ShapeValues
from .values import Value


@dataclass(frozen=True, slots=True)
class FinishedNodes:
    """Mutable: remembers which nodes are finished, each with its number in the order in which they were, which tells
    those of a subgraph from those around it."""

    shapes: ShapeValues
    order: dict[Node, int] = field(default_factory=dict)

    def add(self, node: Node) -> None:
        """Put a finished node behind those so far, unless it is one of them."""
        self.order.setdefault(node, len(self.order))

    def finish(self, root: Node, node: NodeProto, done: dict[Node, Node]) -> Node:
        """Fold what is constant, and note the origin of the calls that a converter made. ``done`` is what became of
        its nodes so far: its results may share some."""
        stack = [root]
        while stack:
            current = stack[-1]
            if current in self.order or current in done:
                done.setdefault(current, current)
                stack.pop()
                continue
            waiting = [n for n in inputs(current) if n not in done and n not in self.order]
            if waiting:
                stack += waiting
                continue
            stack.pop()
            done[current] = self._folded(current, tuple(done.get(n, n) for n in inputs(current)), node)
        return done[root]

    def named(self, result: Value, name: str, node: NodeProto) -> Value:
        """The one result of a node, which knows what the model calls it; unless it is an older value, handed on."""
        if not isinstance(result, Call) or result.origin != _origin(node) or result.value is not None:
            return result
        valued = replace(result, value=ImportedValue(name))
        self.add(valued)
        return valued

    def as_data(self, root: Node) -> Node:
        """A graph in which calls compute what nodes stand for. They take the place of those nodes in the order, so that
        what is computed around a body stays there."""
        data, new = self.shapes.as_data(root)
        for node, made in new:
            if node in self.order:
                for part in post_order(made, self.order.__contains__):
                    self.order.setdefault(part, self.order[node])
        return data

    def _folded(self, current: Node, args: tuple[Node, ...], node: NodeProto) -> Node:
        made = with_inputs(current, args)
        if isinstance(made, Call):
            folded: Node | None = fold(made)
            if folded is None:
                folded = self.shapes.fold(made)
            made = folded if folded is not None else replace(made, origin=_origin(node))
            if isinstance(made, Call) and op_of(made).birth_rule is not None:
                made = self._computed_by_calls(made, node)
                made = self.shapes.bounds.bounded(made, self.shapes.inputs, lambda value: self._largest(value, node))
                self.shapes.inputs.append(made)
        self.add(made)
        return made

    def _computed_by_calls(self, witness: Call, node: NodeProto) -> Call:
        """A witness of extents whose arguments are data: other data may be computed from the extents that it tells, and
        would have what stands for numbers in it otherwise."""
        data = self.as_data(witness)
        if data is witness:
            return witness
        return replace(witness, args=tuple(self.finish(used, node, {}) for used in inputs(data)))

    def _largest(self, value: Node, node: NodeProto) -> Expr:
        """The largest of integers as an extent, which a run computes; 0 where none is above it."""
        flat = concatenate([Constant(np.zeros(1, np.int64)), cast(reshape(value, (-1,)), "int64")], 0)
        most = self.as_data(max_of(flat, keepdims=True))
        witness = self.finish(born_extents(most, ["largest"], "the largest number"), node, {})
        return tensor_of(witness).shape[0]


def _origin(node: NodeProto) -> tuple[str, ...]:
    """The node that a call was made of, as a report names it."""
    return (node.name or node.output[0],)
