"""Numpy's functions that choose, convert, multiply and fill, on graph nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtype import BOOL
from ...base.dtype import dtype as dtype_of
from ...base.errors import TypeInferenceError
from ...graph.array_operators import ArrayOperators
from ...graph.node import Node, tensor_of
from ...graph.numpy_protocol import implements
from ..families import binary, select, unary
from ..families.creation import full
from ..families.einsum import einsum
from ..families.matmul.matmul import matmul
from .promotion import alike, as_node, converted


@implements(np.where)
def _where(condition: Any, x: Any, y: Any) -> Node:
    if isinstance(x, ArrayOperators) or isinstance(y, ArrayOperators):
        a, b = alike(x, y)
    else:
        a, b = map(as_node, np.broadcast_arrays(*(np.asarray(v, np.result_type(x, y)) for v in (x, y))))
    return select.where(converted(as_node(condition), BOOL), a, b)


@implements(np.clip)
def _clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Node:
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    x = as_node(a)
    if low is not None:
        x = binary.maximum(*alike(x, low))
    return x if high is None else binary.minimum(*alike(x, high))


@implements(np.round)
def _round(a: Any, decimals: int = 0) -> Node:
    if decimals != 0:
        raise TypeInferenceError(f"rounds graph nodes to whole numbers only, found decimals={decimals}")
    x = as_node(a)
    return unary.round(x) if tensor_of(x).dtype.is_float else x


@implements(np.astype)
def _astype(x: Any, to: Any) -> Node:
    return converted(as_node(x), dtype_of(to))


@implements(np.copy)
def _copy(a: Any) -> Node:
    return as_node(a)


@implements(np.dot)
def _dot(a: Any, b: Any) -> Node:
    x, y = alike(a, b)
    ranks = tensor_of(x).ndim, tensor_of(y).ndim
    if 0 in ranks:
        return binary.multiply(x, y)
    if ranks[1] > 2:
        raise TypeInferenceError(f"the second factor should have 2 axes at most, found {y.type}: np.matmul takes more")
    return matmul(x, y)


@implements(np.einsum)
def _einsum(subscripts: str, *operands: Any) -> Node:
    return einsum(subscripts, alike(*operands))


@implements(np.full_like)
def _full_like(a: Any, fill_value: float, dtype: Any = None) -> Node:
    kind = tensor_of(as_node(a))
    if kind.static_shape is None:
        raise TypeInferenceError(f"the shape must be known, found {kind}")
    return full(kind.static_shape, fill_value, kind.dtype if dtype is None else dtype_of(dtype))


@implements(np.zeros_like)
def _zeros_like(a: Any, dtype: Any = None) -> Node:
    return _full_like(a, 0, dtype)


@implements(np.ones_like)
def _ones_like(a: Any, dtype: Any = None) -> Node:
    return _full_like(a, 1, dtype)
