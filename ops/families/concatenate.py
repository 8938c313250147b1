"""concatenate: tensors one after the other along an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ... import te
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Node, tensor_of
from ...graph.types import TensorType, Type
from ...ir.constants import ONE, ZERO, const_int
from ...ir.expr import Expr
from ...ir.simplify import simplify
from ...te.tensor import Tensors
from ..definition.arguments import axis_of, tensors_of
from ..definition.attrs import Attrs, attr
from ..definition.layout_rule import ValueLayout, follow_axes
from ..definition.memory_view import RunsOfResult
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import normalize_axis, same_dtype, same_extent, tensor_argument
from ..definition.strategy import register_compute

GROUP = OpGroup.PARTS


@dataclass(frozen=True)
class ConcatenateAttrs(Attrs):
    """The attributes of ``concatenate``."""

    axis: int = attr("the axis along which the tensors follow each other, 0 or more")


def _relation(types: Sequence[Type], attrs: ConcatenateAttrs) -> Type:
    tensors = [tensor_argument(t, f"tensor {k}") for k, t in enumerate(types)]
    same_dtype(tensors, [f"tensor {k}" for k in range(len(tensors))])
    first = tensors[0]
    normalize_axis(attrs.axis, first.ndim)
    extents = list(first.shape)
    for tensor in tensors[1:]:
        if tensor.ndim != first.ndim:
            raise TypeInferenceError(f"tensors of rank {first.ndim} and {tensor.ndim} cannot follow each other")
        for axis, extent in enumerate(tensor.shape):
            own = extents[axis]
            extents[axis] = (
                own + extent
                if axis == attrs.axis
                else same_extent(own, extent, f"the tensors have extents {own} and {extent} on axis {axis}")
            )
    return TensorType(tuple(simplify(e) for e in extents), first.dtype)


def _starts(extents: Sequence[Expr]) -> list[Expr]:
    """Where each tensor begins on the axis that they follow each other on."""
    starts: list[Expr] = [ZERO]
    for extent in extents[:-1]:
        starts.append(simplify(starts[-1] + extent))
    return starts


def _compute(attrs: ConcatenateAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    axis = attrs.axis
    starts = _starts([x.shape[axis] for x in inputs])

    def element(*i: te.Axis) -> Expr:
        def read(k: int) -> Expr:
            return inputs[k][(*i[:axis], i[axis] - starts[k], *i[axis + 1 :])]

        value = read(len(inputs) - 1)
        for k in reversed(range(len(inputs) - 1)):
            value = te.if_then_else(i[axis] < starts[k + 1], read(k), value)
        return value

    return te.compute(tensor_argument(result, "result").shape, element, name="concatenate")


def _in_layout(attrs: ConcatenateAttrs, given: ValueLayout) -> ConcatenateAttrs:
    """Blocks that divide all tensors follow each other as their elements do."""
    return ConcatenateAttrs(given.layout.position(given.primal.axes[attrs.axis].name))


def _in_memory(call: Call) -> RunsOfResult | None:
    """Where the axis is the outermost one that has several elements, the tensors follow each other in memory."""
    shape = tensor_of(call).shape
    if any(const_int(extent) != 1 for extent in shape[: call.attrs.axis]):
        return None
    stride = math.prod(shape[call.attrs.axis + 1 :], start=ONE)
    starts = _starts([tensor_of(x).shape[call.attrs.axis] for x in call.args])
    return RunsOfResult(tuple(simplify(start * stride) for start in starts))


CONCATENATE = register_op(
    "concatenate",
    "tensors one after the other along an axis",
    [("x", "tensors that differ in the extent of that axis at most")],
    _relation,
    OpPattern.INJECTIVE,
    ConcatenateAttrs,
    variadic=True,
    support_level=1,
    layout_rule=follow_axes(_in_layout),
    memory_rule=_in_memory,
)
register_compute(CONCATENATE, _compute)


def concatenate(tensors: Sequence[Node] | Node, axis: int = 0) -> Call:
    """The tensors, at least one, one after the other along an axis. A tuple stands for its members."""
    parts = tensors_of("concatenate", tensors)
    if not parts:
        raise TypeInferenceError("concatenate needs at least one tensor")
    return CONCATENATE(*parts, attrs=ConcatenateAttrs(axis_of("concatenate", parts[0], axis)))
