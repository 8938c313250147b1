"""Attention as the products, the sum with a mask and the softmax that it is made of, each a call of its own.

    attention(q, k, v, mask, scale) = softmax(scale · q · kᵀ + mask) · v

Queries whose heads share one of keys are rows of one product: [B, G·R, S, D] is read as [B, G, R·S, D].
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ....graph.node import Call, Constant, Node, tensor_of
from ....graph.types import TensorType
from ....ir.constants import const_int
from ..binary import add, multiply
from ..matmul.matmul import matmul
from ..reshape import reshape
from ..softmax import softmax
from ..transpose import transpose
from .attrs import AttentionAttrs, extents

Numbers: TypeAlias = npt.NDArray[np.floating[Any]]
FIRST = "BHSD"
"""The order of axes in which products of matrices read them."""


def written_out(call: Call) -> Call | None:
    """What a call of attention is made of; None where that is not sure to give the same: where it is of halves, whose
    scores are kept in float32, where extents are open, or where a mask may leave a query no key, as one that a run
    tells may."""
    attrs: AttentionAttrs = call.attrs
    query, key, value = call.args[:3]
    kind = tensor_of(query)
    shape = extents(attrs, *(tensor_of(side) for side in (query, key, value)))
    found = [const_int(e) for e in (shape.batch, shape.heads, shape.queries, shape.keys, shape.size, shape.value_size)]
    known = [extent for extent in found if extent is not None]
    if kind.dtype.bits < 32 or len(known) < len(found):
        return None
    batch, heads, queries, keys, size, value_size = known
    mask = _mask(call, queries, keys)
    if mask is None:
        return None
    rows = (batch, heads // shape.group, shape.group * queries)
    left = reshape(_in_order(query, attrs.layout, FIRST), (*rows, size))
    products = matmul(left, _in_order(key, attrs.layout_of_keys, "BHDS"))
    scores: Node = multiply(products, _constant(np.array(attrs.scale), kind))
    if mask.any():
        scores = add(reshape(scores, (batch, heads, queries, keys)), _constant(mask, kind))
    weights = reshape(softmax(scores, -1), (*rows, keys))
    mixed = matmul(weights, _in_order(value, attrs.layout_of_keys, FIRST))
    result = reshape(mixed, (batch, heads, queries, value_size))
    return result if attrs.layout == FIRST else transpose(result, [FIRST.index(axis) for axis in attrs.layout])


def _mask(call: Call, queries: int, keys: int) -> Numbers | None:
    """What is added to the scores, zeros for no mask; None where it is not known, or leaves a query no key."""
    mask: Numbers = np.zeros((queries, keys))
    if len(call.args) > 3:
        given = call.args[3]
        if not isinstance(given, Constant):
            return None
        mask = mask + (np.where(given.value, 0, -np.inf) if given.value.dtype == np.bool_ else given.value)
    if call.attrs.causal:
        mask = mask + np.where(np.tri(queries, keys, dtype=np.bool_), 0, -np.inf)
    return mask if bool((mask > -np.inf).any(axis=-1).all()) else None


def _constant(array: Numbers, kind: TensorType) -> Constant:
    return Constant(array.astype(kind.dtype.to_numpy()))


def _in_order(x: Node, found: str, wanted: str) -> Node:
    """x, whose axes have these names, in another order."""
    return x if found == wanted else transpose(x, [found.index(axis) for axis in wanted])
