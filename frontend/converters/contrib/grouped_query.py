"""onnxruntime's GroupQueryAttention: causal attention whose heads of keys and values serve several of queries, with a
cache in which the samples of a batch may be of different lengths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....base.dataclass import dataclass
from ....graph.node import Constant, Node, tensor_of
from ....ir.constants import const_int
from ....ir.contents import free_vars
from ....ir.expr import Expr
from ....ir.facts import nonnegative
from ....ir.makers import as_index, maximum
from ....ir.simplify import simplify
from ....ops.families.binary import add, equal, greater, less_equal, logical_and, subtract
from ....ops.families.concatenate import concatenate
from ....ops.families.gather import take
from ....ops.families.repeat import broadcast_to_extents
from ....ops.families.reshape import expand_dims
from ....ops.families.scatter import tensor_scatter
from ....ops.families.select import where
from ....ops.families.slicing import strided_slice
from ...integers import as_int64, as_number, as_vector, integers
from ...onnx_node import OnnxNode
from ..heads import by_heads, count_of_heads, in_heads, joined
from ..run_time_operands import extent_as_number, numbers_up_to
from .entering import contrib
from .grouped_scores import attended, sink_of
from .heads import matched, scale_of
from .rotary import rotated

KEY, VALUE, PAST_KEY, PAST_VALUE, LENGTHS, TOTAL, COS, SIN, POSITIONS, BIAS, SINK = range(1, 12)
_PLAIN = {"causal": 1, "sliding_window_cache": 0, "kv_cache_bit_width": 0, "qk_output": 0}
"""What is converted of attributes that change the meaning."""


@contrib(
    "GroupQueryAttention",
    "causal do_rotary k_norm_epsilon k_quant_type kv_cache_bit_width kv_num_heads local_window_size num_heads "
    "q_norm_epsilon qk_norm_epsilon qk_output rotary_interleaved scale sliding_window_cache smooth_softmax softcap "
    "v_quant_type",
    inputs=17,
)
def _group_query_attention(node: OnnxNode) -> Sequence[Node | None]:
    """The last position of a sample is the number of its length; where as many queries are given as the longest sample
    has positions, they are the first ones, and else the last ones."""
    _check(node)
    query, key, value = _heads(node)
    rows = _Rows.of(node, query)
    if node.flag("do_rotary"):
        given = node.get(POSITIONS)
        positions = rows.positions if given is None else as_int64(given)
        cos, sin = (take(node[k], positions, 0) for k in (COS, SIN))
        query, key = (rotated(node, x, cos, sin, node.flag("rotary_interleaved")) for x in (query, key))
    keys, values = (rows.present(node, node.get(k), by_heads(x)) for k, x in ((PAST_KEY, key), (PAST_VALUE, value)))
    first = by_heads(query)
    masks = rows.masks(node, first, tensor_of(keys).shape[2])
    y = attended(node, first, keys, values, *masks, sink_of(node, SINK, first), scale_of(node, first))
    return joined(node, by_heads(y)), keys, values


def _check(node: OnnxNode) -> None:
    """Raise ``ModelError`` for forms that are not converted."""
    if any(node.get(k) is not None for k in range(SINK + 1, 17)) or node.wants(3):
        raise node.unsupported("a quantized cache, a normalisation inside, or the output of scores,")
    if any(node.integer(name, plain) != plain for name, plain in _PLAIN.items()):
        raise node.unsupported(f"another {' or '.join(_PLAIN)} than the default")


def _heads(node: OnnxNode) -> tuple[Node, Node, Node]:
    """Query, key and value, which may be packed behind each other, as [batch, sequence, heads, size]."""
    heads, shared = count_of_heads(node), count_of_heads(node, "kv_num_heads")
    key, value = node.get(KEY), node.get(VALUE)
    if key is not None and value is not None:
        return in_heads(node, node[0], heads), in_heads(node, key, shared), in_heads(node, value, shared)
    packed = in_heads(node, node[0], heads + 2 * shared)
    bounds = ((0, heads), (heads, heads + shared), (heads + shared, heads + 2 * shared))
    query, key, value = (strided_slice(packed, [start], [end], [2]) for start, end in bounds)
    return query, key, value


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Where the queries of each sample are. ``past``, [batch], is how many positions come before them; ``positions``
    are theirs, [batch, queries]; ``total`` is the number of positions of the longest sample."""

    past: Node
    positions: Node
    total: Expr

    @staticmethod
    def of(node: OnnxNode, query: Node) -> _Rows:
        queries = tensor_of(query).shape[1]
        count = extent_as_number(node, queries)
        (total,) = node.extents_of(as_vector(node[TOTAL], 1), "the total length of sequences")
        lengths = add(as_vector(node[LENGTHS]), integers(1))
        is_beginning = equal(as_int64(as_number(node[TOTAL])), count)
        past = where(is_beginning, integers(0), subtract(lengths, count))
        positions = add(expand_dims(past, (1,)), numbers_up_to(node, queries))
        return _Rows(past, positions, as_index(total))

    def present(self, node: OnnxNode, past: Node | None, x: Node) -> Node:
        """A cache, [batch, heads, sequence, size], with room for all positions, and x where its positions are."""
        batch, heads, own, size = tensor_of(x).shape
        kept = tensor_of(past).shape[2] if past is not None else as_index(0)
        wanted = simplify(maximum(kept, self.total), nonnegative([*free_vars(kept), *free_vars(self.total)]))
        if past is None and wanted is own:
            return x
        more = simplify(wanted - kept)
        parts = [] if past is None else [past]
        if const_int(more) != 0:
            zero = Constant(np.zeros((1, 1, 1, 1), tensor_of(x).dtype.to_numpy()))
            parts.append(broadcast_to_extents(zero, (batch, heads, more, size), node.shapes.inputs))
        room = concatenate(parts, 2) if len(parts) > 1 else parts[0]
        return tensor_scatter(room, x, self.past, 2, False)

    def masks(self, node: OnnxNode, query: Node, keys: Expr) -> tuple[Node, Node | None]:
        """Which keys a query sees: those up to its own position, in a window if there is one; and what is added."""
        places = numbers_up_to(node, keys)
        positions = expand_dims(self.positions, (1, 3))
        seen: Node = less_equal(places, positions)
        window = node.integer("local_window_size", -1)
        if window > 0:
            seen = logical_and(seen, greater(places, subtract(positions, integers(window))))
        bias = node.get(BIAS)
        if bias is not None:
            bias = matched(node, matched(node, bias, 3, keys), 2, tensor_of(query).shape[2])
        return seen, bias
