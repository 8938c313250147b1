"""onnxruntime's linear attention and causal convolution, which hand a state on: as ONNX's own, with more attributes."""

from __future__ import annotations

from collections.abc import Mapping

from ....graph.node import tensor_of
from ...onnx_node import OnnxNode
from .entering import contrib

_LINEAR = {"state_window": 0}
_CAUSAL = {
    "channels_last": 0,
    "dilation": 1,
    "input_channel_offset": 0,
    "input_channels": 0,
    "ndim": 1,
    "state_channels_last": -1,
    "state_length": 0,
    "state_update_capacity": 0,
    "state_window": 0,
}


@contrib("LinearAttention", "chunk_size kv_num_heads q_num_heads scale state_window update_rule", inputs=6)
def _linear_attention(node: OnnxNode) -> None:
    """The body of ONNX's operator of that name."""
    _check(node, _LINEAR)
    if node.integer("q_num_heads") % node.integer("kv_num_heads"):
        raise node.unsupported("fewer heads of queries than of keys")


@contrib(
    "CausalConvWithState",
    "activation channels_last dilation input_channel_offset input_channels ndim state_channels_last state_length "
    "state_update_capacity state_window",
    inputs=4,
)
def _causal_conv(node: OnnxNode) -> None:
    """The body of ONNX's operator of that name, which has three axes."""
    _check(node, _CAUSAL)
    if tensor_of(node[0]).ndim != 3:
        raise node.unsupported(f"{tensor_of(node[0])}, which has not three axes,")


def _check(node: OnnxNode, defaults: Mapping[str, int]) -> None:
    """Raise ``ModelError`` where an attribute that ONNX's operator has not says anything."""
    for name, default in defaults.items():
        if node.integer(name, default) != default:
            raise node.unsupported(f"{name} {node.integer(name)}")
