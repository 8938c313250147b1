"""ONNX's operators that read at indices, or mask by position."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import NoneType

from ...graph.node import Constant, Node, tensor_of
from ...ir.constants import ONE, ZERO
from ...ir.expr import Expr
from ...ir.simplify import simplify
from ...ops.definition.relations import normalize_axis
from ...ops.families import creation, gather, reverse_sequence, scatter, trilu
from ...ops.families.binary import divide, maximum, mod
from ...ops.families.concatenate import concatenate
from ...ops.families.nonzero import nonzero
from ...ops.families.reshape import expand_dims, reshape, squeeze
from ...ops.families.slicing import strided_slice
from ...ops.families.unique import unique
from ..assumed_extent import with_extent
from ..integers import integers
from ..onnx_node import OnnxNode
from ..registry import converter
from ..string_codes import codes_of
from ..string_values import StringTensor
from . import run_time_operands
from .creation import value_everywhere
from .run_time_operands import extent_as_number, numbers_up_to


@converter("Gather", 1, 11, 13)
def _gather(node: OnnxNode) -> Node:
    return gather.take(node[0], node[1], node.integer("axis", 0))


@converter("GatherElements", 11, 13)
def _gather_elements(node: OnnxNode) -> Node:
    return gather.gather_elements(node[0], node[1], node.integer("axis", 0))


@converter("GatherND", 11, 12, 13)
def _gather_nd(node: OnnxNode) -> Node:
    return gather.gather_nd(node[0], node[1], node.integer("batch_dims", 0))


@converter("OneHot", 9, 11, 28)
def _one_hot(node: OnnxNode) -> Node:
    """The values are [off, on]."""
    off, on = (squeeze(strided_slice(node[2], [k], [k + 1]), [0]) for k in range(2))
    if not isinstance(node[1], Constant):
        return run_time_operands.one_hot(node, off, on, node.integer("axis", -1))
    depth = node.constant_int(1, "the depth")
    return creation.one_hot(node[0], off, on, depth or 0, node.integer("axis", -1))


@converter("ReverseSequence", 10, 28)
def _reverse_sequence(node: OnnxNode) -> Node:
    """Lengths beyond the extent, or below 1, are not checked: they count as all elements, and as none."""
    axes = node.integer("time_axis", 0), node.integer("batch_axis", 1)
    return reverse_sequence.reverse_sequence(node[0], node[1], *axes)


@converter("Scatter", 9)
@converter("ScatterElements", 11, 13, 16, 18)
def _scatter_elements(node: OnnxNode) -> Node:
    reduction = node.string("reduction", "none")
    return scatter.scatter_elements(node[0], node[1], node[2], node.integer("axis", 0), reduction)


@converter("ScatterND", 11, 13, 16, 18)
def _scatter_nd(node: OnnxNode) -> Node:
    """How many axes an index is of, where that is open, follows from the rank of the updates."""
    indices, rank = node[1], node.rank
    last = tensor_of(indices).ndim - 1
    if last >= 0:
        indices = with_extent(indices, last, last + rank - tensor_of(node[2]).ndim)
    return scatter.scatter_nd(node[0], indices, node[2], node.string("reduction", "none"))


@converter("TensorScatter", 24)
def _tensor_scatter(node: OnnxNode) -> Node:
    """Without indices all samples are written from the beginning on."""
    starts = node.get(2)
    if starts is None:
        (batch,) = node.numbers(node.type().shape[:1])
        starts = creation.full((batch,), 0, "int64")
    return scatter.tensor_scatter(
        node[0], node[1], starts, node.integer("axis", -2), node.string("mode", "linear") == "circular"
    )


@converter("Trilu", 14)
def _trilu(node: OnnxNode) -> Node:
    if not isinstance(node.get(1), (Constant, NoneType)):
        return run_time_operands.trilu(node, node.flag("upper", True))
    return trilu.trilu(node[0], node.constant_int(1, "k") or 0, node.flag("upper", True))


@converter("NonZero", 9, 13)
def _nonzero(node: OnnxNode) -> Node:
    """Of one number everywhere, as exporters write a range, all elements are counted when the model is compiled."""
    value = value_everywhere(node[0])
    if value is None or not node.rank:
        return nonzero(node[0])
    shape = node.type().shape if value else [ZERO] * node.rank
    number = numbers_up_to(node, simplify(math.prod(shape, start=ONE)))
    rows = []
    for axis, extent in enumerate(shape):
        behind = simplify(math.prod(shape[axis + 1 :], start=ONE))
        row = number if behind is ONE else divide(number, _at_least_one(node, behind))
        rows.append(expand_dims(row if axis == 0 else mod(row, _at_least_one(node, extent)), (0,)))
    return concatenate(rows, 0)


def _at_least_one(node: OnnxNode, extent: Expr) -> Node:
    """An extent as a number to divide by, of no elements if it is 0."""
    return maximum(extent_as_number(node, extent), integers(1))


@converter("Compress", 9, 11, 28)
def _compress(node: OnnxNode) -> Node:
    """Without an axis, of all elements in order. There may be fewer conditions than elements."""
    x = node[0] if node.has("axis") else reshape(node[0], (-1,))
    chosen = reshape(nonzero(node[1]), (-1,))
    return gather.take(x, chosen, node.integer("axis", 0))


@converter("Unique", 11, 28)
def _unique(node: OnnxNode) -> Sequence[Node]:
    axis = node.integer("axis", 0) if node.has("axis") else None
    text = node.text(0)
    if text is None:
        return unique(node[0], axis, node.flag("sorted", True))
    strings = StringTensor(text.spans if axis is not None else reshape(text.spans, (-1,)), text.utf8)
    along = 0 if axis is None else normalize_axis(axis, node.rank)
    _, first, which, times = unique(codes_of(node, strings), along, node.flag("sorted", True))
    found = gather.take(strings.spans, first, along)
    return node.forms.put_strings(StringTensor(found, text.utf8)), first, which, times
