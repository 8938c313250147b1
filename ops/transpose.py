"""transpose: a tensor with its axes in another order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import te
from ..graph.node import Call, Node, tensor_of
from ..graph.types import TensorType, Type
from ..ir.errors import TypeInferenceError
from ..ir.expr import Expr
from .arguments import axis_of
from .attrs import Attrs, attr
from .registry import OpPattern, register_op
from .relations import tensor_argument
from .strategy import Tensors, register_compute


@dataclass(frozen=True)
class TransposeAttrs(Attrs):
    axes: tuple[int, ...] = attr("for each axis of the result, the axis of the argument that it is")


def _relation(types: Sequence[Type], attrs: TransposeAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    if sorted(attrs.axes) != list(range(x.ndim)):
        raise TypeInferenceError(f"axes {attrs.axes} are not the {x.ndim} axes of x in some order")
    return TensorType(tuple(x.shape[axis] for axis in attrs.axes), x.dtype)


def _compute(attrs: TransposeAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs
    position = {axis: k for k, axis in enumerate(attrs.axes)}

    def element(*i: te.Axis) -> Expr:
        return x[tuple(i[position[axis]] for axis in range(x.ndim))]

    return te.compute([x.shape[axis] for axis in attrs.axes], element, name="transpose")


TRANSPOSE = register_op(
    "transpose",
    "the axes in another order",
    [("x", "any shape")],
    _relation,
    OpPattern.INJECTIVE,
    TransposeAttrs,
    support_level=3,
)
register_compute(TRANSPOSE, _compute)


def transpose(x: Node, axes: Sequence[int] | None = None) -> Call:
    """x with axis k of the result being axis ``axes[k]`` of x; the axes reversed, if none are given."""
    reverse = reversed(range(tensor_of(x).ndim))
    order = tuple(axis_of("transpose", x, axis) for axis in (reverse if axes is None else axes))
    return TRANSPOSE(x, attrs=TransposeAttrs(order))
