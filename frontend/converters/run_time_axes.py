"""Axes that only a run knows: each extent is one of a pair of axes, whose other extent is 1, so that what is done to
all second axes is done to those that are named. The order of the elements in memory stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...graph.node import Node, tensor_of
from ...ir.expr import Expr
from ...ops.families.binary import equal, less, logical_and, logical_or, subtract
from ...ops.families.cast import cast
from ...ops.families.concatenate import concatenate
from ...ops.families.cumsum import cumsum
from ...ops.families.gather import take
from ...ops.families.reduce import any as any_of
from ...ops.families.reduce import prod as product_of
from ...ops.families.reduce import sum as sum_of
from ...ops.families.reshape import expand_dims, reshape
from ...ops.families.select import where
from ...ops.families.unary import logical_not
from ..integers import as_vector, from_the_end, integers
from ..onnx_node import OnnxNode
from ..reshaping import reshape_to


def reduced(node: OnnxNode, make: Callable[[Node, Sequence[int] | None, bool], Node]) -> Node:
    """A reduction over axes that a run computes. How many they are is known, unless the result keeps all axes: then a
    run may name none, which are all axes, or none at all with ``noop_with_empty_axes``."""
    rank, own = node.rank, node.shapes.stand_for(node.type().shape)
    named = _named(node, rank)
    if not node.flag("noop_with_empty_axes"):
        count = node.shapes.stand_for(tensor_of(as_vector(node[1])).shape)
        named = logical_or(named, equal(count, integers(0)))
    one = integers(1)
    pairs = concatenate([where(named, one, own), where(named, own, one)], 0)
    extents = node.extents_of(pairs, "an extent of the axes")
    apart = [extent for pair in zip(extents[:rank], extents[rank:], strict=True) for extent in pair]
    made = make(reshape_to(node[0], apart, node.shapes.inputs), tuple(range(1, 2 * rank, 2)), False)
    return made if node.flag("keepdims", True) else _without(node, made, named, own)


def squeezed(node: OnnxNode) -> Node:
    """A Squeeze of axes that a run computes."""
    return _without(node, node[0], _named(node, node.rank), node.shapes.stand_for(node.type().shape))


def unsqueezed(node: OnnxNode) -> Node:
    """An Unsqueeze at axes that a run computes: the other axes of the result are those of x in order."""
    rank = node.rank + _count(node)
    named = _named(node, rank)
    kept = cast(logical_not(named), "int64")
    own = node.shapes.stand_for(node.type().shape) if node.rank else integers([1])
    position = subtract(cumsum(kept, 0), integers(1))
    shape = where(named, integers(1), take(own, where(less(position, integers(0)), integers(0), position), 0))
    return reshape_to(node[0], node.extents_of(shape, "the shape"), node.shapes.inputs)


def accumulated(node: OnnxNode, make: Callable[[Node, int, bool, bool], Node]) -> Node:
    """A CumSum or CumProd along an axis that a run computes: the middle one of three."""
    rank, own = node.rank, node.shapes.stand_for(node.type().shape)
    axis = from_the_end(as_vector(node[1], 1), integers(rank))
    positions = integers(range(rank))
    one = integers(1)
    sides = (less(positions, axis), equal(positions, axis), less(axis, positions))
    products = [reshape(product_of(where(side, own, one)), (1,)) for side in sides]
    extents = node.extents_of(concatenate(products, 0), "an extent of the axes")
    x = reshape_to(node[0], extents, node.shapes.inputs)
    made = make(x, 1, node.flag("exclusive"), node.flag("reverse"))
    return reshape_to(made, node.type().shape, node.shapes.inputs)


def _count(node: OnnxNode) -> int:
    """How many axes are named."""
    return len(node.shapes.elements(node.finish(as_vector(node[1]))))


def _named(node: OnnxNode, rank: int) -> Node:
    """Which of so many axes are named, as a vector of bools."""
    axes = from_the_end(as_vector(node[1]), integers(rank))
    return any_of(equal(expand_dims(axes, (1,)), integers(range(rank))), (0,))


def _without(node: OnnxNode, x: Node, named: Node, own: Node) -> Node:
    """x without the axes that are named, whose extents are 1; the others are those in ``own``, in order."""
    count = node.rank - _count(node)
    kept = logical_not(named)
    position = subtract(cumsum(cast(kept, "int64"), 0), integers(1))
    here = logical_and(equal(expand_dims(integers(range(count)), (1,)), position), kept)
    shape: Sequence[int | Expr] = ()
    if count:
        shape = node.extents_of(sum_of(where(here, own, integers(0)), (1,)), "an extent of the result")
    return reshape_to(x, shape, node.shapes.inputs)
