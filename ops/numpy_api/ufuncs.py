"""Numpy's functions of elements on graph nodes: which operator each one is, and in which dtype it is computed.

They give what numpy gives, dtypes included, but that products of 8-bit matrices are int32, as ``nn.matmul`` has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ...base.dtype import BOOL, DType, dtype
from ...base.errors import TypeInferenceError
from ...graph.node import Node, tensor_of
from ...graph.numpy_protocol import implements
from ...ir.ufuncs import OWN_NAMES
from ..families import binary, parametric, unary
from ..families.matmul.matmul import matmul
from .promotion import as_node, common_dtype, converted, in_dtype

Make: TypeAlias = Callable[..., Node]


def _itself(x: Node) -> Node:
    return x


def _floor_divide(a: Node, b: Node) -> Node:
    """The floor quotient of floats as numpy computes it: the remainder, which is exact, is taken off first."""
    quotient = binary.divide(binary.subtract(a, binary.mod(a, b)), b)
    return unary.round(quotient) if tensor_of(a).dtype.is_float else quotient


_MAKERS: dict[np.ufunc, Make] = {
    **{ufunc: getattr(unary, name) for ufunc, name in OWN_NAMES.items() if hasattr(unary, name)},
    np.arccosh: unary.acosh,
    np.arcsinh: unary.asinh,
    np.arctanh: unary.atanh,
    np.isinf: parametric.isinf,
    np.invert: unary.bitwise_not,
    np.negative: unary.negative,
    np.positive: _itself,
    np.reciprocal: unary.reciprocal,
    np.sign: unary.sign,
    np.square: lambda x: binary.multiply(x, x),
    np.add: binary.add,
    np.bitwise_and: binary.bitwise_and,
    np.bitwise_or: binary.bitwise_or,
    np.bitwise_xor: binary.bitwise_xor,
    np.divide: binary.divide,
    np.equal: binary.equal,
    np.floor_divide: _floor_divide,
    np.fmod: partial(binary.mod, fmod=True),
    np.greater: binary.greater,
    np.greater_equal: binary.greater_equal,
    np.left_shift: binary.left_shift,
    np.less: binary.less,
    np.less_equal: binary.less_equal,
    np.matmul: matmul,
    np.maximum: binary.maximum,
    np.minimum: binary.minimum,
    np.multiply: binary.multiply,
    np.not_equal: binary.not_equal,
    np.remainder: binary.mod,
    np.right_shift: binary.right_shift,
    np.subtract: binary.subtract,
}
_OF_BOOLS: Mapping[np.ufunc, Make] = {
    np.absolute: _itself,
    np.add: binary.logical_or,
    np.bitwise_and: binary.logical_and,
    np.bitwise_or: binary.logical_or,
    np.bitwise_xor: binary.logical_xor,
    np.invert: unary.logical_not,
    np.maximum: binary.logical_or,
    np.minimum: binary.logical_and,
    np.multiply: binary.logical_and,
}
_OF_TRUTHS: Mapping[np.ufunc, Make] = {
    np.logical_and: binary.logical_and,
    np.logical_not: unary.logical_not,
    np.logical_or: binary.logical_or,
    np.logical_xor: binary.logical_xor,
}
_WHOLE = {np.ceil, np.floor, np.trunc}
"""What leaves integers as they are."""


def _computed_dtype(ufunc: np.ufunc, common: DType) -> DType:
    """The dtype in which numpy computes on operands of a common one: of integers, often a float."""
    if common.is_float:
        return common
    operands = (common.to_numpy(),) * ufunc.nin + (None,) * ufunc.nout
    try:
        return dtype(ufunc.resolve_dtypes(operands)[0])
    except TypeError:
        raise TypeInferenceError(f"there is no such function of {common}") from None


def _make(ufunc: np.ufunc, make: Make, *operands: object) -> Node:
    kind = _computed_dtype(ufunc, common_dtype(operands))
    if kind.is_bool:
        make = _OF_BOOLS.get(ufunc, make)
    elif kind.is_data_int and ufunc in _WHOLE:
        make = _itself
    return make(*in_dtype(operands, kind))


def _enter(ufunc: np.ufunc, make: Make) -> None:
    if ufunc.nin == 1:
        implements(ufunc)(lambda x: _make(ufunc, make, x))
    else:
        implements(ufunc)(lambda a, b: _make(ufunc, make, a, b))


def _enter_truths(ufunc: np.ufunc, make: Make) -> None:
    """A function of the truth of each operand, which need not be of one dtype."""

    def truth(x: object) -> Node:
        return converted(as_node(x), BOOL)

    if ufunc.nin == 1:
        implements(ufunc)(lambda x: make(truth(x)))
    else:
        implements(ufunc)(lambda a, b: make(truth(a), truth(b)))


for _ufunc, _maker in _MAKERS.items():
    _enter(_ufunc, _maker)
for _ufunc, _maker in _OF_TRUTHS.items():
    _enter_truths(_ufunc, _maker)


@implements(np.power)
def _power(a: Any, b: Any) -> Node:
    """The square is a product, as in numpy."""
    kind = _computed_dtype(np.power, common_dtype([a, b]))
    if isinstance(b, (int, float)) and b == 2:
        (base,) = in_dtype([a], kind)
        return binary.multiply(base, base)
    return binary.power(*in_dtype([a, b], kind))
