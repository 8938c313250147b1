"""Extents that are open, and have to be certain numbers, which each run checks.

Weights tell how many columns or channels there are of what they are multiplied by. And there are branches of other
ranks, as exporters write ``x.squeeze(axis)`` of an open axis: an If that asks whether an extent is a number, and drops
the axis only then. What follows can be of one rank only, so the branch is taken where the extent is that number.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..graph.node import Call, Node, tensor_of
from ..graph.types import TensorType
from ..graph.visit import post_order
from ..ir.constants import const_int
from ..ir.expr import Expr
from ..ir.makers import as_index
from ..ops.definition.retyping import inferred_anew
from ..ops.families.assume_extent import assume_extent
from .subgraphs import Subgraphs

_SAME_ELEMENTS = frozenset({"cast", "reshape", "squeeze", "expand_dims", "identity"})


def with_extent(x: Node, axis: int, number: int) -> Node:
    """x, an axis of which has so many elements for what reads it. Where its extent is open, each run checks that; one
    that is known stays, and is for others to refuse."""
    open_there = const_int(tensor_of(x).shape[axis]) is None
    return assume_extent(x, axis, as_index(number), ()) if open_there else x


def where_extent_is(condition: Node, results: Sequence[Node], subgraphs: Subgraphs) -> Sequence[Node] | None:
    """The results of a branch that is taken where an extent is a number, with that number for it; None for a condition
    that asks anything else, and where the branch reads no value that has the extent."""
    asked = _asked(condition, subgraphs)
    if asked is None:
        return None
    extent, number = asked
    assumed: dict[Node, Node] = {}
    for node in (n for result in results for n in post_order(result, subgraphs.is_outside)):
        axis = _axis_of(extent, node) if subgraphs.is_outside(node) else None
        if axis is not None:
            assumed[node] = assume_extent(node, axis, as_index(number), ())
    return [inferred_anew(result, assumed) for result in results] if assumed else None


def without_forms(x: Node) -> Node:
    """What x is in another shape or dtype."""
    while isinstance(x, Call) and x.op.name in _SAME_ELEMENTS:
        x = x.args[0]
    return x


def _axis_of(extent: Expr, node: Node) -> int | None:
    """The first axis of a tensor that has an extent."""
    shape = node.type.shape if isinstance(node.type, TensorType) else ()
    return next((axis for axis, own in enumerate(shape) if own is extent), None)


def _asked(condition: Node, subgraphs: Subgraphs) -> tuple[Expr, int] | None:
    """The extent and the number that a condition compares, if that is what it does."""
    condition = without_forms(condition)
    if (
        not isinstance(condition, Call)
        or condition.op.name != "equal"
        or tensor_of(condition).static_shape not in ((), (1,))
    ):
        return None
    sides = [None if (known := subgraphs.shapes.of(arg)) is None else known.ravel()[0] for arg in condition.args]
    for extent, number in (sides, sides[::-1]):
        if isinstance(extent, Expr) and const_int(extent) is None and isinstance(number, int):
            return extent, number
    return None
