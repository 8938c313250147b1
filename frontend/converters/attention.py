"""ONNX's Attention. Forms with a window, a cap on the scores, lengths without padding or an output of scores are left
to its body."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...base.dtype import BOOL
from ...graph.node import Constant, Node, tensor_of
from ...ir.constants import const_int
from ...ir.expr import Expr
from ...ops.families.attention.attention import attention
from ...ops.families.binary import add, divide, less_equal, logical_and, multiply
from ...ops.families.cast import cast
from ...ops.families.reshape import expand_dims
from ...ops.families.select import where
from ...ops.families.unary import sqrt
from ..onnx_node import OnnxNode
from ..registry import converter
from .heads import by_heads, count_of_heads, in_heads, joined, past_length, with_past
from .run_time_operands import extent_as_number, numbers_up_to

MASK, PAST_KEY, PAST_VALUE, LENGTHS = range(3, 7)
PRESENT_KEY, PRESENT_VALUE, SCORES = range(1, 4)


@converter("Attention", 23, 24, 25)
def _attention(node: OnnxNode) -> Sequence[Node | None] | None:
    if not _is_plain(node):
        return None
    query, key, value, mask, layout = node[0], node[1], node[2], node.get(MASK), "BHSD"
    has_cache = node.get(PAST_KEY) is not None or any(map(node.wants, (PRESENT_KEY, PRESENT_VALUE)))
    if node.rank == 3:
        heads = [count_of_heads(node, f"{whose}_num_heads") for whose in ("q", "kv", "kv")]
        query, key, value = (in_heads(node, x, n) for x, n in zip((query, key, value), heads, strict=True))
        layout = "BSHD"
        if has_cache:
            query, key, value, layout = by_heads(query), by_heads(key), by_heads(value), "BHSD"
    key, value = (with_past(node.get(k), x) for k, x in ((PAST_KEY, key), (PAST_VALUE, value)))
    if not _is_whole(mask, query, key, layout):
        return None
    causal, past = node.flag("is_causal"), node.get(PAST_KEY)
    if causal and past is not None:
        causal, mask = False, _causal(node, mask, query, key, past_length(past))
    query, scale = _scaled(node, query, key)
    y: Node = attention(query, key, value, mask, scale, causal, layout)
    if node.rank == 3:
        y = joined(node, y if layout == "BSHD" else by_heads(y))
    return y, key, value, None


def _scaled(node: OnnxNode, query: Node, key: Node) -> tuple[Node, float | None]:
    """The query and the scale of scores. By default this is 1 / √size of head: where only a run knows the size, the
    query is multiplied by it, and the scale is 1."""
    kind = tensor_of(query)
    if node.has("scale"):
        return query, node.real("scale")
    size = const_int(kind.shape[-1]) or const_int(tensor_of(key).shape[-1])
    if size:
        return query, 1 / math.sqrt(size)
    root = sqrt(cast(extent_as_number(node, kind.shape[-1]), "float32"))
    return multiply(query, cast(divide(Constant(np.ones((), np.float32)), root), kind.dtype)), 1.0


def _is_plain(node: OnnxNode) -> bool:
    """Whether the operator is what ``nn.attention`` computes, of keys and values and those of a cache."""
    if node.get(LENGTHS) is not None or node.wants(SCORES):
        return False
    if (node.get(PAST_KEY) is None) != (node.get(PAST_VALUE) is None):
        return False
    if node.real("softcap", 0.0) != 0 or node.has("softmax_precision"):
        return False
    return all(node.integer(f"{side}_window_size", -1) < 0 for side in ("left", "right"))


def _is_whole(mask: Node | None, query: Node, key: Node, layout: str) -> bool:
    """Whether a mask has a type that can be used as it is, with the extents of scores or 1 on each axis but the last:
    ONNX fills up masks of fewer keys."""
    if mask is None:
        return True
    kind, own, keys = tensor_of(mask), tensor_of(query), tensor_of(key)
    batch, heads, queries = (own.shape[layout.index(axis)] for axis in "BHS")
    scores: tuple[Expr, ...] = (batch, heads, queries, keys.shape[layout.index("S")])
    pairs = list(zip(kind.shape[::-1], scores[::-1], strict=False))
    fits = all(given is extent or (k > 0 and const_int(given) == 1) for k, (given, extent) in enumerate(pairs))
    return kind.dtype in (BOOL, keys.dtype) and 0 < kind.ndim <= len(scores) and fits


def _causal(node: OnnxNode, mask: Node | None, query: Node, key: Node, past: Expr) -> Node:
    """A mask that hides the keys behind a query as well, before the first of which there are so many; of [batch, heads,
    sequence, size]."""
    queries, keys = tensor_of(query).shape[2], tensor_of(key).shape[2]
    positions = add(numbers_up_to(node, queries), extent_as_number(node, past))
    allowed = less_equal(numbers_up_to(node, keys), expand_dims(positions, (1,)))
    if mask is None:
        return allowed
    kind = tensor_of(mask).dtype
    if kind is BOOL:
        return logical_and(allowed, mask)
    return where(allowed, mask, Constant(np.array(-math.inf, kind.to_numpy())))
