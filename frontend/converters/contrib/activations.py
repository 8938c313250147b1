"""onnxruntime's elementwise operators: forms of GELU, and what it fuses to the end of products and convolutions."""

from __future__ import annotations

from collections.abc import Callable

from ....graph.node import Node, tensor_of
from ....ir.constants import const_int
from ....ops.families import parametric, unary
from ....ops.families.binary import add, multiply
from ....ops.families.slicing import strided_slice
from ...onnx_node import OnnxNode
from .entering import contrib

Parameters = tuple[float, ...]

ACTIVATIONS: dict[str, tuple[Callable[..., Node], Parameters]] = {
    "": (lambda x: x, ()),
    "Clip": (parametric.clip, (float("-inf"), float("inf"))),
    "Elu": (parametric.elu, (1.0,)),
    "HardSigmoid": (parametric.hard_sigmoid, (0.2, 0.5)),
    "HardSwish": (unary.hard_swish, ()),
    "LeakyRelu": (parametric.leaky_relu, (0.01,)),
    "QuickGelu": (parametric.swish, (1.702,)),
    "Relu": (unary.relu, ()),
    "Selu": (parametric.selu, (parametric.SELU_ALPHA, parametric.SELU_GAMMA)),
    "Sigmoid": (unary.sigmoid, ()),
    "Softplus": (unary.softplus, ()),
    "Softsign": (unary.softsign, ()),
    "Tanh": (unary.tanh, ()),
    "ThresholdedRelu": (parametric.thresholded_relu, (1.0,)),
}
"""What may be fused to the end of another operator, with the defaults of its parameters."""


def activated(node: OnnxNode, x: Node, name: str, parameters: Parameters) -> Node:
    """x after an activation by its name, which may have parameters, of which the last may be left out."""
    if name not in ACTIVATIONS:
        raise node.unsupported(f"the activation {name!r}")
    function, defaults = ACTIVATIONS[name]
    return function(x, *parameters[: len(defaults)], *defaults[len(parameters) :])


@contrib("Gelu", inputs=1)
def _gelu(node: OnnxNode) -> Node:
    return parametric.gelu(node[0])


@contrib("FastGelu", inputs=2)
def _fast_gelu(node: OnnxNode) -> Node:
    bias = node.get(1)
    return parametric.gelu(node[0] if bias is None else add(node[0], bias), "tanh")


@contrib("BiasGelu", inputs=2)
def _bias_gelu(node: OnnxNode) -> Node:
    return parametric.gelu(add(node[0], node[1]))


@contrib("QuickGelu", "alpha", inputs=1)
def _quick_gelu(node: OnnxNode) -> Node:
    return parametric.swish(node[0], node.real("alpha", 1.702))


@contrib("BiasSplitGelu", inputs=2)
def _bias_split_gelu(node: OnnxNode) -> Node:
    """The first half of the last axis times GELU of the second."""
    x = add(node[0], node[1])
    extent = const_int(tensor_of(x).shape[-1])
    if extent is None or extent % 2:
        raise node.unsupported(f"a last axis of {tensor_of(x).shape[-1]} elements, which must be known and even,")
    left, right = (strided_slice(x, [start], [start + extent // 2], [-1]) for start in (0, extent // 2))
    return multiply(left, parametric.gelu(right))
