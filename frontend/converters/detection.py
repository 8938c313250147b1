"""ONNX's operators of detectors: which boxes stay, and what an image has inside of them."""

from __future__ import annotations

from ...graph.node import Node
from ...ops.families.max_roi_pool import max_roi_pool
from ...ops.families.nms import non_max_suppression
from ...ops.families.roi import roi_align
from ..assumed_extent import with_extent
from ..integers import as_number
from ..onnx_node import OnnxNode
from ..registry import converter


@converter("NonMaxSuppression", 10, 11)
def _non_max_suppression(node: OnnxNode) -> Node:
    """Without a number of boxes there are none."""
    limit, overlap, threshold = (None if (value := node.get(k)) is None else as_number(value) for k in (2, 3, 4))
    return non_max_suppression(
        node[0],
        node[1],
        0 if limit is None else limit,
        0.0 if overlap is None else overlap,
        threshold,
        node.flag("center_point_box"),
    )


@converter("RoiAlign", 10, 16, 22)
def _roi_align(node: OnnxNode) -> Node:
    """Version 10 has no half pixels."""
    coordinates = node.string(
        "coordinate_transformation_mode", "half_pixel" if node.version > 10 else "output_half_pixel"
    )
    if coordinates not in ("half_pixel", "output_half_pixel"):
        raise node.unsupported(f"coordinate_transformation_mode {coordinates!r}")
    return roi_align(
        node[0],
        with_extent(node[1], 1, 4),
        node[2],
        (node.integer("output_height", 1), node.integer("output_width", 1)),
        node.real("spatial_scale", 1.0),
        node.integer("sampling_ratio", 0),
        node.string("mode", "avg"),
        coordinates == "half_pixel",
    )


@converter("MaxRoiPool", 1, 22)
def _max_roi_pool(node: OnnxNode) -> Node:
    return max_roi_pool(node[0], node[1], node.required_ints("pooled_shape"), node.real("spatial_scale", 1.0))
