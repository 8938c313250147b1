"""Transposes that need not be: several in a row are one, and one that only some slices are taken of is of these slices.

transpose(transpose(x, a), b)   = transpose(x, a then b); x itself if all axes are in place
take(transpose(x, a), i, axis)  = transpose(take(x, i, a[axis]), the other axes), for a single index i
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...graph.node import Call, Node, tensor_of
from ...ops.definition.registry import get_op
from ...ops.families.gather import take
from ...ops.families.transpose import transpose

TAKE, TRANSPOSE = get_op("take"), get_op("transpose")


def simplify_transpose(node: Node) -> Node | None:
    """What a node is replaced by, if there is a rule for it; its arguments have been simplified."""
    match node:
        case Call(op=op, args=(Call(op=inner) as before,)) if op is TRANSPOSE and inner is TRANSPOSE:
            axes = [before.attrs.axes[axis] for axis in node.attrs.axes]
            return _transposed(before.args[0], axes, (*before.origin, *node.origin))
        case Call(op=op, args=(Call(op=inner) as before, index)) if op is TAKE and inner is TRANSPOSE:
            if tensor_of(index).ndim == 0:
                return _taken_first(node, before, index)
    return None


def _taken_first(node: Call, before: Call, index: Node) -> Node:
    taken = before.attrs.axes[node.attrs.axis]
    kept = [axis for axis in before.attrs.axes if axis != taken]
    slices = replace(take(before.args[0], index, taken), origin=node.origin)
    return _transposed(slices, [axis - (axis > taken) for axis in kept], before.origin)


def _transposed(x: Node, axes: Sequence[int], origin: tuple[str, ...]) -> Node:
    return x if list(axes) == list(range(len(axes))) else replace(transpose(x, axes), origin=origin)
