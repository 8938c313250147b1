"""Softmax, LogSoftmax and Hardmax: until version 11 over all axes from ``axis`` on, since version 13 over one."""

from __future__ import annotations

from ...graph.node import Node, tensor_of
from ...ops.definition.relations import normalize_axis
from ...ops.families.argreduce import argmax
from ...ops.families.binary import equal
from ...ops.families.cast import cast
from ...ops.families.reshape import expand_dims, flatten
from ...ops.families.softmax import log_softmax, softmax, trailing_axes
from ..onnx_node import OnnxNode
from ..registry import converter, register
from ..reshaping import reshape_like
from .run_time_operands import numbers_up_to

for _name, _make in (("Softmax", softmax), ("LogSoftmax", log_softmax)):
    register(
        _name,
        (1, 11),
        lambda node, make=_make: make(node[0], trailing_axes(node[0], node.integer("axis", 1))),  # type: ignore[misc]
    )
    register(_name, (13,), lambda node, make=_make: make(node[0], node.integer("axis", -1)))  # type: ignore[misc]


@converter("Hardmax", 1, 11)
def _hardmax_1(node: OnnxNode) -> Node:
    return reshape_like(node, _hardmax(node, flatten(node[0], node.integer("axis", 1)), 1), node[0])


@converter("Hardmax", 13)
def _hardmax_13(node: OnnxNode) -> Node:
    axis = normalize_axis(node.integer("axis", -1), node.rank)
    return _hardmax(node, node[0], axis)


def _hardmax(node: OnnxNode, x: Node, axis: int) -> Node:
    """1 at the first of the largest elements, 0 elsewhere."""
    kind = tensor_of(x)
    places = numbers_up_to(node, kind.shape[axis])
    along = expand_dims(places, [*range(1, kind.ndim - axis)])
    return cast(equal(argmax(x, axis, keepdims=True), along), kind.dtype)
