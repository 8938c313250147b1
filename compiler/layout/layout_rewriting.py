"""The graph rewritten: each call in the layouts that were chosen for it, with transforms between."""

from __future__ import annotations

from collections.abc import Sequence

from ...base.aligned import aligned
from ...base.errors import InternalError
from ...base.mapped import give_back
from ...graph.node import Call, Constant, Node, tensor_of
from ...graph.visit import inputs, with_inputs
from ...ops.definition.layout_rule import Packed
from ...ops.families.reshape import expand_dims
from .layout_candidates import call_in_layouts, unchanged_candidate
from .layout_search import LayoutAssignment
from .value_layouts import OperandLayout, ResultLayout, transforms_between


def rewrite_layouts(order: Sequence[Node], assignment: LayoutAssignment, result: Node) -> Node:
    """The ``result`` of a graph, whose nodes are given in ``order`` of computation, by an assignment of layouts."""
    made: dict[Node, Node] = {}
    transformed: dict[tuple[Node, OperandLayout], Node] = {}

    def operand(node: Node, needed: OperandLayout) -> Node:
        if (node, needed) not in transformed:
            transformed[node, needed] = _transformed(node, made[node], assignment.layouts[node], needed)
        return transformed[node, needed]

    for node in order:
        if isinstance(node, Call):
            candidate = assignment.chosen[node].layouts
            args = tuple(operand(a, layout) for a, layout in candidate.operands(node))
            if candidate.is_argument:
                (made[node],) = args
            elif candidate == unchanged_candidate(node):
                made[node] = with_inputs(node, args)
            else:
                made[node] = call_in_layouts(node, candidate, args)
        else:
            made[node] = with_inputs(node, tuple(operand(used, None) for used in inputs(node)))
    return operand(result, None)


def _transformed(value: Node, node: Node, given: ResultLayout, needed: OperandLayout) -> Node:
    """What a value of a graph has become, ``node`` of a given layout, in the layout that is needed; one of lower rank
    gets leading axes first."""
    if isinstance(needed, Packed):
        if not isinstance(node, Constant):
            raise InternalError(f"{needed} packs constants, and {node} is none")
        return needed.packed(node)
    if needed is not None and given is None:
        missing = needed.primal.ndim - tensor_of(node).ndim
        if missing:
            node = _with_leading_axes(node, missing)
    for transform in transforms_between(value, given, needed):
        before, node = node, transform(node)
        if isinstance(node, Constant):
            node = Constant(aligned(node.value), node.name)
        if isinstance(before, Constant):
            give_back(before.value)
    return node


def _with_leading_axes(node: Node, count: int) -> Node:
    if isinstance(node, Constant):
        return Constant(node.value.reshape((1,) * count + node.value.shape), node.name)
    return expand_dims(node, tuple(range(count)))
