"""ONNX's convolutions and pools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...graph.node import Node, TupleGet, tensor_of
from ...ir.expr import Expr
from ...ops.families import global_pool, pool
from ...ops.families.binary import add
from ...ops.families.col2im import col2im
from ...ops.families.conv import conv
from ...ops.families.conv import transpose as conv_transpose
from ...ops.families.window import known_window
from ..onnx_node import OnnxNode
from ..registry import converter, register
from .elementwise import aligned_at


def window_of(node: OnnxNode) -> dict[str, Any]:
    """The attributes that all windowed operators have."""
    auto_pad = node.string("auto_pad", "NOTSET")
    return {
        "strides": node.ints("strides") or 1,
        "padding": node.ints("pads") or 0,
        "dilation": node.ints("dilations") or 1,
        "auto_pad": auto_pad or "NOTSET",
    }


def check_kernel_shape(node: OnnxNode, window: Sequence[Expr] | None = None) -> None:
    """Raise ``ModelError`` where the attribute differs from the window of the weights, which follows their channels if
    it is not given."""
    stated = node.ints("kernel_shape")
    found = known_window(node.type(1).shape[2:] if window is None else window)
    if stated is not None and stated != found:
        raise node.unsupported(f"kernel_shape {stated} for a weight {node.type(1)}")


def _with_bias(node: OnnxNode, result: Node) -> Node:
    bias = node.get(2)
    return result if bias is None else add(result, aligned_at(bias, tensor_of(result).ndim, 1))


@converter("Conv", 1, 11, 22)
def convolution(node: OnnxNode) -> Node:
    """A convolution and its bias, if it has one."""
    check_kernel_shape(node)
    return _with_bias(node, conv.conv(node[0], node[1], groups=node.integer("group", 1), **window_of(node)))


@converter("ConvTranspose", 1, 11, 22)
def _conv_transpose(node: OnnxNode) -> Node:
    check_kernel_shape(node)
    wanted = node.ints("output_shape")
    result = conv_transpose.conv_transpose(
        node[0],
        node[1],
        output_padding=node.ints("output_padding") or 0,
        groups=node.integer("group", 1),
        output_shape=wanted[-(node.rank - 2) :] if wanted else None,
        **window_of(node),
    )
    return _with_bias(node, result)


@converter("MaxPool", 1, 8, 10, 11, 12, 22)
def _max_pool(node: OnnxNode) -> Sequence[Node]:
    window = node.required_ints("kernel_shape")
    ceil_mode = node.flag("ceil_mode")
    if not node.wants(1):
        return (pool.max_pool(node[0], window, ceil_mode=ceil_mode, **window_of(node)),)
    both = pool.max_pool_with_indices(
        node[0], window, ceil_mode=ceil_mode, storage_order=node.integer("storage_order", 0), **window_of(node)
    )
    return TupleGet(both, 0), TupleGet(both, 1)


@converter("AveragePool", 1, 7, 10, 11, 19, 22)
def _average_pool(node: OnnxNode) -> Node:
    window = node.required_ints("kernel_shape")
    include = node.flag("count_include_pad")
    return pool.avg_pool(
        node[0], window, ceil_mode=node.flag("ceil_mode"), count_include_pad=include, **window_of(node)
    )


@converter("LpPool", 1)
def _lp_pool_1(node: OnnxNode) -> Node:
    return pool.lp_pool(node[0], node.required_ints("kernel_shape"), p=_whole(node, 2.0), **window_of(node))


@converter("LpPool", 2, 11, 18, 22)
def _lp_pool(node: OnnxNode) -> Node:
    window = node.required_ints("kernel_shape")
    return pool.lp_pool(node[0], window, ceil_mode=node.flag("ceil_mode"), p=node.integer("p", 2), **window_of(node))


@converter("GlobalLpPool", 1)
def _global_lp_pool_1(node: OnnxNode) -> Node:
    return global_pool.global_lp_pool(node[0], _whole(node, 2.0))


@converter("GlobalLpPool", 2, 22)
def _global_lp_pool(node: OnnxNode) -> Node:
    return global_pool.global_lp_pool(node[0], node.integer("p", 2))


def _whole(node: OnnxNode, default: float) -> int:
    """Version 1 had a float p."""
    p = node.real("p", default)
    if not p.is_integer():
        raise node.unsupported(f"p = {p}")
    return int(p)


register("GlobalAveragePool", (1, 22), lambda node: global_pool.global_avg_pool(node[0]))
register("GlobalMaxPool", (1, 22), lambda node: global_pool.global_max_pool(node[0]))


@converter("Col2Im", 18)
def _col2im(node: OnnxNode) -> Node:
    image, window = node.required_constant(1, "image_shape"), node.required_constant(2, "block_shape")
    return col2im(
        node[0], image, window, node.ints("strides") or 1, node.ints("pads") or 0, node.ints("dilations") or 1
    )
