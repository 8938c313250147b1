"""Strings as rows of numbers that are in the same order, for operators that sort."""

from __future__ import annotations

import numpy as np

from ..base.spans import LENGTH_BITS, LENGTHS
from ..graph.node import Constant, Node, tensor_of
from ..ir.makers import as_index
from ..ops.families import reduce
from ..ops.families.binary import add, bitwise_and, less, right_shift
from ..ops.families.cast import cast
from ..ops.families.concatenate import concatenate
from ..ops.families.gather import take
from ..ops.families.open_extents import positions
from ..ops.families.reshape import expand_dims, reshape
from ..ops.families.select import where
from .integers import integers
from .onnx_node import OnnxNode
from .string_values import StringTensor


def codes_of(node: OnnxNode, text: StringTensor) -> Node:
    """The bytes of strings along a new last axis, each plus 1, which zeros fill up to the longest string: int16."""
    spans = text.spans
    lengths = bitwise_and(spans, integers(LENGTHS))
    begins = right_shift(spans, integers(LENGTH_BITS))
    longest = reduce.max(concatenate([reshape(lengths, (-1,)), integers([0])], 0), (0,), keepdims=True)
    (extent,) = node.extents_of(longest, "the length of the longest string")
    places = positions(as_index(extent), node.shapes.inputs)
    rank = tensor_of(spans).ndim
    places = expand_dims(places, range(rank)) if rank else places
    inside = less(places, expand_dims(lengths, (rank,)))
    at = where(inside, add(expand_dims(begins, (rank,)), places), integers(0))
    codes = add(cast(take(text.utf8, at, 0), "int16"), Constant(np.array(1, np.int16)))
    return where(inside, codes, Constant(np.array(0, np.int16)))
