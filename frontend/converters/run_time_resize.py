"""Resize and Upsample by scales, sizes or a region that a run computes.

The extents become dimensions. Where elements lie among the source's, and with which weights they are read, is the
arithmetic of ``resize_math`` on vectors of the graph, one for each axis: small tables outside the loops over elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...base.dataclass import dataclass
from ...graph.node import Call, Constant, Node, tensor_of
from ...ir.expr import Expr
from ...ir.makers import as_index
from ...ir.simplify import simplify
from ...ops.families.binary import equal, logical_or, maximum, minimum, subtract
from ...ops.families.cast import cast
from ...ops.families.gather import take
from ...ops.families.matmul.matmul import dense
from ...ops.families.reduce import max as max_of
from ...ops.families.reduce import min as min_of
from ...ops.families.reduce import sum as sum_of
from ...ops.families.resample import resample
from ...ops.families.reshape import expand_dims, reshape
from ...ops.families.resize_math import (
    Interpolation,
    Number,
    ResizedAxis,
    nearest_of,
    reach_of,
    source_of,
    taps_of,
    weight_of,
)
from ...ops.families.select import where
from ...ops.families.transpose import transpose
from ...ops.families.unary import ceil, floor
from ..integers import as_int64, as_vector, clamped, integers
from ..onnx_node import OnnxNode
from .run_time_operands import element, extent_as_number, numbers_up_to

FLOAT = "float64"


@dataclass(frozen=True)
class OfNodes:
    """What ``resize_math`` asks of the nodes of a graph, of a type of floats."""

    float_type: str

    def floor(self, x: Number) -> Number:
        """The largest whole numbers not above x, elementwise."""
        return floor(x)

    def ceil(self, x: Number) -> Number:
        """The smallest whole numbers not below x, elementwise."""
        return ceil(x)

    def equal(self, a: Number, b: Number) -> Number:
        """Where two are equal, elementwise; a Python number becomes a constant of the type."""
        return equal(a, self._number(b))

    def where(self, condition: Number, a: Number, b: Number) -> Number:
        """Elements of a where the condition holds, else of b; Python numbers become constants of the type."""
        return where(condition, self._number(a), self._number(b))

    def _number(self, value: Number) -> Node:
        return value if isinstance(value, Node) else Constant(np.array(value, self.float_type))


def _number(value: float) -> Node:
    return Constant(np.array(value, FLOAT))


def _float(values: Node) -> Node:
    return cast(values, FLOAT)


@dataclass(frozen=True, eq=False)
class _Change:
    """What becomes of an axis; ``region`` is the part that tf_crop_and_resize takes."""

    axis: int
    extent: int | Expr
    scale: Node
    region: tuple[Node, Node]


def resized(
    node: OnnxNode,
    how: Interpolation,
    axes: Sequence[int],
    scales: Node | None,
    sizes: Node | None,
    region: Node | None = None,
    ceil_where_it_shrinks: bool = False,
) -> Node:
    """The first input with axes resized by ``scales`` or to ``sizes``; ``region`` is that of tf_crop_and_resize, begins
    and then ends. With ``ceil_where_it_shrinks`` the nearest element is the one above on axes that shrink."""
    x: Node = node[0]
    kind = tensor_of(x).dtype
    made = x if kind.is_float or how.mode == "nearest" else cast(x, "float32")
    for change in _changes(node, axes, scales, sizes, region):
        made = _resized_axis(node, made, change, how, ceil_where_it_shrinks)
    return made if tensor_of(made).dtype is kind else cast(made, kind)


def _changes(
    node: OnnxNode, axes: Sequence[int], scales: Node | None, sizes: Node | None, region: Node | None
) -> list[_Change]:
    """The axes that may change, with the extents that they get."""
    own = tensor_of(node[0]).shape
    before = _float(node.shapes.stand_for([own[axis] for axis in axes]))
    factors, wanted = _factors(node, before, scales, sizes)
    changing = list(range(len(axes)))
    if region is None and scales is not None:
        changing = [k for k, scale in enumerate(_known_floats(scales)) if scale != 1.0]
    elif region is None and node.string("keep_aspect_ratio_policy", "stretch") == "stretch":
        sizes_known = enumerate(node.shapes.elements(wanted))
        changing = [k for k, size in sizes_known if size is None or as_index(size) is not own[axes[k]]]
    extents = node.extents_of(take(wanted, integers(changing), 0), "an extent of the result") if changing else ()
    ends = _float(region) if region is not None else Constant(np.repeat([0.0, 1.0], len(axes)))
    return [
        _Change(axes[k], extent, element(factors, k), (element(ends, k), element(ends, len(axes) + k)))
        for k, extent in zip(changing, extents, strict=True)
    ]


def _factors(node: OnnxNode, before: Node, scales: Node | None, sizes: Node | None) -> tuple[Node, Node]:
    """The scale and the new extent of each axis, in float64 and int64. What scales give is rounded down from a float32,
    as ONNX's inference of shapes has it."""
    if scales is not None:
        return _float(scales), as_int64(floor(cast(scales, "float32") * cast(before, "float32")))
    assert sizes is not None
    wanted = node.finish(as_vector(sizes))
    policy = node.string("keep_aspect_ratio_policy", "stretch")
    ratios = where(before > 0.0, _float(wanted) / maximum(before, _number(1.0)), _number(1.0))
    if policy == "stretch":
        return ratios, wanted
    common = {"not_larger": min_of, "not_smaller": max_of}.get(policy)
    if common is None:
        raise node.unsupported(f"keep_aspect_ratio_policy {policy!r}")
    factors = common(ratios, (0,), True) + (before - before)
    return factors, as_int64(floor(factors * before + 0.5))


