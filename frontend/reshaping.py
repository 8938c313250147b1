"""Tensors in shapes of symbolic extents, as far as these are certainly as many elements, and checked by runs beyond."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..graph.node import Node, tensor_of
from ..ir.constants import ONE, ZERO, const_int
from ..ir.expr import Expr
from ..ir.factors import quotient
from ..ir.makers import as_index
from ..ir.simplify import simplify
from ..ops.families import reshape
from ..ops.families.assume_extent import assume_extent
from .onnx_node import OnnxNode


def reshape_like(node: OnnxNode, x: Node, like: Node) -> Node:
    """x in the shape of another tensor."""
    return reshape_to(x, tensor_of(like).shape, node.shapes.inputs)


def reshape_to(x: Node, shape: Sequence[int | Expr], of: Sequence[Node]) -> Node:
    """x in a shape of numbers and symbolic extents, over dimensions that tensors among ``of`` tell; -1, once, is what
    the others leave. Where these are not certainly as many elements, each run checks that they are."""
    own = tensor_of(x).shape
    wanted = [as_index(extent) for extent in shape]
    rest = next((a for a, e in enumerate(wanted) if const_int(e) == -1), None)
    new = [a for a, e in enumerate(wanted) if const_int(e) is None and not (a < len(own) and own[a] is e)]
    if rest is None and len(new) == 1:  # it may be what the others leave, so that no other tensor has to tell it
        (rest,) = new
    found = simplify(math.prod(own, start=ONE))
    if rest is not None:
        others = [*wanted[:rest], *wanted[rest + 1 :]]
        if (left := quotient(own, others)) is not None:
            made = reshape.reshape_to_open(x, [*wanted[:rest], -1, *wanted[rest + 1 :]], of)
            stated = left if const_int(wanted[rest]) == -1 else wanted[rest]
            return made if simplify(left - stated) is ZERO else assume_extent(made, rest, stated, of)
        if const_int(wanted[rest]) == -1:
            wanted[rest] = simplify(found // math.prod(others, start=ONE))
    count = simplify(math.prod(wanted, start=ONE))
    if const_int(simplify(count - found)) is None:
        x = assume_extent(reshape.reshape(x, (-1,)), 0, count, of)
    return reshape.reshape_to_open(x, wanted, of)
