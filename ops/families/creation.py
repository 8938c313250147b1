"""Operators that make a tensor from attributes: full, arange; and one_hot, from indices."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ... import te
from ...base.dataclass import dataclass
from ...base.dtype import DType, dtype
from ...base.errors import ExpressionError, TypeInferenceError
from ...graph.node import Call, Node, tensor_of
from ...graph.types import TensorType, Type, tensor_type
from ...ir.expr import Expr
from ...ir.makers import as_index
from ...te.tensor import Tensors
from ..definition.arguments import integer, integer_list, real
from ..definition.attrs import Attrs, all_non_negative, attr, positive
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import same_dtype, tensor_argument
from ..definition.strategy import register_compute

GROUP = OpGroup.CREATION


def _dtype_name(name: str) -> str | None:
    try:
        return None if str(dtype(name)) == name else "must be the name of a dtype"
    except ExpressionError:
        return "must be the name of a dtype"


@dataclass(frozen=True)
class FullAttrs(Attrs):
    """The attributes of ``full``."""

    shape: tuple[int, ...] = attr("extents", check=all_non_negative)
    value: float | bool = attr("every element: a number, or a bool")
    dtype: str = attr("its dtype", "float32", _dtype_name)


@dataclass(frozen=True)
class ArangeAttrs(Attrs):
    """The attributes of ``arange``."""

    start: float = attr("the first element")
    step: float = attr("what is added from element to element")
    count: int = attr("how many elements", check=lambda n: None if n >= 0 else "must not be negative")
    dtype: str = attr("their dtype", "int64", _dtype_name)


@dataclass(frozen=True)
class OneHotAttrs(Attrs):
    """The attributes of ``one_hot``."""

    depth: int = attr("extent of the new axis", check=positive)
    axis: int = attr("where the new axis stands in the result, 0 or more")


def _full_relation(types: Sequence[Type], attrs: FullAttrs) -> Type:
    return tensor_type(attrs.shape, attrs.dtype)


def _full_compute(attrs: FullAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    return te.compute(attrs.shape, lambda *i: te.const(attrs.value, attrs.dtype), name="full")


def _arange_relation(types: Sequence[Type], attrs: ArangeAttrs) -> Type:
    return tensor_type((attrs.count,), attrs.dtype)


def _arange_compute(attrs: ArangeAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    kind = dtype(attrs.dtype)

    def element(i: te.Axis) -> Expr:
        return te.const(attrs.start, kind) + te.cast(i, kind) * te.const(attrs.step, kind)

    return te.compute((attrs.count,), element, name="arange")


def _one_hot_relation(types: Sequence[Type], attrs: OneHotAttrs) -> Type:
    indices, off, on = (tensor_argument(t, n) for t, n in zip(types, ("indices", "off", "on"), strict=True))
    same_dtype([off, on], ["off", "on"])
    if off.ndim or on.ndim:
        raise TypeInferenceError("off and on must be of rank 0")
    if not 0 <= attrs.axis <= indices.ndim:
        raise TypeInferenceError(f"axis {attrs.axis} is not one of a result of rank {indices.ndim + 1}")
    depth = as_index(attrs.depth)
    return TensorType((*indices.shape[: attrs.axis], depth, *indices.shape[attrs.axis :]), on.dtype)


def _one_hot_compute(attrs: OneHotAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    indices, off, on = inputs

    def element(*i: te.Axis) -> Expr:
        index = indices[(*i[: attrs.axis], *i[attrs.axis + 1 :])]
        return te.select(_matches(index, i[attrs.axis], attrs.depth), on[()], off[()])

    return te.compute(tensor_argument(result, "result").shape, element, name="one_hot")


def _matches(index: Expr, position: te.Axis, depth: int) -> Expr:
    """Whether an index, negative ones counting from the end, is the position."""
    at = te.cast(index, "int64") if index.dtype.is_float else index
    found = as_index(at)
    here = found == position
    return here | (found + depth == position) if at.dtype.is_signed else here


FULL = register_op(
    "full", "one value everywhere", [], _full_relation, OpPattern.ELEMENTWISE, FullAttrs, support_level=3
)
ARANGE = register_op(
    "arange", "evenly spaced numbers", [], _arange_relation, OpPattern.ELEMENTWISE, ArangeAttrs, support_level=3
)
ONE_HOT = register_op(
    "one_hot",
    "on at the index along a new axis, off elsewhere; everywhere, for an index out of bounds",
    [("indices", "numbers; negative ones count from the end"), ("off", "rank 0"), ("on", "rank 0, same dtype")],
    _one_hot_relation,
    OpPattern.INJECTIVE,
    OneHotAttrs,
    support_level=3,
)
register_compute(FULL, _full_compute)
register_compute(ARANGE, _arange_compute)
register_compute(ONE_HOT, _one_hot_compute)


def full(shape: Sequence[int], value: bool | int | float, kind: str | DType = "float32") -> Call:
    """A tensor with one value everywhere."""
    return FULL(attrs=FullAttrs(integer_list(shape, "shape"), value, str(dtype(kind))))


def arange(start: float, stop: float, step: float = 1, kind: str | DType = "int64") -> Call:
    """start, start + step, … before stop, as ``numpy.arange``."""
    for value, name in ((start, "start"), (stop, "stop"), (step, "step")):
        if not math.isfinite(real(value, name)):
            raise TypeInferenceError(f"arange: {name} must be finite, found {value!r}")
    if step == 0:
        raise TypeInferenceError("arange needs a step other than 0")
    return ARANGE(attrs=ArangeAttrs(start, step, arange_extent(start, stop, step), str(dtype(kind))))


def arange_extent(start: float, stop: float, step: float) -> int:
    """How many numbers ``arange`` has; exactly, where they are whole."""
    if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int):
        return max(0, -((start - stop) // step))
    return max(0, math.ceil((stop - start) / step))


def one_hot(indices: Node, off: Node, on: Node, depth: int, axis: int = -1) -> Call:
    """A tensor that is ``on`` where the position along a new axis of extent ``depth`` is the index, ``off``
    elsewhere."""
    rank = tensor_of(indices).ndim + 1
    if not -rank <= integer(axis, "axis") < rank:
        raise TypeInferenceError(f"one_hot of {indices.type}: axis {axis} is not one of a result of rank {rank}")
    return ONE_HOT(indices, off, on, attrs=OneHotAttrs(depth, axis % rank))
