"""onnxruntime's normalisations: by layers, of sums with what skips a layer, of sums of embeddings, and by groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ....base.dtype import FLOAT32, FLOAT64, DType
from ....graph.node import Constant, Node, tensor_of
from ....ops.families import norm
from ....ops.families.binary import add, multiply, subtract
from ....ops.families.creation import full
from ....ops.families.parametric import swish
from ....ops.families.reduce import mean
from ....ops.families.reshape import expand_dims, reshape
from ....ops.families.transpose import transpose
from ....ops.families.unary import rsqrt
from ...onnx_node import OnnxNode
from ...reshaping import reshape_like
from ..elementwise import aligned_at, as_dtype
from ..normalization import layer_normalization, safe_mean
from .entering import contrib

SKIP_EPSILON = 1e-12
"""The default of the normalisations of sums."""


def zeros_like(scale: Node) -> Constant:
    """A bias that does nothing, which stretches."""
    return Constant(np.zeros((), tensor_of(scale).dtype.to_numpy()))


def layer_norm(x: Node, scale: Node, bias: Node | None, epsilon: float) -> Node:
    """x normalised over its last axis."""
    return norm.layer_norm(x, scale, zeros_like(scale) if bias is None else bias, -1, epsilon)


@contrib("LayerNormalization", "axis epsilon stash_type", inputs=3, domain="")
def _layer_norm_before_17(node: OnnxNode) -> Sequence[Node]:
    """What ONNX has from operator set 17 on: the optimizer of onnxruntime writes it into files of any set."""
    return layer_normalization(node)


@contrib("SimplifiedLayerNormalization", "axis epsilon stash_type", inputs=2, domain="")
def _simplified(node: OnnxNode) -> Sequence[Node | None]:
    """x over the root of the mean of squares; what is kept for training is its inverse. x may be narrower or wider than
    the scale, which says what the result is."""
    axis, epsilon, to = node.integer("axis", -1), node.real("epsilon", 1e-5), node.type(1).dtype
    wide = _wider(node.type().dtype, to)
    x = as_dtype(node[0], wide)
    y = as_dtype(norm.rms_norm(x, as_dtype(node[1], wide), axis, epsilon), to)
    return y, _inverse_root(x, range(axis % node.rank, node.rank), epsilon) if node.wants(1) else None


def _wider(a: DType, b: DType) -> DType:
    return a if a is b else FLOAT64 if FLOAT64 in (a, b) else FLOAT32


def _inverse_root(x: Node, axes: Sequence[int], epsilon: float) -> Node:
    """1 / sqrt(mean of squares + epsilon), of half precision in float32."""
    wide = as_dtype(x, FLOAT32) if tensor_of(x).dtype.bits < 32 else x
    squares = mean(multiply(wide, wide), axes, keepdims=True)
    return rsqrt(add(squares, Constant(np.asarray(epsilon, tensor_of(wide).dtype.to_numpy()))))


@contrib("SkipLayerNormalization", "epsilon", inputs=5)
def _skip_layer_norm(node: OnnxNode) -> Sequence[Node | None]:
    total, epsilon = _with_skip(node, 4), node.real("epsilon", SKIP_EPSILON)
    y = layer_norm(total, node[2], node.get(3), epsilon)
    average = safe_mean(as_dtype(total, FLOAT32), [node.rank - 1]) if node.wants(1) or node.wants(2) else None
    inverse = None
    if average is not None and node.wants(2):
        inverse = _inverse_root(subtract(as_dtype(total, FLOAT32), average), [-1], epsilon)
    return y, average, inverse, total


@contrib("SkipSimplifiedLayerNormalization", "epsilon", inputs=4)
def _skip_simplified(node: OnnxNode) -> Sequence[Node | None]:
    """There is no mean, so that its output, which is for training, cannot be asked for."""
    if node.wants(1):
        raise node.unsupported("the mean, which this normalisation does not compute,")
    total, epsilon = _with_skip(node, 3), node.real("epsilon", SKIP_EPSILON)
    inverse = _inverse_root(total, [-1], epsilon) if node.wants(2) else None
    return norm.rms_norm(total, node[2], -1, epsilon), None, inverse, total


def _with_skip(node: OnnxNode, bias: int) -> Node:
    """What is normalised: the input, what skipped a layer, which may be one for all of the batch, and a bias."""
    total, given = add(node[0], node[1]), node.get(bias)
    return total if given is None else add(total, given)


@contrib("GroupNorm", "activation channels_last epsilon groups", inputs=3)
def _group_norm(node: OnnxNode) -> Node:
    return _by_groups(node, node[0])


@contrib("SkipGroupNorm", "activation channels_last epsilon groups", inputs=5)
def _skip_group_norm(node: OnnxNode) -> Sequence[Node]:
    """What skips has one number a channel of each sample, or is as x; the sum is the second output."""
    skip = node[3]
    if tensor_of(skip).ndim == 2:
        skip = expand_dims(skip, (1, 2) if node.flag("channels_last", True) else (2, 3))
    total, bias = add(node[0], skip), node.get(4)
    if bias is not None:
        total = add(total, _of_channels(node, bias))
    return _by_groups(node, total), total


def _of_channels(node: OnnxNode, x: Node) -> Node:
    """A number for each channel, where x has its channels."""
    return x if node.flag("channels_last", True) else aligned_at(x, node.rank, 1)


def _by_groups(node: OnnxNode, x: Node) -> Node:
    """Each group of channels normalised by its mean and variance, scaled by channel; with activation 1, SiLU of it."""
    last, groups, kind = node.flag("channels_last", True), node.integer("groups"), tensor_of(x).dtype
    rank = node.rank
    first = transpose(x, (0, rank - 1, *range(1, rank - 1))) if last else x
    unit, zero = (full((groups,), value, kind) for value in (1, 0))
    grouped = norm.instance_norm(reshape(first, (0, groups, -1)), unit, zero, node.real("epsilon", 1e-5))
    normal = reshape_like(node, grouped, first)
    if last:
        normal = transpose(normal, (0, *range(2, rank), 1))
    gamma, beta = (_of_channels(node, as_dtype(node[k], kind)) for k in (1, 2))
    y = add(multiply(normal, gamma), beta)
    activations: dict[int, Callable[[Node], Node]] = {0: lambda made: made, 1: swish}
    if node.integer("activation") not in activations:
        raise node.unsupported(f"activation {node.integer('activation')}")
    return activations[node.integer("activation")](y)
