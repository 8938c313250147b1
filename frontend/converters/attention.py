"""ONNX's Attention. Forms with a cache, a window, a cap on the scores or further outputs are left to its body."""

from __future__ import annotations

from ...base.dtype import BOOL
from ...graph.node import Node, tensor_of
from ...ir.constants import const_int
from ...ir.expr import Expr
from ...ops.families.attention.attention import attention
from ...ops.families.reshape import reshape
from ..onnx_node import OnnxNode
from ..registry import converter

MASK = 3
"""The input after query, key and value; the cache and the lengths without padding come after it."""


@converter("Attention", 23, 24, 25)
def _attention(node: OnnxNode) -> Node | None:
    if not _is_plain(node):
        return None
    scale = node.real("scale") if node.has("scale") else None
    causal, mask = node.flag("is_causal"), node.get(MASK)
    if node.rank == 4:
        return attention(node[0], node[1], node[2], mask, scale, causal)
    heads = node.integer("q_num_heads"), *[node.integer("kv_num_heads")] * 2
    if min(heads) <= 0:
        raise node.unsupported(f"attention of {min(heads)} heads")
    shapes = [node.static_shape(k) for k in range(MASK)]
    split = [(batch, length, n, width // n) for (batch, length, width), n in zip(shapes, heads, strict=True)]
    query, key, value = (reshape(node[k], shape) for k, shape in enumerate(split))
    result = attention(query, key, value, mask, scale, causal, "BSHD")
    batch, length, count, _ = split[0]
    return reshape(result, (batch, length, count * split[2][3]))


def _is_plain(node: OnnxNode) -> bool:
    """Whether the operator is what ``nn.attention`` computes."""
    kind = node.type()
    others = [k for k in range(MASK + 1, len(node.inputs)) if node.get(k) is not None]
    if others or any(node.wants(k) for k in (1, 2, 3)):
        return False
    if node.real("softcap", 0.0) != 0 or node.has("softmax_precision"):
        return False
    if any(node.integer(f"{side}_window_size", -1) >= 0 for side in ("left", "right")):
        return False
    known = all(const_int(extent) is not None for k in range(MASK) for extent in node.type(k).shape)
    return (kind.ndim == 4 or known) and _is_whole(node.get(MASK), node)


def _is_whole(mask: Node | None, node: OnnxNode) -> bool:
    """Whether a mask has a type that can be used as it is, and a place for each key: ONNX fills up shorter ones."""
    if mask is None:
        return True
    kind, key = tensor_of(mask), node.type(1)
    keys: Expr = key.shape[2] if key.ndim == 4 else key.shape[1]
    return kind.dtype in (BOOL, key.dtype) and kind.ndim > 0 and kind.shape[-1] is keys
