"""Calls that are made where they stand, as often as that is run: they do more than to give their result, or may give
something else each time."""

from __future__ import annotations

from ...graph.node import Call, Node
from ...graph.visit import bodies_of, nested_order
from ...ops.families.extern import EXTERN
from ...ops.families.segments import SEGMENT_OPS


def has_effect(node: Node) -> bool:
    """Whether a call has an effect, or a call in one of its bodies has."""
    if not isinstance(node, Call):
        return False
    return node.op is EXTERN or node.op in SEGMENT_OPS or any(_has_inside(body.body) for body in bodies_of(node))


def _has_inside(root: Node) -> bool:
    return any(isinstance(node, Call) and (node.op is EXTERN or node.op in SEGMENT_OPS) for node in nested_order(root))
