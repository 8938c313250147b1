"""ONNX's operators of detectors: which boxes stay, and what an image has inside of them."""

from __future__ import annotations

from ...graph.node import Node
from ...ops.families.nms import non_max_suppression
from ..onnx_node import OnnxNode
from ..registry import converter


@converter("NonMaxSuppression", 10, 11)
def _non_max_suppression(node: OnnxNode) -> Node:
    """Without a number of boxes there are none."""
    limit, overlap = node.get(2), node.get(3)
    return non_max_suppression(
        node[0],
        node[1],
        0 if limit is None else limit,
        0.0 if overlap is None else overlap,
        node.get(4),
        node.flag("center_point_box"),
    )
