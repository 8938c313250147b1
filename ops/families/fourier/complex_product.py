"""``complex_multiply``: products of complex numbers that are pairs of a real and an imaginary part."""

from __future__ import annotations

from collections.abc import Sequence

from .... import te
from ....base.errors import TypeInferenceError
from ....graph.node import Call, Node
from ....graph.types import TensorType, Type
from ....ir.constants import const_int
from ....ir.expr import Axis, Expr
from ....ir.makers import as_index
from ....te.tensor import Tensors
from ...definition.registry import OpPattern, register_op
from ...definition.relations import same_dtype, tensor_argument
from ...definition.strategy import register_compute
from .butterfly import Complex


def _relation(types: Sequence[Type], attrs: None) -> Type:
    x, factors = tensor_argument(types[0], "x"), tensor_argument(types[1], "factors")
    same_dtype([x, factors], ["x", "factors"])
    if x.ndim < 2 or const_int(x.shape[-1]) not in (1, 2) or not x.dtype.is_float:
        raise TypeInferenceError(f"x must be floats […, n, 1] or pairs […, n, 2], found {x}")
    if factors.ndim != 2 or factors.shape[0] is not x.shape[-2] or const_int(factors.shape[1]) != 2:
        raise TypeInferenceError(f"factors must be [{x.shape[-2]}, 2], found {factors}")
    return TensorType((*x.shape[:-1], as_index(2)), x.dtype)


def _compute(attrs: None, inputs: Tensors, result: Type) -> te.Tensor:
    x, factors = inputs
    is_real = const_int(x.shape[-1]) == 1

    def element(*index: Axis) -> Expr:
        *place, n, component = index
        if is_real:
            return x[(*place, n, 0)] * factors[n, component]
        product = Complex(x[(*place, n, 0)], x[(*place, n, 1)]) * Complex(factors[n, 0], factors[n, 1])
        return te.select(component == 0, product.real, product.imaginary)

    return te.compute((*x.shape[:-1], as_index(2)), element, name="complex_multiply")


COMPLEX_MULTIPLY = register_op(
    "complex_multiply",
    "products of complex numbers, as pairs of a real and an imaginary part",
    [("x", "[…, n, 1] of reals or […, n, 2] of pairs"), ("factors", "[n, 2] of pairs")],
    _relation,
    OpPattern.INJECTIVE,
    support_level=4,
)
register_compute(COMPLEX_MULTIPLY, _compute)


def complex_multiply(x: Node, factors: Node) -> Call:
    """``x`` times ``factors`` along its last axis but one."""
    return COMPLEX_MULTIPLY(x, factors)
