"""ONNX's operators that read at indices, or mask by position."""

from __future__ import annotations

from ...graph.node import Node
from ...ops.families import creation, gather, trilu
from ...ops.families.reshape import squeeze
from ...ops.families.slicing import strided_slice
from ..onnx_node import OnnxNode
from ..registry import converter


@converter("Gather", 1, 11, 13)
def _gather(node: OnnxNode) -> Node:
    return gather.take(node[0], node[1], node.integer("axis", 0))


@converter("GatherElements", 11, 13)
def _gather_elements(node: OnnxNode) -> Node:
    return gather.gather_elements(node[0], node[1], node.integer("axis", 0))


@converter("GatherND", 11, 12, 13)
def _gather_nd(node: OnnxNode) -> Node:
    return gather.gather_nd(node[0], node[1], node.integer("batch_dims", 0))


@converter("OneHot", 9, 11, 28)
def _one_hot(node: OnnxNode) -> Node:
    """The values are [off, on]."""
    depth = node.constant_int(1, "the depth")
    off, on = (squeeze(strided_slice(node[2], [k], [k + 1]), [0]) for k in range(2))
    return creation.one_hot(node[0], off, on, depth or 0, node.integer("axis", -1))


@converter("Trilu", 14)
def _trilu(node: OnnxNode) -> Node:
    return trilu.trilu(node[0], node.constant_int(1, "k") or 0, node.flag("upper", True))
