"""Softmax, LogSoftmax and Hardmax: until version 11 over all axes from ``axis`` on, since version 13 over one."""

from __future__ import annotations

import numpy as np

from ...graph.node import Constant, Node
from ...ops.definition.relations import normalize_axis
from ...ops.families.argreduce import argmax
from ...ops.families.creation import one_hot
from ...ops.families.reshape import flatten
from ...ops.families.softmax import log_softmax, softmax, trailing_axes
from ..onnx_node import OnnxNode
from ..registry import converter, register
from ..reshaping import reshape_like

for _name, _make in (("Softmax", softmax), ("LogSoftmax", log_softmax)):
    register(
        _name,
        (1, 11),
        lambda node, make=_make: make(node[0], trailing_axes(node[0], node.integer("axis", 1))),  # type: ignore[misc]
    )
    register(_name, (13,), lambda node, make=_make: make(node[0], node.integer("axis", -1)))  # type: ignore[misc]


@converter("Hardmax", 1, 11)
def _hardmax_1(node: OnnxNode) -> Node:
    axis = node.integer("axis", 1)
    depth = int(np.prod(node.static_shape(0)[axis:], dtype=np.int64))
    return reshape_like(node, _hardmax(node, flatten(node[0], axis), 1, depth), node[0])


@converter("Hardmax", 13)
def _hardmax_13(node: OnnxNode) -> Node:
    axis = normalize_axis(node.integer("axis", -1), node.rank)
    return _hardmax(node, node[0], axis, node.static_shape(0)[axis])


def _hardmax(node: OnnxNode, x: Node, axis: int, depth: int) -> Node:
    """1 at the first of the largest elements, 0 elsewhere."""
    off, on = (Constant(np.asarray(v, node.type().dtype.to_numpy())) for v in (0, 1))
    return one_hot(argmax(x, axis), off, on, depth, axis)
