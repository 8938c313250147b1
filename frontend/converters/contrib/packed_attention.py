"""onnxruntime's attention of sequences of several lengths whose tokens stand behind each other, without padding."""

from __future__ import annotations

import math

import numpy as np

from ....graph.node import Constant, Node, tensor_of
from ....ir.expr import Expr
from ....ops.families.binary import add, less, maximum, minimum, subtract
from ....ops.families.gather import take
from ....ops.families.matmul.matmul import dense
from ....ops.families.reshape import expand_dims, reshape
from ....ops.families.select import where
from ....ops.families.slicing import strided_slice
from ...integers import as_int64
from ...onnx_node import OnnxNode
from ...reshaping import reshape_to
from ..heads import count_of_heads, in_heads, joined, known
from ..run_time_operands import extent_as_number, numbers_up_to
from .entering import contrib
from .heads import attend, number_like, scale_of


@contrib("PackedAttention", "num_heads qkv_hidden_sizes scale", inputs=6)
def _packed_attention(node: OnnxNode) -> Node:
    """Attention of each sequence to itself. ``token_offset``, [batch, longest], has first of each token where it stands
    among sequences that are filled up; ``cumulative_sequence_length`` where each sequence begins."""
    batch, longest = node.type(3).shape
    heads, width = count_of_heads(node), known(node, node.type(1).shape[1])
    widths = node.ints("qkv_hidden_sizes") or (width // 3,) * 3
    positions = numbers_up_to(node, longest)
    begins, ends = (_bounds(node, batch, first) for first in (0, 1))
    rows = _existing(node, add(expand_dims(begins, (1,)), positions))
    counted = expand_dims(less(positions, expand_dims(subtract(ends, begins), (1,))), (1, 2))
    parts, start = [], 0
    for own in widths:
        column = [start], [start + own]
        projected = dense(node[0], strided_slice(node[1], *column, [1]), transposed=False)
        packed = add(projected, strided_slice(node[2], *column, [0]))
        parts.append(in_heads(node, take(packed, rows), heads))
        start += own
    mask, bias = counted, node.get(5)
    if bias is not None:
        mask = where(counted, bias, number_like(-math.inf, bias))
    y = joined(node, attend(node, parts, [mask], layout="BSHD", scale=scale_of(node, parts[0])))
    places = take(as_int64(reshape(node[3], (-1,))), numbers_up_to(node, node.type().shape[0]))
    return take(reshape_to(y, (batch * longest, tensor_of(y).shape[-1]), node.shapes.inputs), places)


def _bounds(node: OnnxNode, batch: Expr, first: int) -> Node:
    """Where each sequence begins, or with ``first`` 1 where it ends."""
    at = add(numbers_up_to(node, batch), Constant(np.array(first, np.int64)))
    return take(as_int64(node[4]), at)


def _existing(node: OnnxNode, rows: Node) -> Node:
    """Numbers of tokens; behind the last sequence that of the last token, which no mask counts."""
    last = subtract(extent_as_number(node, node.type().shape[0]), Constant(np.array(1, np.int64)))
    return maximum(minimum(rows, last), Constant(np.array(0, np.int64)))
