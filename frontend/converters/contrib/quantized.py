"""onnxruntime's operators on quantized numbers, but for products: they compute on real numbers, and quantize again.

An integer x stands for (x - zero point) · scale; a zero point that is left out is 0.
"""

from __future__ import annotations

import numpy as np

from ....graph.node import Node, tensor_of
from ....ops.families import global_pool, parametric, pool, unary
from ....ops.families.binary import BinaryCall, add, multiply
from ....ops.families.concatenate import concatenate
from ....ops.families.quantize import dequantize, quantize
from ....ops.families.select import where
from ....ops.families.softmax import softmax, trailing_axes
from ...onnx_node import OnnxNode
from ...registry import Converter
from ..convolution import averaged, layout_of, same_padded
from .entering import ANY_NUMBER, contrib

POOL = "auto_pad ceil_mode kernel_shape pads strides"


def _of(node: OnnxNode, first: int) -> Node:
    """The real numbers of an input, which its scale and zero point follow."""
    return dequantize(node[first], node[first + 1], node.get(first + 2))


def _result(node: OnnxNode, y: Node, scale: int) -> Node:
    """Real numbers as integers of the type of the first input, by a scale and the zero point behind it."""
    return quantize(y, node[scale], node.get(scale + 1), node.type().dtype)


def _two(function: BinaryCall) -> Converter:
    def convert(node: OnnxNode) -> Node:
        return _result(node, function(_of(node, 0), _of(node, 3)), 6)

    return convert


contrib("QLinearAdd", inputs=8)(_two(add))
contrib("QLinearMul", inputs=8)(_two(multiply))


@contrib("QLinearSigmoid", inputs=5)
def _sigmoid(node: OnnxNode) -> Node:
    return _result(node, unary.sigmoid(_of(node, 0)), 3)


@contrib("QLinearLeakyRelu", "alpha", inputs=5)
def _leaky_relu(node: OnnxNode) -> Node:
    return _result(node, parametric.leaky_relu(_of(node, 0), node.real("alpha", 0.01)), 3)


@contrib("QLinearSoftmax", "axis opset", inputs=5)
def _softmax(node: OnnxNode) -> Node:
    """Before operator set 13, the axes from ``axis`` on are one."""
    x, axis = _of(node, 0), node.integer("axis", -1)
    y = softmax(x, axis if node.integer("opset") >= 13 else trailing_axes(x, axis))
    return _result(node, y, 3)


@contrib("QLinearConcat", "axis", inputs=ANY_NUMBER)
def _concat(node: OnnxNode) -> Node:
    """The scale and zero point of the result come first, then each tensor with its own."""
    parts = [_of(node, k) for k in range(2, len(node.inputs), 3)]
    joined = concatenate(parts, node.integer("axis"))
    return quantize(joined, node[0], node[1], tensor_of(node[1]).dtype)


@contrib("QLinearWhere", inputs=9)
def _where(node: OnnxNode) -> Node:
    chosen = where(node[0], _of(node, 1), _of(node, 4))
    return quantize(chosen, node[7], node[8], tensor_of(node[8]).dtype)


@contrib("QLinearAveragePool", f"channels_last count_include_pad {POOL}", inputs=5)
def _average_pool(node: OnnxNode) -> Node:
    pooled = averaged(node, _of(node, 0), node.flag("channels_last"))
    return _result(node, pooled, 3)


@contrib("QLinearGlobalAveragePool", "channels_last", inputs=5)
def _global_average_pool(node: OnnxNode) -> Node:
    return _result(node, global_pool.global_avg_pool(_of(node, 0), _layout(node)), 3)


@contrib("NhwcMaxPool", f"dilations {POOL}", inputs=1)
def _nhwc_max_pool(node: OnnxNode) -> Node:
    window, kind = node.required_ints("kernel_shape"), node.type().dtype
    x, options = same_padded(node, node[0], window, int(np.iinfo(kind.to_numpy()).min), last=True)
    return pool.max_pool(x, window, ceil_mode=node.flag("ceil_mode"), layout=layout_of(node.rank, True), **options)


def _layout(node: OnnxNode) -> str:
    return layout_of(node.rank, node.flag("channels_last"))
