"""Numpy's reductions on graph nodes. Each gives what numpy gives, dtypes included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ...base.dtype import BOOL, FLOAT64, INT64, UINT64
from ...base.dtype import dtype as dtype_of
from ...graph.node import Node, tensor_of
from ...graph.numpy_protocol import implements
from ..families import argreduce, binary, reduce, reshape, unary
from ..families.cumsum import cumsum
from .promotion import as_node, converted

Axis: TypeAlias = int | Sequence[int] | None


def _wide(a: object, kind: Any) -> Node:
    """What a sum is made of: integers and bools have 64 bits, unless a dtype is asked for."""
    x = as_node(a)
    own = tensor_of(x).dtype
    if kind is not None:
        return converted(x, dtype_of(kind))
    return x if own.is_float else converted(x, UINT64 if own.kind == "uint" else INT64)


def _floating(a: object) -> Node:
    x = as_node(a)
    return x if tensor_of(x).dtype.is_float else converted(x, FLOAT64)


@implements(np.sum)
def _sum(a: Any, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False) -> Node:
    return reduce.sum(_wide(a, dtype), axis, keepdims)


@implements(np.prod)
def _prod(a: Any, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False) -> Node:
    return reduce.prod(_wide(a, dtype), axis, keepdims)


@implements(np.cumsum)
def _cumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Node:
    x = _wide(a, dtype)
    return cumsum(reshape.reshape(x, [-1]), 0) if axis is None else cumsum(x, axis)


@implements(np.mean)
def _mean(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Node:
    return reduce.mean(_floating(a), axis, keepdims)


@implements(np.var)
def _var(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Node:
    x = _floating(a)
    apart = binary.subtract(x, reduce.mean(x, axis, True))
    return reduce.mean(binary.multiply(apart, apart), axis, keepdims)


@implements(np.std)
def _std(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Node:
    return unary.sqrt(_var(a, axis, keepdims=keepdims))


@implements(np.max)
def _max(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Node:
    return reduce.max(as_node(a), axis, keepdims)


@implements(np.min)
def _min(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Node:
    return reduce.min(as_node(a), axis, keepdims)


@implements(np.any)
def _any(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Node:
    return reduce.any(converted(as_node(a), BOOL), axis, keepdims)


@implements(np.all)
def _all(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Node:
    return reduce.all(converted(as_node(a), BOOL), axis, keepdims)


@implements(np.argmax)
def _argmax(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Node:
    return _position(argreduce.argmax, as_node(a), axis, keepdims)


@implements(np.argmin)
def _argmin(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Node:
    return _position(argreduce.argmin, as_node(a), axis, keepdims)


def _position(find: Any, x: Node, axis: int | None, keepdims: bool) -> Node:
    made: Node
    if axis is not None:
        made = find(x, axis, keepdims)
        return made
    rank = tensor_of(x).ndim
    made = find(reshape.reshape(x, [-1]), 0, False)
    return reshape.expand_dims(made, range(rank)) if keepdims and rank else made
