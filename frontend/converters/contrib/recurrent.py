"""onnxruntime's DynamicQuantizeLSTM: an LSTM whose weights are bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....graph.node import Node, tensor_of
from ....ops.families.quantize import dequantize
from ....ops.families.reshape import expand_dims
from ....ops.families.transpose import transpose
from ...onnx_node import OnnxNode
from ..recurrent import lstm_of
from .entering import contrib

WEIGHTS, RECURRENT, W_SCALE, W_ZERO, R_SCALE, R_ZERO = 1, 2, 8, 9, 10, 11


@contrib(
    "DynamicQuantizeLSTM",
    "activation_alpha activation_beta activations clip direction hidden_size input_forget",
    inputs=12,
)
def _dynamic_lstm(node: OnnxNode) -> Sequence[Node | None]:
    """As ONNX's, with weights that are [directions, input, 4 · hidden]. Inputs and states are not rounded, so that the
    result is more exact than that of onnxruntime, which quantizes them in each step."""
    inputs = list(node.inputs[:W_SCALE])
    inputs[WEIGHTS] = _weights(node, WEIGHTS, W_SCALE, W_ZERO)
    inputs[RECURRENT] = _weights(node, RECURRENT, R_SCALE, R_ZERO)
    return lstm_of(replace(node, inputs=inputs))


def _weights(node: OnnxNode, index: int, scale: int, zero: int) -> Node:
    """Weights as real numbers, [directions, 4 · hidden, input]; scales are of directions, or of columns of each."""
    scales, zeros = (_of_columns(node[k]) for k in (scale, zero))
    return transpose(dequantize(node[index], scales, zeros), (0, 2, 1))


def _of_columns(x: Node) -> Node:
    return expand_dims(x, (1, 2) if tensor_of(x).ndim == 1 else (1,))
