"""onnxruntime's Attention, of an input and the weights of its projections, of floats or quantized, and its
MultiHeadAttention, of projections. A cache of earlier keys and values comes before those of the input."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....graph.node import Node, tensor_of
from ....ir.constants import const_int
from ....ops.families.binary import add
from ....ops.families.concatenate import concatenate
from ....ops.families.matmul.matmul import dense
from ....ops.families.reshape import expand_dims, reshape, squeeze
from ....ops.families.slicing import strided_slice
from ....ops.families.zero_points import matmul_less_zeros
from ...onnx_node import OnnxNode
from ..heads import by_heads, count_of_heads, in_heads, joined, known, past_length, with_past
from .entering import contrib
from .heads import attend, key_mask, scale_of
from .integer_products import real_product

Project = Callable[[int, int], Node]
"""Columns of the projection of the input, from one up to another."""


def _part(x: Node | None, start: int, end: int) -> Node | None:
    """A range of the last axis; of what is one for all it is that."""
    if x is None or tensor_of(x).ndim == 0 or const_int(tensor_of(x).shape[-1]) == 1:
        return x
    return strided_slice(x, [start], [end], [-1])


@contrib(
    "Attention",
    "do_rotary mask_filter_value num_heads past_present_share_buffer qkv_hidden_sizes rotary_embedding_dim scale "
    "unidirectional",
    inputs=7,
)
def _attention(node: OnnxNode) -> Sequence[Node | None]:
    weights, bias = node[1], node.get(2)

    def project(start: int, end: int) -> Node:
        y = dense(node[0], strided_slice(weights, [start], [end], [1]), transposed=False)
        return y if bias is None else add(y, strided_slice(bias, [start], [end], [0]))

    if node.get(6) is not None:
        raise node.unsupported("past_sequence_length, which is about buffers that past and present share,")
    return _of_projections(node, project, mask=node.get(3), past=node.get(4), bias=node.get(5))


@contrib(
    "QAttention",
    "do_rotary mask_filter_value num_heads past_present_share_buffer scale unidirectional",
    inputs=9,
)
def _quantized_attention(node: OnnxNode) -> Sequence[Node | None]:
    """The projections are sums of products of bytes; all behind them is of floats."""
    weights, bias, scale, zero = node[1], node[2], node[4], node.get(7)

    def project(start: int, end: int) -> Node:
        of_part = node.finish(strided_slice(weights, [start], [end], [1]))
        of_zero = _part(zero, start, end)
        sums = matmul_less_zeros(node[0], of_part, node.get(6), None if of_zero is None else node.finish(of_zero))
        own = _part(scale, start, end)
        assert own is not None
        return real_product(sums, node[3], own, strided_slice(bias, [start], [end], [0]))

    return _of_projections(node, project, mask=node.get(5), past=node.get(8), bias=None)


def _of_projections(
    node: OnnxNode, project: Project, mask: Node | None, past: Node | None, bias: Node | None
) -> Sequence[Node | None]:
    """Attention of an input to itself. A cache has keys and values as [2, batch, heads, sequence, size]."""
    if node.flag("do_rotary") or node.flag("past_present_share_buffer"):
        raise node.unsupported("a rotary embedding inside, or a buffer that past and present share,")
    heads, width = count_of_heads(node), known(node, node.type(1).shape[1])
    widths = node.ints("qkv_hidden_sizes") or (width // 3,) * 3
    ends = (widths[0], widths[0] + widths[1], sum(widths))
    parts = [in_heads(node, project(end - own, end), heads) for own, end in zip(widths, ends, strict=True)]
    scale, layout, present = scale_of(node, parts[0]), "BSHD", None
    caches: list[Node | None] = [None, None]
    if past is not None or node.wants(1):
        parts, layout = [by_heads(x) for x in parts], "BHSD"
        if past is not None:
            caches = [squeeze(strided_slice(past, [k], [k + 1], [0]), [0]) for k in range(2)]
        parts[1:] = [with_past(cache, x) for cache, x in zip(caches, parts[1:], strict=True)]
        present = concatenate([expand_dims(x, (0,)) for x in parts[1:]], 0) if node.wants(1) else None
    keys = tensor_of(parts[1]).shape[layout.index("S")]
    masks = [key_mask(node, mask, parts[0], keys), bias]
    before = past_length(caches[0]) if node.flag("unidirectional") else None
    y = attend(node, parts, masks, layout, scale, before)
    return joined(node, y if layout == "BSHD" else by_heads(y)), present


@contrib("MultiHeadAttention", "mask_filter_value num_heads scale unidirectional", inputs=10)
def _multi_head_attention(node: OnnxNode) -> Sequence[Node | None]:
    """Keys and values come beside the query, or packed with it, or with each other; or as a cache of another sequence,
    [batch, heads, sequence, size], as in cross attention."""
    if any(node.get(k) is not None for k in (8, 9)) or node.wants(3):
        raise node.unsupported(
            "a buffer that past and present share, an indirection of caches, or the output of scores,"
        )
    heads = count_of_heads(node)
    query, key, value = _biased(node, _unpacked(node, heads), node.get(3))
    is_cache = node.get(1) is not None and node.type(1).ndim == 4
    scale, layout = scale_of(node, query), "BSHD"
    if is_cache or node.get(6) is not None or node.wants(1) or node.wants(2):
        layout, query = "BHSD", by_heads(query)
        if not is_cache:
            key, value = (with_past(node.get(k), by_heads(x)) for k, x in ((6, key), (7, value)))
    masks = [key_mask(node, node.get(4), query, tensor_of(key).shape[layout.index("S")]), node.get(5)]
    before = past_length(node.get(6)) if node.flag("unidirectional") else None
    y = attend(node, (query, key, value), masks, layout, scale, before)
    return joined(node, y if layout == "BSHD" else by_heads(y)), key, value


def _unpacked(node: OnnxNode, heads: int) -> tuple[Node, Node, Node]:
    """Query, key and value as [batch, sequence, heads, size]; a cache as it is."""
    key, value = node.get(1), node.get(2)
    if key is None:
        query, key, value = _slices(node[0], 3)
        return query, key, value
    query = in_heads(node, node[0], heads)
    if value is None:
        key, value = _slices(key, 2)
        return query, key, value
    if tensor_of(key).ndim == 4:
        return query, key, value
    return query, in_heads(node, key, heads), in_heads(node, value, heads)


def _slices(x: Node, count: int) -> list[Node]:
    """What [batch, sequence, heads, count, size] packs."""
    return [squeeze(strided_slice(x, [k], [k + 1], [3]), [3]) for k in range(count)]


def _biased(node: OnnxNode, parts: tuple[Node, Node, Node], bias: Node | None) -> list[Node]:
    """The biases of query, key and value stand behind each other; a cache has had its own."""
    if bias is None:
        return list(parts)
    made, start = [], 0
    for k, x in enumerate(parts):
        if k and node.get(1) is not None and node.type(1).ndim == 4:
            made.append(x)
            continue
        heads, size = (known(node, extent) for extent in tensor_of(x).shape[2:])
        own = strided_slice(bias, [start], [start + heads * size], [0])
        made.append(add(x, reshape(own, (heads, size))))
        start += heads * size
    return made
