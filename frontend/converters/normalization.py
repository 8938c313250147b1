"""ONNX's normalisations, and batch normalisation in training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from ...base.dtype import FLOAT32
from ...graph.node import Constant, Node, tensor_of
from ...ops.families import norm
from ...ops.families.binary import add, divide, multiply, subtract
from ...ops.families.cast import cast
from ...ops.families.creation import full
from ...ops.families.lp_normalize import lp_normalize
from ...ops.families.lrn import lrn
from ...ops.families.reduce import mean
from ...ops.families.reshape import expand_dims, reshape
from ...ops.families.unary import reciprocal, sqrt
from ..assumed_extent import with_extent
from ..onnx_node import OnnxNode
from ..registry import converter
from ..reshaping import reshape_like
from .elementwise import aligned_at, as_dtype


def _scalar(value: float, like: Node) -> Constant:
    return Constant(np.asarray(value, tensor_of(like).dtype.to_numpy()))


@converter("BatchNormalization", 1, 6, 7)
def _batch_norm_1(node: OnnxNode) -> Node | Sequence[Node]:
    """``spatial`` 0 has statistics for each element of a sample. One output means inference, whatever is_test says."""
    if node.flag("spatial", True):
        return _batch_norm_9(node)
    if _wants_statistics(node):
        raise node.unsupported("training with statistics for each element of a sample")
    scale, bias, mean_, variance = (expand_dims(node[k], 0) for k in range(1, 5))
    deviation = sqrt(add(variance, _scalar(node.real("epsilon", 1e-5), variance)))
    return add(multiply(divide(subtract(node[0], mean_), deviation), scale), bias)


@converter("BatchNormalization", 9)
def _batch_norm_9(node: OnnxNode) -> Node | Sequence[Node]:
    """Further outputs mean training: what was made of the mean and the variance, and those of this batch."""
    if not _wants_statistics(node):
        return _batch_norm(node, node[3], node[4])
    statistics = _statistics(node)
    saved = [as_dtype(value, tensor_of(node[3]).dtype) for value in statistics]
    return _batch_norm(node, *statistics), *_updated(node, statistics), *saved


@converter("BatchNormalization", 14, 15)
def _batch_norm_14(node: OnnxNode) -> Node | Sequence[Node]:
    if not node.flag("training_mode"):
        return _batch_norm(node, node[3], node[4])
    statistics = _statistics(node)
    return _batch_norm(node, *statistics), *_updated(node, statistics)


def _wants_statistics(node: OnnxNode) -> bool:
    return any(node.wants(k) for k in range(1, 5))


def _statistics(node: OnnxNode) -> tuple[Node, Node]:
    """The mean of each channel, and its variance around that; of halves in float32."""
    x = as_dtype(node[0], FLOAT32) if node.type().dtype.bits < FLOAT32.bits else node[0]
    axes = [axis for axis in range(node.rank) if axis != 1]
    centred = subtract(x, mean(x, axes, keepdims=True))
    return mean(x, axes), mean(multiply(centred, centred), axes)


def _updated(node: OnnxNode, statistics: Sequence[Node]) -> list[Node]:
    """The mean and the variance that the next batch gets."""
    momentum = node.real("momentum", 0.9)
    updated: list[Node] = []
    for before, now in zip((node[3], node[4]), statistics, strict=True):
        kept, added = (_scalar(part, before) for part in (momentum, 1 - momentum))
        updated.append(add(multiply(before, kept), multiply(as_dtype(now, tensor_of(before).dtype), added)))
    return updated


def _batch_norm(node: OnnxNode, average: Node, variance: Node) -> Node:
    given = (node[1], node[2], average, variance)
    scale, bias, average, variance = (as_dtype(x, node.type().dtype) for x in given)
    return norm.batch_norm(node[0], scale, bias, average, variance, node.real("epsilon", 1e-5))


@converter("InstanceNormalization", 1, 6, 22)
def _instance_norm(node: OnnxNode) -> Node:
    return norm.instance_norm(node[0], node[1], node[2], node.real("epsilon", 1e-5))


@converter("LRN", 1, 13)
def _lrn(node: OnnxNode) -> Node:
    alpha, beta, bias = node.real("alpha", 1e-4), node.real("beta", 0.75), node.real("bias", 1.0)
    return lrn(node[0], node.integer("size"), alpha, beta, bias)


@converter("LpNormalization", 1, 22)
def _lp_normalize(node: OnnxNode) -> Node:
    return lp_normalize(node[0], node.integer("axis", -1), node.integer("p", 2))


@converter("LayerNormalization", 17)
def layer_normalization(node: OnnxNode) -> Sequence[Node]:
    """The result and, where they are asked for, the mean and the inverse of the root of the variance."""
    x, axis, epsilon = node[0], node.integer("axis", -1), node.real("epsilon", 1e-5)
    bias = node.get(2)
    if bias is None:
        bias = _scalar(0.0, node[1])
    y = norm.layer_norm(x, node[1], bias, axis, epsilon)
    if not (node.wants(1) or node.wants(2)):
        return (y,)
    wide = cast(x, "float32") if node.type().dtype.bits < 32 else x
    axes = range(axis % node.rank, node.rank)
    average = safe_mean(wide, axes)
    centered = subtract(wide, average)
    variance = mean(multiply(centered, centered), axes, keepdims=True)
    return y, average, reciprocal(sqrt(add(variance, _scalar(epsilon, variance))))


def safe_mean(x: Node, axes: Sequence[int]) -> Node:
    """The mean that ``nn.layer_norm`` takes away, as it sums it: in parts, which overflow only where the mean does."""
    share = norm.share_of_mean([tensor_of(x).shape[axis] for axis in axes])
    return divide(mean(multiply(x, _scalar(share, x)), axes, keepdims=True), _scalar(share, x))


@converter("RMSNormalization", 23)
def _rms_norm(node: OnnxNode) -> Node:
    """Summed in float32 at least, as ``stash_type`` says by default."""
    if node.integer("stash_type", TensorProto.FLOAT) != TensorProto.FLOAT:
        raise node.unsupported("another stash_type than float")
    if node.type(1).dtype is not node.type().dtype:
        raise node.unsupported("a scale of another type than x")
    return norm.rms_norm(node[0], node[1], node.integer("axis", -1), node.real("epsilon", 1e-5))


@converter("GroupNormalization", 18, 21)
def _group_norm(node: OnnxNode) -> Node:
    """Each group is normalised like a channel. Version 18 scales by group, version 21 by channel."""
    x, scale, bias = node[0], node[1], node[2]
    groups, epsilon = node.integer("num_groups"), node.real("epsilon", 1e-5)
    if node.version > 18 and (channels := tensor_of(scale).static_shape) is not None:
        x = with_extent(x, 1, channels[0])
    grouped = reshape(x, (0, groups, -1))
    if node.version == 18:
        return reshape_like(node, norm.instance_norm(grouped, scale, bias, epsilon), x)
    kind = node.type().dtype
    normal = norm.instance_norm(grouped, full((groups,), 1, kind), full((groups,), 0, kind), epsilon)
    scaled = multiply(reshape_like(node, normal, x), aligned_at(scale, node.rank, 1))
    return add(scaled, aligned_at(bias, node.rank, 1))
