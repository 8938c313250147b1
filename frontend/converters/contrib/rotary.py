"""onnxruntime's RotaryEmbedding: pairs of elements of each head turned by angles that grow with the position.

Source: Su et al., RoFormer (2021). The pairs are the two halves of a head, or neighbours if ``interleaved``.
"""

from __future__ import annotations

from ....graph.node import Node, tensor_of
from ....ops.families.binary import add, multiply, subtract
from ....ops.families.concatenate import concatenate
from ....ops.families.gather import take
from ....ops.families.reshape import expand_dims
from ....ops.families.slicing import strided_slice
from ...integers import as_int64
from ...onnx_node import OnnxNode
from ...reshaping import reshape_to
from ..heads import by_heads, in_heads, joined, known
from ..run_time_operands import numbers_up_to
from .entering import contrib


@contrib("RotaryEmbedding", "interleaved is_packed_batching num_heads rotary_embedding_dim scale", inputs=4)
def _rotary_embedding(node: OnnxNode) -> Node:
    """Turn [batch, sequence, heads · size] or [batch, heads, sequence, size]. Positions are given for each element of a
    sequence, or that of the first one."""
    if node.real("scale", 1.0) != 1.0 or node.flag("is_packed_batching"):
        raise node.unsupported("a scale, or sequences that are packed,")
    cos, sin, turned = node[2], node[3], node.integer("rotary_embedding_dim", 0)
    size = 2 * known(node, tensor_of(cos).shape[-1])
    if node.rank == 4:
        x = by_heads(node[0])
    else:
        width = known(node, node.type().shape[-1])
        x = in_heads(node, node[0], node.integer("num_heads", 0) if turned else width // size)
    positions = as_int64(node[1])
    if tensor_of(positions).ndim == 1:
        positions = expand_dims(add(numbers_up_to(node, tensor_of(x).shape[1]), positions), (0,))
    y = rotated(node, x, take(cos, positions, 0), take(sin, positions, 0), node.flag("interleaved"))
    return by_heads(y) if node.rank == 4 else joined(node, y)


def rotated(node: OnnxNode, x: Node, cos: Node, sin: Node, interleaved: bool) -> Node:
    """Heads, [batch, sequence, heads, size], turned by angles whose cosines and sines are [batch, sequence, half]: as
    many elements of each as there are, the rest stays."""
    half = known(node, tensor_of(cos).shape[-1])
    size = known(node, tensor_of(x).shape[-1])
    cos, sin = expand_dims(cos, (2,)), expand_dims(sin, (2,))
    step = 2 if interleaved else 1
    starts = (0, 1) if interleaved else (0, half)
    first, second = (
        strided_slice(x, [start], [2 * half if interleaved else start + half], [3], [step]) for start in starts
    )
    pair: list[Node] = [
        subtract(multiply(first, cos), multiply(second, sin)),
        add(multiply(second, cos), multiply(first, sin)),
    ]
    if interleaved:
        shape = tensor_of(first).shape
        both = concatenate([expand_dims(part, (4,)) for part in pair], 4)
        pair = [reshape_to(both, (*shape[:3], 2 * half), node.shapes.inputs)]
    return concatenate([*pair, *([strided_slice(x, [2 * half], [size], [3])] if size > 2 * half else [])], 3)