def _known_floats(values: Node) -> list[float | None]:
    """The elements of a vector of floats, as far as they are known."""
    if isinstance(values, Constant):
        return [float(value) for value in values.value.ravel()]
    if isinstance(values, Call) and values.op.name == "concatenate":
        return [value for part in values.args for value in _known_floats(part)]
    count = tensor_of(values).static_shape
    assert count is not None
    return [None] * int(np.prod(count))


def _resized_axis(node: OnnxNode, x: Node, change: _Change, how: Interpolation, ceil_where_it_shrinks: bool) -> Node:
    axis, extent = change.axis, tensor_of(x).shape[change.axis]
    nodes = OfNodes(how.float_type)
    before, after, scale, *region = (
        cast(value, how.float_type)
        for value in (
            extent_as_number(node, extent),
            extent_as_number(node, as_index(change.extent)),
            change.scale,
            *change.region,
        )
    )
    line = ResizedAxis(before, after, scale, (region[0], region[1]))
    source = source_of(cast(numbers_up_to(node, change.extent), how.float_type), line, how.coordinates, nodes)
    if how.mode == "nearest":
        positions: Node = nearest_of(source, how.nearest, nodes)
        if ceil_where_it_shrinks:
            positions = where(scale < 1.0, ceil(source), positions)
        made: Node = take(x, _within(as_int64(positions), node, extent), axis)
    elif how.antialias:
        made = _by_matrix(node, x, change, source, how)
    else:
        made = _weighted(node, x, axis, source, how)
    if how.coordinates != "tf_crop_and_resize":
        return made
    outside = logical_or(source < 0.0, source > before - 1.0)
    after_it = tensor_of(x).ndim - 1 - axis
    mask = expand_dims(outside, tuple(range(1, after_it + 1))) if after_it else outside
    return where(mask, Constant(np.array(how.extrapolation_value, tensor_of(x).dtype.to_numpy())), made)


def _within(positions: Node, node: OnnxNode, extent: Expr) -> Node:
    """Places brought to the axis."""
    return clamped(positions, integers(0), subtract(extent_as_number(node, extent), integers(1)))


def _weighted(node: OnnxNode, x: Node, axis: int, source: Node, how: Interpolation) -> Node:
    """Sums of the elements around each position."""
    extent = tensor_of(x).shape[axis]
    base = ceil(source) - 1.0
    taps = Constant(np.array(taps_of(1.0, how), np.float64)[:, None])
    positions = base + taps
    weights = weight_of(positions - source, 1.0, how, OfNodes(FLOAT))
    if how.exclude_outside:
        weights = _inside_only(weights, positions, _float(extent_as_number(node, extent)), axis=0)
    return resample(x, _within(as_int64(positions), node, extent), cast(weights, tensor_of(x).dtype), axis)


def _by_matrix(node: OnnxNode, x: Node, change: _Change, source: Node, how: Interpolation) -> Node:
    """A kernel as much wider as the axis shrinks, whose width nobody knows before: a matrix of all weights, over an
    axis with as many elements added at both ends as kernels reach beyond."""
    kind, axis = tensor_of(x), change.axis
    extent = kind.shape[axis]
    shrink = minimum(change.scale, _number(1.0))
    reach = where(change.scale > 0.0, ceil(reach_of(how) / shrink), _number(0.0))
    (border,) = node.extents_of(reshape(as_int64(reach), (1,)), "how far the kernel of a resized axis reaches")
    count = simplify(extent + as_index(border) * 2)
    positions = subtract(numbers_up_to(node, count), extent_as_number(node, as_index(border)))
    distance = _float(positions) - expand_dims(source, (1,))
    weights = weight_of(distance * shrink, 1.0, replace(how, antialias=False), OfNodes(FLOAT))
    if how.exclude_outside:
        weights = _inside_only(weights, _float(positions), _float(extent_as_number(node, extent)), axis=1)
    else:
        weights = weights / sum_of(weights, (1,), True)
    order = [k for k in range(kind.ndim) if k != axis] + [axis]
    rows = take(transpose(x, order), _within(positions, node, extent), kind.ndim - 1)
    return transpose(dense(rows, cast(weights, kind.dtype)), np.argsort(order).tolist())


def _inside_only(weights: Node, positions: Node, extent: Node, axis: int) -> Node:
    """Weights of the elements that there are, which sum to 1 again."""
    outside = logical_or(positions < 0.0, positions >= extent)
    kept = where(outside, _number(0.0), weights)
    total = sum_of(kept, (axis,), True)
    return kept / where(equal(total, _number(0.0)), _number(1.0), total)
