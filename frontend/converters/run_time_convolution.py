"""Convolutions by weights whose filters, channels or window only a run knows, as products of matrices: the filters
times the elements below each window; or, transposed, times each position, which gives what windows add to the image."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...base.dataclass import dataclass
from ...base.errors import ModelError
from ...graph.node import Node, tensor_of
from ...ir.constants import ONE, ZERO, const_int
from ...ir.expr import Expr
from ...ir.makers import as_index, maximum
from ...ir.simplify import simplify
from ...ops.definition.arguments import per_axis
from ...ops.families.binary import add, multiply
from ...ops.families.gather import take
from ...ops.families.matmul.matmul import matmul
from ...ops.families.pad import pad_by_extents
from ...ops.families.reshape import expand_dims
from ...ops.families.transpose import transpose
from ..assumed_extent import with_extent
from ..integers import integers
from ..onnx_node import OnnxNode
from ..reshaping import reshape_to
from .run_time_col2im import folded
from .run_time_operands import numbers_up_to


def with_known_channels(node: OnnxNode, x: Node, weight: Node, transposed: bool = False) -> tuple[Node, Node]:
    """x and the weight of a convolution, where what one of them, or ``kernel_shape``, says of an open extent of the
    other is an extent that each run checks. Raises ``ModelError`` where ranks do not fit."""
    if tensor_of(x).ndim < 3 or tensor_of(weight).ndim != tensor_of(x).ndim:
        raise ModelError(f"{node}: a weight {tensor_of(weight)} does not fit {tensor_of(x)}")
    axis, groups = (0, 1) if transposed else (1, node.integer("group", 1))
    window = node.ints("kernel_shape") or ()
    own, channels = const_int(tensor_of(weight).shape[axis]), const_int(tensor_of(x).shape[1])
    if own is not None:
        x = with_extent(x, 1, own * groups)
    elif channels is not None and channels % groups == 0:
        weight = with_extent(weight, axis, channels // groups)
    if len(window) == tensor_of(weight).ndim - 2:
        for axis, extent in enumerate(window):
            weight = with_extent(weight, 2 + axis, extent)
    return x, weight


def has_open_weight(x: Node, weight: Node) -> bool:
    """Whether numbers of channels or filters, or the window, are open."""
    return any(const_int(e) is None for e in (tensor_of(x).shape[1], *tensor_of(weight).shape))


def convolution_of_run(node: OnnxNode, x: Node, weight: Node) -> Node:
    """The node's convolution of x by a weight, of one dtype and rank, any of whose extents may be open. Raises
    ``ModelError`` where attributes do not fit."""
    axes = _axes(node, tensor_of(x).shape[2:], tensor_of(weight).shape[2:])
    groups, inputs = node.integer("group", 1), node.shapes.inputs
    (filters, own, *taps), (batch, channels, *_) = tensor_of(weight).shape, tensor_of(x).shape
    found = x
    if any(axis.before is not ZERO or axis.after is not ZERO for axis in axes):
        found = pad_by_extents(x, [0, 0, *(a.before for a in axes)], [0, 0, *(a.after for a in axes)], inputs)
    for number, axis in enumerate(axes):  # [batch, channels, windows, taps, windows, taps, …]
        found = take(found, _positions(node, axis), 2 + 2 * number)
    order = (0, 1, *range(3, 3 + 2 * len(axes), 2), *range(2, 2 + 2 * len(axes), 2))
    counts, size = [axis.count for axis in axes], math.prod(taps, start=ONE)
    below = (batch, groups, simplify(_share(channels, groups) * size), simplify(math.prod(counts, start=ONE)))
    columns = node.finish(reshape_to(node.finish(transpose(found, order)), below, inputs))
    rows = node.finish(reshape_to(weight, (groups, _share(filters, groups), simplify(own * size)), inputs))
    return reshape_to(node.finish(matmul(rows, columns)), (batch, filters, *counts), inputs)


def transposed_of_run(node: OnnxNode, x: Node, weight: Node) -> Node:
    """The node's transposed convolution of x without bias, by a weight any of whose extents may be open. Raises
    ``ModelError`` where padding depends on the window."""
    rank, groups, inputs = tensor_of(x).ndim - 2, node.integer("group", 1), node.shapes.inputs
    if node.string("auto_pad", "NOTSET") not in ("", "NOTSET", "VALID") or node.has("output_shape"):
        raise node.unsupported("auto_pad or output_shape with a weight whose window or channels are open")
    (batch, channels, *extents), (own, filters, *taps) = tensor_of(x).shape, tensor_of(weight).shape
    size, count = (simplify(math.prod(part, start=ONE)) for part in (taps, extents))
    outputs = simplify(filters * size)
    rows = node.finish(transpose(node.finish(reshape_to(weight, (own, outputs), inputs)), (1, 0)))
    rows = node.finish(reshape_to(rows, (outputs, groups, _share(own, groups)), inputs))
    columns = node.finish(reshape_to(x, (batch, groups, _share(channels, groups), count), inputs))
    added = node.finish(matmul(node.finish(transpose(rows, (1, 0, 2))), columns))
    windows = node.finish(reshape_to(added, (batch, simplify(filters * groups * size), count), inputs))
    strides, dilations, further = (
        per_axis(node.ints(name) or default, rank, name)
        for name, default in (("strides", 1), ("dilations", 1), ("output_padding", 0))
    )
    pads = per_axis(node.ints("pads") or 0, 2 * rank, "pads")
    image = [
        simplify((extent - 1) * strides[d] + (window - 1) * dilations[d] + (1 + further[d] - pads[d] - pads[rank + d]))
        for d, (extent, window) in enumerate(zip(extents, taps, strict=True))
    ]
    return folded(node, windows, node.shapes.stand_for(image), node.shapes.stand_for(taps))


@dataclass(frozen=True, slots=True, eq=False)
class _Axis:
    """An axis that windows go along: so many windows, of so many ``taps``, over x with elements before and after it."""

    count: Expr
    taps: Expr
    stride: int
    dilation: int
    before: Expr
    after: Expr


def _axes(node: OnnxNode, extents: Sequence[Expr], window: Sequence[Expr]) -> list[_Axis]:
    rank = len(extents)
    strides, dilations = (per_axis(node.ints(name) or 1, rank, name) for name in ("strides", "dilations"))
    pads = per_axis(node.ints("pads") or 0, 2 * rank, "pads")
    mode = node.string("auto_pad", "NOTSET") or "NOTSET"
    axes = []
    for d, (extent, taps, stride, dilation) in enumerate(zip(extents, window, strides, dilations, strict=True)):
        reach = (taps - 1) * dilation + 1
        begin, end = (as_index(pads[d]), as_index(pads[rank + d])) if mode == "NOTSET" else (ZERO, ZERO)
        if mode.startswith("SAME"):
            total = maximum(((extent + (stride - 1)) // stride - 1) * stride + reach - extent, ZERO)
            half = total // 2
            begin, end = (half, total - half) if mode == "SAME_UPPER" else (total - half, half)
        count = (extent + begin + end - reach) // stride + 1
        count = simplify(count if const_int(taps) is not None else maximum(count, ZERO))
        axes.append(_Axis(count, taps, stride, dilation, simplify(begin), simplify(end)))
    return axes


def _positions(node: OnnxNode, axis: _Axis) -> Node:
    """Where the taps of windows lie along an axis, [windows, taps]."""
    begins = multiply(numbers_up_to(node, axis.count), integers(axis.stride))
    offsets = multiply(numbers_up_to(node, axis.taps), integers(axis.dilation))
    return node.finish(add(expand_dims(begins, (1,)), expand_dims(offsets, (0,))))


def _share(extent: Expr, groups: int) -> Expr:
    """The extent of one group: reshapes to it check that it divides."""
    return extent if groups == 1 else simplify(extent // groups)
