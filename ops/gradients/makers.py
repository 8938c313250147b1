"""What the rules of gradients make tensors with: numbers of a tensor's type, and tensors brought to another's shape."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph.node import Constant, Node, tensor_of
from ...ir.constants import const_int
from ...ir.expr import Expr
from ..families.reduce import sum
from ..families.repeat import broadcast_to_extents
from ..families.reshape import expand_dims, reshape_to_open


def number(value: float, like: Node) -> Constant:
    """A scalar of the dtype of a tensor."""
    return Constant(np.array(value, tensor_of(like).dtype.to_numpy()))


def filled_like(x: Node, value: float) -> Node:
    """A tensor of the shape and the dtype of another, all of one number."""
    shape = tensor_of(x).shape
    return broadcast_to_extents(number(value, x), shape, [x]) if shape else number(value, x)


def reshaped_like(gradient: Node, x: Node) -> Node:
    """The elements in the shape of another tensor, which has as many."""
    if _same(tensor_of(gradient).shape, tensor_of(x).shape):
        return gradient
    return reshape_to_open(gradient, tensor_of(x).shape, [x, gradient])


def summed_like(gradient: Node, x: Node) -> Node:
    """The sums over what x was broadcast along."""
    shape, own = tensor_of(gradient).shape, tensor_of(x).shape
    new = len(shape) - len(own)
    stretched = [
        new + axis for axis, extent in enumerate(own) if const_int(extent) == 1 and const_int(shape[new + axis]) != 1
    ]
    axes = (*range(new), *stretched)
    return reshaped_like(sum(gradient, axes=axes), x) if axes else gradient


def spread_like(gradient: Node, x: Node, axes: Sequence[int], keepdims: bool) -> Node:
    """What a reduction of x over axes gave, at each element that it was made of."""
    kept = gradient if keepdims or not axes else expand_dims(gradient, tuple(axes))
    return broadcast_to_extents(kept, tensor_of(x).shape, [x]) if axes else kept


def _same(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    return len(a) == len(b) and all(m is n for m, n in zip(a, b, strict=True))
