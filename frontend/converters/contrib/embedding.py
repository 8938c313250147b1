"""onnxruntime's EmbedLayerNormalization: the sum of embeddings of words, positions and segments, normalised."""

from __future__ import annotations

from collections.abc import Sequence

from ....base.dtype import FLOAT32
from ....graph.node import Node
from ....ops.families.binary import add
from ....ops.families.cast import cast
from ....ops.families.creation import full
from ....ops.families.gather import take
from ....ops.families.open_extents import open_slice
from ....ops.families.quantize import dequantize
from ....ops.families.reduce import sum as total
from ....ops.families.repeat import broadcast_to_extents
from ...integers import integers
from ...onnx_node import OnnxNode
from ..elementwise import as_dtype
from .entering import contrib
from .normalization import SKIP_EPSILON, layer_norm

IDS, SEGMENTS, WORDS, POSITIONS, OF_SEGMENTS, GAMMA, BETA, MASK, POSITION_IDS = range(9)


@contrib("EmbedLayerNormalization", "epsilon mask_index_type", inputs=9)
def _embed_layer_norm(node: OnnxNode) -> Sequence[Node | None]:
    """The second output is how many positions of each sequence count, the third the sum before it is normalised."""
    summed = take(node[WORDS], node[IDS], 0)
    positions = node.get(POSITION_IDS)
    if positions is None:
        summed = add(summed, _first_positions(node, node[POSITIONS]))
    else:
        summed = add(summed, take(node[POSITIONS], positions, 0))
    segments, table = node.get(SEGMENTS), node.get(OF_SEGMENTS)
    if table is not None:
        summed = add(summed, take(table, integers(0) if segments is None else segments, 0))
    y = layer_norm(summed, node[GAMMA], node[BETA], node.real("epsilon", SKIP_EPSILON))
    return y, _counts(node) if node.wants(1) else None, summed


def _first_positions(node: OnnxNode, table: Node) -> Node:
    """The rows of a table for the positions of a sequence, in order."""
    return open_slice(table, 0, 0, node.type(IDS).shape[1], node.shapes.inputs)


def _counts(node: OnnxNode) -> Node:
    """How many positions of each sequence the mask has; 0 without a mask."""
    mask, of = node.get(MASK), node.shapes.inputs
    if mask is None:
        return broadcast_to_extents(full((1,), 0, "int32"), node.type(IDS).shape[:1], of)
    return total(cast(mask, "int32"), 1)


@contrib("QEmbedLayerNormalization", "epsilon", inputs=18)
def _quantized_embed_layer_norm(node: OnnxNode) -> Sequence[Node | None]:
    """Tables, scale and bias are bytes, each with a scale and a zero point of its own."""
    scales, zeros = range(8, 13), range(13, 18)
    words, positions, segments, gamma, beta = zip(
        (WORDS, POSITIONS, OF_SEGMENTS, GAMMA, BETA), scales, zeros, strict=True
    )

    def real(x: Node, place: tuple[int, int, int]) -> Node:
        return dequantize(x, node[place[1]], node[place[2]])

    summed = real(take(node[WORDS], node[IDS], 0), words)
    summed = add(summed, real(_first_positions(node, node[POSITIONS]), positions))
    ids, table = node.get(SEGMENTS), node.get(OF_SEGMENTS)
    if ids is not None and table is not None:
        summed = add(summed, real(take(table, ids, 0), segments))
    scale, bias = real(node[GAMMA], gamma), real(node[BETA], beta)
    y = layer_norm(as_dtype(summed, FLOAT32), scale, bias, node.real("epsilon", SKIP_EPSILON))
    return y, _counts(node) if node.wants(1) else None
