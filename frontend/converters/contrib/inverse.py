"""onnxruntime's Inverse of matrices, by Gauss's and Jordan's elimination: a loop over the columns, in each of which
the largest element that is left is the pivot."""

from __future__ import annotations

import math

import numpy as np

from ....base.dtype import FLOAT32
from ....graph.node import Constant, Node, tensor_of
from ....ir.constants import ONE
from ....ops.families.argreduce import argmax
from ....ops.families.binary import divide, equal, greater_equal, multiply, subtract
from ....ops.families.concatenate import concatenate
from ....ops.families.gather import gather_elements, take
from ....ops.families.loops import for_loop
from ....ops.families.repeat import broadcast_to_extents
from ....ops.families.reshape import expand_dims
from ....ops.families.select import where
from ....ops.families.slicing import strided_slice
from ....ops.families.unary import abs as absolute
from ...onnx_node import OnnxNode
from ...reshaping import reshape_like, reshape_to
from ..elementwise import as_dtype
from .entering import contrib


@contrib("Inverse", inputs=1)
def _inverse(node: OnnxNode) -> Node:
    """Half precision is computed in float32. A matrix that has no inverse gives infinities or NaN."""
    kind = node.type()
    *batch, size, columns = kind.shape
    known = node.numbers((size, columns))
    if known[0] != known[1]:
        raise node.unsupported(f"the inverse of {kind}, whose matrices are not square,")
    extent, of = known[0], node.shapes.inputs
    wide = as_dtype(node[0], FLOAT32) if kind.dtype.bits < 32 else node[0]
    count = math.prod(batch, start=ONE)
    matrices = reshape_to(wide, (count, extent, extent), of)
    unit = Constant(np.eye(extent, dtype=tensor_of(wide).dtype.to_numpy())[None])
    both = concatenate([matrices, broadcast_to_extents(unit, (count, extent, extent), of)], 2)
    rows, none = Constant(np.arange(extent)), Constant(np.asarray(-1, unit.value.dtype))

    def eliminate(column: Node, m: Node) -> Node:
        """The rows with the pivot's in its place, divided by it, and what it has of the others taken off these."""
        left = where(greater_equal(rows, column), absolute(take(m, column, 2)), none)
        pivot = expand_dims(argmax(left, 1), (1,))
        order = where(equal(rows, column), pivot, where(equal(rows, pivot), column, rows))
        place = broadcast_to_extents(expand_dims(order, (2,)), (count, extent, 2 * extent), of)
        m = gather_elements(m, place, 1)
        row = expand_dims(take(m, column, 1), (1,))
        row = divide(row, expand_dims(take(row, column, 2), (2,)))
        others = subtract(m, multiply(expand_dims(take(m, column, 2), (2,)), row))
        return where(expand_dims(equal(rows, column), (1,)), row, others)

    made = strided_slice(for_loop(extent, eliminate, both), [extent], [2 * extent], [2])
    return as_dtype(reshape_like(node, made, node[0]), kind.dtype)
