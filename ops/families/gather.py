"""Operators that read a tensor at indices given by another: take, gather_elements, gather_nd.

A negative index counts from the end. An index out of bounds reads the nearest element: indices are data, and memory
is never read outside a tensor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ... import te
from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...base.target import Target
from ...graph.node import Call, Node, tensor_of
from ...graph.types import TensorType, Type
from ...ir.constants import ONE, const_int
from ...ir.expr import Expr
from ...ir.makers import as_index, minimum
from ...ir.simplify import simplify
from ...te.tensor import Tensors
from ..definition.arguments import axis_of
from ..definition.attrs import Attrs, attr
from ..definition.extent_formulas import element_of
from ..definition.layout_rule import LayoutCandidate, ValueLayout
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import check_within, left_of_rows, normalize_axis, same_extent, tensor_argument
from ..definition.strategy import register_compute

GROUP = OpGroup.PARTS


@dataclass(frozen=True)
class TakeAttrs(Attrs):
    """The attributes of ``take``."""

    axis: int = attr("the axis that is indexed, 0 or more", 0)


@dataclass(frozen=True)
class GatherElementsAttrs(Attrs):
    """The attributes of ``gather_elements``."""

    axis: int = attr("the axis that is indexed, 0 or more", 0)


@dataclass(frozen=True)
class GatherNdAttrs(Attrs):
    """The attributes of ``gather_nd``."""

    batch_dims: int = attr("leading axes that data and indices share", 0)


def _arguments(types: Sequence[Type]) -> tuple[TensorType, TensorType]:
    data, indices = tensor_argument(types[0], "data"), tensor_argument(types[1], "indices")
    if not indices.dtype.is_data_int:
        raise TypeInferenceError(f"indices must be integers, found {indices.dtype}")
    return data, indices


def in_bounds(index: Expr, extent: Expr) -> Expr:
    """An index as a position that is there: a negative one counts from the end, and one beyond either end reads the
    element there, so that no index leaves the tensor. ``extent`` is at least 1."""
    at = as_index(index)
    if index.dtype.is_signed:
        at = te.select(at < 0, at + extent, at)
    return te.maximum(te.minimum(at, extent - 1), 0)


def _asked_of_extents(call: Call) -> Sequence[Expr]:
    """Where there are indices, there is something to read."""
    data, indices = _arguments([a.type for a in call.args])
    axis = normalize_axis(call.attrs.axis, data.ndim)
    known = const_int(data.shape[axis])
    if known is not None and known > 0:
        return ()
    count = math.prod(indices.shape, start=ONE)
    return (simplify(data.shape[axis] - minimum(count, 1)),)


def _elements_asked_of_extents(call: Call) -> Sequence[Expr]:
    """The condition that on the other axes there are no more indices than rows to read."""
    data, indices = _arguments([a.type for a in call.args])
    axis = normalize_axis(call.attrs.axis, data.ndim)
    return (*_asked_of_extents(call), *map(simplify, left_of_rows(indices.shape, data.shape, axis)))


def _take_relation(types: Sequence[Type], attrs: TakeAttrs) -> Type:
    data, indices = _arguments(types)
    axis = normalize_axis(attrs.axis, data.ndim)
    return TensorType((*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]), data.dtype)


def _take_compute(attrs: TakeAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    data, indices = inputs
    axis, end = attrs.axis, attrs.axis + indices.ndim

    def element(*i: te.Axis) -> Expr:
        at = in_bounds(indices[i[axis:end]], data.shape[axis])
        return element_of(data, (*i[:axis], at, *i[end:]))

    return te.compute(tensor_argument(result, "result").shape, element, name="take")


def _gather_elements_relation(types: Sequence[Type], attrs: GatherElementsAttrs) -> Type:
    data, indices = _arguments(types)
    if data.ndim != indices.ndim:
        raise TypeInferenceError(f"data of rank {data.ndim} needs indices of that rank, found {indices.ndim}")
    axis = normalize_axis(attrs.axis, data.ndim)
    check_within(indices.shape, data.shape, axis)
    return TensorType(indices.shape, data.dtype)


def _gather_elements_compute(attrs: GatherElementsAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    data, indices = inputs
    axis = attrs.axis

    def element(*i: te.Axis) -> Expr:
        return element_of(data, (*i[:axis], in_bounds(indices[i], data.shape[axis]), *i[axis + 1 :]))

    return te.compute(indices.shape, element, name="gather_elements")


def _gather_nd_relation(types: Sequence[Type], attrs: GatherNdAttrs) -> Type:
    data, indices = _arguments(types)
    depth = const_int(indices.shape[-1]) if indices.ndim else None
    batch = attrs.batch_dims
    if depth is None or not 0 <= batch < indices.ndim or not 1 <= depth <= data.ndim - batch:
        raise TypeInferenceError(
            f"the last axis of indices must be known, and between 1 and the {data.ndim - batch} axes left to index"
        )
    for k in range(batch):
        a, b = data.shape[k], indices.shape[k]
        same_extent(a, b, f"data and indices have extents {a} and {b} on the shared axis {k}")
    return TensorType((*indices.shape[:-1], *data.shape[batch + depth :]), data.dtype)


def _gather_nd_compute(attrs: GatherNdAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    data, indices = inputs
    batch, lookup = attrs.batch_dims, indices.ndim - 1
    depth = const_int(indices.shape[-1]) or 0

    def element(*i: te.Axis) -> Expr:
        at = [in_bounds(indices[(*i[:lookup], k)], data.shape[batch + k]) for k in range(depth)]
        return data[(*i[:batch], *at, *i[lookup:])]

    return te.compute(tensor_argument(result, "result").shape, element, name="gather_nd")


_ARGUMENTS = [("data", "any shape"), ("indices", "integers; negative ones count from the end, others are clamped")]


def _take_in_layout(call: Call, given: ValueLayout | None, target: Target) -> Iterator[LayoutCandidate]:
    """The layout of the data, whose axes are those of the result where indices have one, if that is not in blocks."""
    axis = None if given is None else given.moved_axis(call.attrs.axis)
    if given is not None and axis is not None and tensor_of(call.args[1]).ndim == 1:
        yield LayoutCandidate((given, None), TakeAttrs(axis), given)


TAKE = register_op(
    "take",
    "data at indices along one axis",
    _ARGUMENTS,
    _take_relation,
    OpPattern.INJECTIVE,
    TakeAttrs,
    support_level=3,
    layout_rule=_take_in_layout,
    extent_rule=_asked_of_extents,
)
GATHER_ELEMENTS = register_op(
    "gather_elements",
    "data at the position of each index, but on one axis at the index",
    _ARGUMENTS,
    _gather_elements_relation,
    OpPattern.INJECTIVE,
    GatherElementsAttrs,
    support_level=3,
    extent_rule=_elements_asked_of_extents,
)
GATHER_ND = register_op(
    "gather_nd",
    "data at index vectors, which are the last axis of indices",
    _ARGUMENTS,
    _gather_nd_relation,
    OpPattern.INJECTIVE,
    GatherNdAttrs,
    support_level=3,
)
register_compute(TAKE, _take_compute)
register_compute(GATHER_ELEMENTS, _gather_elements_compute)
register_compute(GATHER_ND, _gather_nd_compute)


def take(data: Node, indices: Node, axis: int = 0) -> Call:
    """``numpy.take``: ``data[..., indices, ...]`` on one axis."""
    axis = axis_of("take", data, axis, "data")
    return _not_of_nothing(TAKE(data, indices, attrs=TakeAttrs(axis)), axis)


def gather_elements(data: Node, indices: Node, axis: int = 0) -> Call:
    """``numpy.take_along_axis``, but indices may be shorter than data on the other axes."""
    axis = axis_of("gather_elements", data, axis, "data")
    return _not_of_nothing(GATHER_ELEMENTS(data, indices, attrs=GatherElementsAttrs(axis)), axis)


def _not_of_nothing(call: Call, axis: int) -> Call:
    """The call, unless there is nothing to read for indices that there are. Where extents are open, runs check it."""
    data, indices = (tensor_of(a) for a in call.args)
    wanted = indices.static_shape
    if const_int(data.shape[axis]) == 0 and wanted is not None and 0 not in wanted:
        raise TypeInferenceError(f"{call.op}: axis {axis} of {data} is empty: there is nothing to read")
    return call


def gather_nd(data: Node, indices: Node, batch_dims: int = 0) -> Call:
    """``data[indices[..., 0], indices[..., 1], …]``, apart for each index of the leading ``batch_dims`` axes."""
    return GATHER_ND(data, indices, attrs=GatherNdAttrs(batch_dims))
