"""onnxruntime's mixtures of experts: each token goes to the best few of them, whose results are weighed and added."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....base.dataclass import dataclass
from ....graph.node import Constant, Node, tensor_of
from ....ops.families import parametric, reduce, unary
from ....ops.families.binary import add, divide, maximum, minimum, multiply, subtract
from ....ops.families.cast import cast
from ....ops.families.experts import expert_dense
from ....ops.families.gather import gather_elements, take
from ....ops.families.repeat import repeat
from ....ops.families.reshape import expand_dims, reshape
from ....ops.families.slicing import strided_slice
from ....ops.families.softmax import softmax
from ....ops.families.topk import topk
from ...onnx_node import OnnxNode
from ...reshaping import reshape_like
from ..elementwise import as_dtype
from .entering import contrib
from .low_bits import unpacked

_ATTRIBUTES = (
    "activation_alpha activation_beta activation_type k normalize_routing_weights swiglu_fusion swiglu_limit "
    "swiglu_limit_after_activation use_sparse_mixer"
)
_ACTIVATIONS: dict[str, Callable[[Node], Node]] = {
    "relu": unary.relu,
    "gelu": lambda x: parametric.gelu(x, "tanh"),
    "silu": parametric.swish,
    "identity": lambda x: x,
    "relu2": lambda x: multiply(unary.relu(x), unary.relu(x)),
}


@dataclass(frozen=True, slots=True, eq=False)
class _Layer:
    """The weights of all experts for one product, [experts, outputs, inputs], and their biases, if there are."""

    weights: Node
    bias: Node | None

    def __call__(self, x: Node, experts: Node) -> Node:
        y = expert_dense(x, experts, self.weights)
        return y if self.bias is None else add(y, take(self.bias, experts))


@contrib("MoE", _ATTRIBUTES, inputs=8)
def _mixture(node: OnnxNode) -> Node:
    """Experts are chosen by the softmax of their scores; what is left out is not in the sum, unless it is asked for."""
    probabilities, experts = topk(softmax(node[1]), node.integer("k", 1))
    if node.flag("normalize_routing_weights"):
        probabilities = divide(probabilities, reduce.sum(probabilities, -1, keepdims=True))
    third = None if node.get(6) is None else _Layer(node[6], node.get(7))
    return _mixed(node, probabilities, experts, _Layer(node[2], node.get(3)), _Layer(node[4], node.get(5)), third)


@contrib(
    "QMoE",
    f"{_ATTRIBUTES} accuracy_level block_size expert_weight_bits fc1_expert_weight_bits fc2_expert_weight_bits "
    "fc3_expert_weight_bits quant_type weights_prepacked",
    inputs=21,
)
def _quantized_mixture(node: OnnxNode) -> Node:
    """Convert ``MoE`` of weights of few bits, by the softmax of the best scores only; or by numbers of their own."""
    if node.string("quant_type", "int") != "int" or node.integer("weights_prepacked", -1) == 1:
        raise node.unsupported("weights of few bits that are no integers, or packed for one processor,")
    if any(node.get(k) is not None for k in range(15, 21)):
        raise node.unsupported("scales of a whole expert, or of what is computed,")
    scores, experts = topk(node[1], node.integer("k", 1))
    given = node.get(14)
    if given is None:
        mixed: Node = softmax(scores)
    else:
        mixed = gather_elements(given, experts, 1)
        if node.flag("normalize_routing_weights"):
            mixed = divide(mixed, reduce.sum(mixed, -1, keepdims=True))
    layers = [_quantized_layer(node, 2 + 3 * number, 11 + number, f"fc{number + 1}") for number in range(3)]
    first, second, third = layers
    if first is None or second is None:
        raise node.unsupported("a mixture without weights")
    return _mixed(node, mixed, experts, first, second, third)


def _quantized_layer(node: OnnxNode, at: int, zeros_at: int, name: str) -> _Layer | None:
    """The weights from input ``at`` on: numbers, scales and bias. None if there are none."""
    packed, scales = node.get(at), node.get(at + 1)
    if packed is None:
        return None
    bits = node.integer(f"{name}_expert_weight_bits", node.integer("expert_weight_bits", 4))
    if scales is None or bits not in (2, 4, 8):
        raise node.unsupported(f"weights of {bits} bits, or without scales,")
    kind = node.type().dtype
    codes, scales = cast(unpacked(packed, bits), str(kind)), as_dtype(scales, kind)
    zeros = node.get(zeros_at)
    blocks = scales if tensor_of(scales).ndim == 3 else expand_dims(scales, -1)
    if zeros is None:
        middle: Node = Constant(np.asarray(1 << (bits - 1), kind.to_numpy()))
    else:
        (count,) = node.numbers(tensor_of(scales).shape[-1:])
        own = strided_slice(unpacked(zeros, bits), [0], [count], [-1])
        middle = cast(own if tensor_of(own).ndim == 3 else expand_dims(own, -1), str(kind))
    if tensor_of(scales).ndim == 3:
        block = node.integer("block_size")
        blocks = repeat(blocks, block, -1)
        middle = middle if zeros is None else repeat(middle, block, -1)
    return _Layer(multiply(subtract(codes, middle), blocks), node.get(at + 2))


def _mixed(node: OnnxNode, weights: Node, experts: Node, first: _Layer, second: _Layer, third: _Layer | None) -> Node:
    """The sum over a token's experts, each a layer, an activation and a layer, times its weight. ``weights`` and
    ``experts`` are [tokens, k]."""
    k, x = node.integer("k", 1), node[0]
    (width,) = tensor_of(x).shape[-1:]
    (hidden,) = node.numbers((width,))
    tokens = reshape(x, (-1, hidden))
    chosen = reshape(experts, (-1,))
    rows = tokens if k == 1 else repeat(tokens, k, 0)
    inner = first(rows, chosen)
    results = second(_activated(node, inner, None if third is None else third(rows, chosen)), chosen)
    weighed = multiply(reshape(results, (-1, k, hidden)), expand_dims(weights, -1))
    return reshape_like(node, reduce.sum(weighed, 1), x)


def _activated(node: OnnxNode, x: Node, up: Node | None) -> Node:
    """What is between the two products; of the gated ones ``x`` has gate and factor side by side, unless this is
    ``up``."""
    name, fusion = node.string("activation_type", "relu"), node.integer("swiglu_fusion", 0)
    if name in _ACTIVATIONS:
        return _ACTIVATIONS[name](x)
    if name not in ("swiglu", "geglu") or node.flag("swiglu_limit_after_activation"):
        raise node.unsupported(f"the activation {name!r}, or a limit behind one,")
    if up is None:
        gate, up = _halves(node, x, fusion)
    else:
        gate = x
    if name == "geglu":
        return multiply(parametric.gelu(gate, "tanh"), up)
    if node.has("swiglu_limit"):
        limit = node.real("swiglu_limit")
        kind = tensor_of(x).dtype.to_numpy()
        gate = minimum(gate, Constant(np.asarray(limit, kind)))
        up = maximum(minimum(up, Constant(np.asarray(limit, kind))), Constant(np.asarray(-limit, kind)))
    beta = Constant(np.asarray(node.real("activation_beta", 0.0), tensor_of(x).dtype.to_numpy()))
    return multiply(parametric.swish(gate, node.real("activation_alpha", 1.0)), add(up, beta))


def _halves(node: OnnxNode, x: Node, fusion: int) -> tuple[Node, Node]:
    """Gate and factor, which stand side by side, each with its own (1) or one behind the other (2)."""
    (columns,) = node.numbers(tensor_of(x).shape[-1:])
    if fusion not in (1, 2) or columns % 2:
        raise node.unsupported("a gate without weights for what it multiplies")
    if fusion == 1:
        return strided_slice(x, [0], [columns], [-1], [2]), strided_slice(x, [1], [columns], [-1], [2])
    return strided_slice(x, [0], [columns // 2], [-1]), strided_slice(x, [columns // 2], [columns], [-1])
