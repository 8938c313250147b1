"""What GroupQueryAttention makes of its scores beside a plain softmax: a cap on them, and a sink, to which each head
gives a part of its weights that no value has."""

from __future__ import annotations

import numpy as np

from ....graph.node import Constant, Node, tensor_of
from ....ir.constants import ONE
from ....ir.simplify import simplify
from ....ops.families.attention.attention import attention
from ....ops.families.binary import add, divide, multiply
from ....ops.families.concatenate import concatenate
from ....ops.families.matmul.matmul import matmul
from ....ops.families.repeat import broadcast_to_extents
from ....ops.families.reshape import reshape
from ....ops.families.select import where
from ....ops.families.softmax import softmax
from ....ops.families.transpose import transpose
from ....ops.families.unary import tanh
from ...onnx_node import OnnxNode
from ...reshaping import reshape_to
from ..heads import known
from .heads import number_like


def attended(
    node: OnnxNode, query: Node, key: Node, value: Node, seen: Node, bias: Node | None, sink: Node | None, scale: float
) -> Node:
    """Attention of [batch, heads, queries, size] to keys and values of fewer heads, as far as they are ``seen``, bools
    that broadcast to the scores; a bias is added to these. A ``sink`` is the score of a further key of each head."""
    cap = node.real("softcap", 0.0)
    if cap > 0:
        return _capped(node, (query, key, value), seen, bias, sink, scale, cap)
    mask = seen if bias is None else where(seen, bias, number_like(float("-inf"), query))
    if sink is None:
        return attention(query, key, value, mask, scale)
    if bias is None:
        mask = where(seen, number_like(0.0, query), number_like(float("-inf"), query))
    key, value = (_with_zeros(node, x) for x in (key, value))
    return attention(query, key, value, _with_sink(node, mask, query, sink), scale)


def _with_zeros(node: OnnxNode, x: Node) -> Node:
    """Keys or values, and one of zeros."""
    batch, heads, _, size = tensor_of(x).shape
    zero = broadcast_to_extents(number_like(0.0, x), (batch, heads, ONE, size), node.shapes.inputs)
    return concatenate([x, zero], 2)


def _with_sink(node: OnnxNode, scores: Node, query: Node, sink: Node) -> Node:
    """Scores, or what is added to them, with those of the sink as the last key: [batch, heads, queries, keys + 1]."""
    batch, heads, queries, _ = tensor_of(query).shape
    keys, inputs = tensor_of(scores).shape[-1], node.shapes.inputs
    last = broadcast_to_extents(reshape(sink, (-1, 1, 1)), (batch, heads, queries, ONE), inputs)
    return concatenate([broadcast_to_extents(scores, (batch, heads, queries, keys), inputs), last], 3)


def _capped(
    node: OnnxNode,
    parts: tuple[Node, Node, Node],
    seen: Node,
    bias: Node | None,
    sink: Node | None,
    scale: float,
    cap: float,
) -> Node:
    """Scores s as cap · tanh(s / cap), by operators of their own; heads that share keys are rows of one product."""
    query, key, value = parts
    batch, heads, queries, size = tensor_of(query).shape
    (_, shared, keys, _), inputs = tensor_of(key).shape, node.shapes.inputs
    rows = simplify(queries * (known(node, heads) // known(node, shared)))
    whole = (batch, heads, queries, keys)
    cap_of = number_like(cap, query)
    products = matmul(reshape_to(query, (batch, shared, rows, size), inputs), transpose(key, (0, 1, 3, 2)))
    scores: Node = multiply(reshape_to(products, whole, inputs), number_like(scale, query))
    scores = multiply(tanh(divide(scores, cap_of)), cap_of)
    scores = where(seen, scores if bias is None else add(scores, bias), number_like(float("-inf"), query))
    weights: Node = softmax(scores if sink is None else _with_sink(node, scores, query, sink), -1)
    value = value if sink is None else _with_zeros(node, value)
    columns = simplify(keys if sink is None else keys + 1)
    weighted = matmul(reshape_to(weights, (batch, shared, rows, columns), inputs), value)
    return reshape_to(weighted, (batch, heads, queries, tensor_of(value).shape[3]), inputs)


def sink_of(node: OnnxNode, index: int, query: Node) -> Node | None:
    """The sink of each head: an input, or 0 of a smooth softmax; None for neither."""
    given = node.get(index)
    if given is None and node.integer("smooth_softmax", -1) > 0:
        heads = known(node, tensor_of(query).shape[1])
        return Constant(np.zeros(heads, tensor_of(query).dtype.to_numpy()))
    return given
