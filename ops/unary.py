"""Elementwise operators with one argument: each is a line of the table, its compute an expression of one element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .. import te
from ..graph.node import Call, Node
from ..graph.types import TensorType, Type
from ..ir.dtype import DType
from ..ir.errors import TypeInferenceError
from ..ir.expr import Expr
from .attrs import Attrs, attr
from .registry import Op, OpPattern, register_op
from .relations import tensor_argument
from .strategy import Tensors, register_compute

Element = Callable[[Expr], Expr]

_FLOAT = ("float", "bfloat")
_NUMBER = (*_FLOAT, "int", "uint")


@dataclass(frozen=True)
class LeakyReluAttrs(Attrs):
    alpha: float = attr("slope for negative values", default=0.01)


def elementwise_relation(kinds: Sequence[str], result: DType | None = None) -> Callable[[Sequence[Type], Any], Type]:
    """The result has the argument's shape, and its dtype unless ``result`` says otherwise."""

    def relation(types: Sequence[Type], attrs: Any) -> Type:
        argument = tensor_argument(types[0], "x")
        if argument.dtype.kind not in kinds:
            raise TypeInferenceError(f"x must be of {', '.join(kinds)}, found {argument.dtype}")
        return TensorType(argument.shape, result or argument.dtype)

    return relation


def _register(name: str, description: str, kinds: Sequence[str], element: Element) -> Op:
    def compute(attrs: Any, inputs: Tensors, result: Type) -> te.Tensor:
        (x,) = inputs
        return te.compute(x.shape, lambda *i: element(x[i]), name=name)

    op = register_op(name, description, [("x", "any shape")], elementwise_relation(kinds), OpPattern.ELEMENTWISE)
    register_compute(op, compute)
    return op


RELU = _register("relu", "max(x, 0)", _NUMBER, lambda x: te.maximum(x, 0))
NEGATIVE = _register("negative", "-x", _NUMBER, lambda x: -x)


def relu(x: Node) -> Call:
    """max(x, 0), elementwise; NaN stays NaN."""
    return RELU(x)
