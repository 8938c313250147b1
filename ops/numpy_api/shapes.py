"""Numpy's functions that give a graph node another shape, or its axes another order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ...base.errors import TypeInferenceError
from ...graph.array_operators import ArrayOperators
from ...graph.node import Node, tensor_of
from ...graph.numpy_protocol import implements
from ...ir.constants import const_int
from ...ir.expr import Expr
from ..definition.arguments import axis_of, integer
from ..families import repeat, reshape
from ..families.transpose import transpose
from .promotion import as_node

Extent: TypeAlias = int | Expr


@implements(np.shape)
def _shape(a: ArrayOperators) -> tuple[Extent, ...]:
    return a.shape


@implements(np.ndim)
def _ndim(a: ArrayOperators) -> int:
    return a.ndim


@implements(np.reshape)
def _reshape(a: Any, shape: Extent | Sequence[Extent]) -> Node:
    """A symbolic extent is that of the same axis, or what the other extents leave."""
    x = as_node(a)
    wanted = [_number(e) for e in ((shape,) if isinstance(shape, (int, Expr)) else shape)]
    if not any(isinstance(e, Expr) for e in wanted):
        return reshape.reshape(x, wanted, allow_zero=True)  # type: ignore[arg-type]
    if any(isinstance(e, int) and e == 0 for e in wanted):
        raise TypeInferenceError(f"an empty tensor is reshaped by numbers only, found {tuple(wanted)}")
    own = dict(enumerate(tensor_of(x).shape))
    made = reshape.reshape(
        x, [0 if own.get(k) is e else -1 if isinstance(e, Expr) else e for k, e in enumerate(wanted)]
    )
    if wrong := [e for e, found in zip(wanted, made.shape, strict=True) if isinstance(e, Expr) and e is not found]:
        raise TypeInferenceError(f"{x.type} to {tuple(wanted)}: {wrong[0]} is not what the other extents leave")
    return made


def _number(extent: Extent) -> Extent:
    """An extent as a number, if it is known."""
    number = const_int(extent) if isinstance(extent, Expr) else integer(extent, "an extent")
    return extent if number is None else number


@implements(np.ravel)
def _ravel(a: Any) -> Node:
    return reshape.reshape(as_node(a), [-1])


@implements(np.squeeze)
def _squeeze(a: Any, axis: int | Sequence[int] | None = None) -> Node:
    return reshape.squeeze(as_node(a), axis)


@implements(np.expand_dims)
def _expand_dims(a: Any, axis: int | Sequence[int]) -> Node:
    return reshape.expand_dims(as_node(a), axis)


@implements(np.transpose)
def _transpose(a: Any, axes: Sequence[int] | None = None) -> Node:
    return transpose(as_node(a), axes)


@implements(np.matrix_transpose)
def _matrix_transpose(x: Any) -> Node:
    return _swapaxes(x, -1, -2)


@implements(np.swapaxes)
def _swapaxes(a: Any, axis1: int, axis2: int) -> Node:
    x = as_node(a)
    order = list(range(tensor_of(x).ndim))
    first, second = axis_of("transpose", x, axis1), axis_of("transpose", x, axis2)
    order[first], order[second] = order[second], order[first]
    return transpose(x, order)


@implements(np.moveaxis)
def _moveaxis(a: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Node:
    x = as_node(a)
    pairs = [
        [axis_of("transpose", x, axis) for axis in ((given,) if isinstance(given, int) else given)]
        for given in (source, destination)
    ]
    if len(pairs[0]) != len(pairs[1]):
        raise TypeInferenceError(f"source {source} and destination {destination} have not as many axes")
    order = [axis for axis in range(tensor_of(x).ndim) if axis not in pairs[0]]
    for to, axis in sorted(zip(pairs[1], pairs[0], strict=True)):
        order.insert(to, axis)
    return transpose(x, order)


@implements(np.broadcast_to)
def _broadcast_to(array: Any, shape: int | Sequence[int]) -> Node:
    return repeat.broadcast_to(as_node(array), (shape,) if isinstance(shape, int) else shape)
