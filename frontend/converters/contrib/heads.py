"""What onnxruntime's operators for attention have in common: heads, caches, and what hides keys from queries."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ....graph.node import Constant, Node, tensor_of
from ....ir.constants import const_int
from ....ir.expr import Expr
from ....ops.definition.accumulate import accumulator
from ....ops.families.assume_extent import assume_extent
from ....ops.families.attention.attention import attention
from ....ops.families.binary import add, greater, greater_equal, less, less_equal, logical_and
from ....ops.families.reshape import expand_dims
from ....ops.families.select import where
from ....ops.families.slicing import strided_slice
from ...integers import as_int64
from ...onnx_node import OnnxNode
from ..elementwise import as_dtype
from ..heads import known
from ..run_time_operands import extent_as_number, numbers_up_to

FILTER = -10000.0
"""What is added by default to the scores of keys that a mask leaves out."""


def scale_of(node: OnnxNode, query: Node) -> float:
    """The factor of the scores: by default, and for 0, 1 / √size of a head, which is the last axis of the query."""
    given = node.real("scale", 0.0)
    return given or 1 / math.sqrt(known(node, tensor_of(query).shape[-1]))


def number_like(value: float, x: Node) -> Constant:
    """A number in the dtype of a tensor, as far as that goes."""
    kind = tensor_of(x).dtype.to_numpy()
    return Constant(np.asarray(np.float64(value).clip(*_limits(x))).astype(kind))


def _limits(x: Node) -> tuple[float, float]:
    return (-65504.0, 65504.0) if tensor_of(x).dtype.bits == 16 else (-math.inf, math.inf)


def matched(node: OnnxNode, x: Node, axis: int, extent: Expr) -> Node:
    """A tensor whose extent on an axis is another one's; each run checks that where they are not certainly the same."""
    own = tensor_of(x).shape[axis]
    return x if own is extent or const_int(own) == 1 else assume_extent(x, axis, extent, node.shapes.inputs)


def key_mask(node: OnnxNode, given: Node | None, like: Node, keys: Expr) -> Node | None:
    """What a mask adds to the scores, as [batch, 1, 1 or queries, keys] in the dtype that scores of ``like`` have.

    A mask has a number for each key of each sample, or for each query and key, where what is above 0 counts; or it is a
    vector: how many keys count in each sample, and behind these, if there are twice as many, which is the first.
    """
    if given is None:
        return None
    kind = tensor_of(given)
    if kind.ndim == 1:
        counted = _between(node, given, tensor_of(like).shape[0], keys)
    elif kind.ndim in (2, 3):
        counted = greater(matched(node, given, kind.ndim - 1, keys), Constant(np.zeros((), kind.dtype.to_numpy())))
        counted = expand_dims(counted, (1, 2) if kind.ndim == 2 else (1,))
    else:
        raise node.unsupported(f"a mask that is {kind}")
    kind_of_scores = accumulator(tensor_of(like).dtype).to_numpy()
    numbers = (Constant(np.array(number, kind_of_scores)) for number in (0.0, node.real("mask_filter_value", FILTER)))
    return where(counted, *numbers)


def _between(node: OnnxNode, bounds: Node, batch: Expr, keys: Expr) -> Node:
    """Which keys are before the end of each sample, and not before its beginning, as [batch, 1, 1, keys]."""
    positions, extent = numbers_up_to(node, keys), tensor_of(bounds).shape[0]

    def column(x: Node) -> Node:
        return expand_dims(as_int64(x), (1, 2, 3))

    if extent is batch:
        return less(positions, column(bounds))
    samples, count = const_int(batch), const_int(extent)
    if samples is None or count != 2 * samples:
        raise node.unsupported(f"a mask of {extent} numbers for {batch} samples")
    ends, begins = (strided_slice(bounds, [start], [start + samples], [0]) for start in (0, samples))
    return logical_and(less(positions, column(ends)), greater_equal(positions, column(begins)))


def causal_mask(node: OnnxNode, queries: Expr, keys: Expr, past: Expr) -> Node:
    """Which keys are not after a query, as [queries, keys]: so many keys are before that of the first query. Of keys
    beyond those of all queries the last query sees every one, as in onnxruntime."""
    numbers = numbers_up_to(node, queries)
    positions = add(numbers, extent_as_number(node, past))
    if past + queries is not keys:
        last, end = (extent_as_number(node, extent - 1) for extent in (queries, keys))
        positions = where(less(numbers, last), positions, end)
    return less_equal(numbers_up_to(node, keys), expand_dims(positions, (1,)))


def attend(
    node: OnnxNode,
    heads: Sequence[Node],
    masks: Sequence[Node | None],
    layout: str,
    scale: float,
    past: Expr | None = None,
) -> Node:
    """Attention of query, key and value, with all masks of numbers added to the scores. Where ``past`` is given, so
    many keys are before that of the first query, and keys after that of a query are hidden from it."""
    query, key, value = heads
    axis = layout.index("S")
    queries, keys = (tensor_of(x).shape[axis] for x in (query, key))
    given = [mask for mask in masks if mask is not None]
    added: Node | None = None
    for mask in (as_dtype(m, accumulator(tensor_of(m).dtype)) for m in given):  # onnxruntime adds in float32, too
        added = mask if added is None else add(added, mask)
    causal = past is not None and queries is keys
    if past is not None and not causal:
        allowed = causal_mask(node, queries, keys, past)
        added = allowed if added is None else where(allowed, added, number_like(-math.inf, added))
    if added is not None:
        added = _whole(node, added, query, queries, keys, layout)
    return attention(query, key, value, added, scale, causal, layout)


def _whole(node: OnnxNode, mask: Node, query: Node, queries: Expr, keys: Expr, layout: str) -> Node:
    """A mask with the extents that the scores have."""
    rank = tensor_of(mask).ndim
    wanted = (tensor_of(query).shape[0], tensor_of(query).shape[layout.index("H")], queries, keys)
    for axis, extent in enumerate(wanted[4 - rank :]):
        mask = matched(node, mask, axis, extent)
    return mask
