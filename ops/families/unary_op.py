"""What elementwise operators with one argument are registered by: their computes are an expression of one element.

What is composed of several roundings is computed in float32 where the argument is a narrower float, and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import te
from ...base.dtype import NARROW_KINDS, DType
from ...base.errors import TypeInferenceError
from ...graph.types import TensorType, Type
from ...ir.expr import Expr
from ...te.tensor import Tensors
from ..definition.attrs import Attrs
from ..definition.layout_rule import same_layout
from ..definition.registry import Op, OpPattern, register_op
from ..definition.relations import NUMBER_KINDS, tensor_argument
from ..definition.strategy import register_compute

Element = Callable[[Expr, Any], Expr]
"""From an element and the attributes to the result's element."""

ANY_KINDS = ("bool", *NUMBER_KINDS, *NARROW_KINDS)


def elementwise_relation(
    kinds: Sequence[str], result: DType | None = None
) -> Callable[[Sequence[Type], Any], TensorType]:
    """The result has the argument's shape, and its dtype unless ``result`` says otherwise."""

    def relation(types: Sequence[Type], attrs: Any) -> TensorType:
        argument = tensor_argument(types[0], "x")
        if argument.dtype.kind not in kinds:
            raise TypeInferenceError(f"x must be of {', '.join(kinds)}, found {argument.dtype}")
        return TensorType(argument.shape, result or argument.dtype)

    return relation


def in_float32(element: Callable[..., Expr]) -> Callable[..., Expr]:
    """Compute on at least 32 bits: a narrower float is widened first, the result rounded."""

    def widened(x: Expr, *attrs: Any) -> Expr:
        if x.dtype.is_float and x.dtype.bits < 32:
            return te.cast(element(te.cast(x, "float32"), *attrs), x.dtype)
        return element(x, *attrs)

    return widened


def register_elementwise(
    name: str,
    description: str,
    relation: Callable[[Sequence[Type], Any], Type],
    element: Element,
    attrs: type[Attrs] | None = None,
) -> Op:
    """Register an operator of one argument whose elements are those of ``element``."""

    def compute(attrs: Any, inputs: Tensors, result: Type) -> te.Tensor:
        (x,) = inputs
        return te.compute(x.shape, lambda *i: element(x[i], attrs), name=name)

    op = register_op(
        name,
        description,
        [("x", "any shape")],
        relation,
        OpPattern.ELEMENTWISE,
        attrs,
        support_level=1,
        layout_rule=same_layout,
    )
    register_compute(op, compute)
    return op
