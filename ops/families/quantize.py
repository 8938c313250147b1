"""quantize and dequantize: integers that stand for real numbers, real = (integer - zero point) · scale.

Both are what ONNX's QuantizeLinear and DequantizeLinear say, with scales and zero points that broadcast as numpy's
arrays do. They are operators, not compositions, so that passes can tell what a value is quantized by.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ... import te
from ...base.dataclass import dataclass
from ...base.dtype import DType, dtype
from ...base.errors import ExpressionError, TypeInferenceError
from ...graph.node import Call, Constant, Node, tensor_of
from ...graph.types import TensorType, Type
from ...ir.constants import const_int
from ...ir.expr import Axis, Expr
from ...te.broadcasting import read_broadcast
from ...te.tensor import Tensors
from ..definition.arguments import dtype_name
from ..definition.attrs import Attrs, attr, one_of
from ..definition.layout_rule import same_layout
from ..definition.op_group import OpGroup
from ..definition.registry import Op, OpPattern, register_op
from ..definition.relations import broadcast_shapes, tensor_argument
from ..definition.strategy import register_compute

GROUP = OpGroup.ELEMENTWISE
NAMES = ("x", "scale", "zero")
MOST_BITS = 32
"""Wider integers are not held by the numbers that they stand for."""

# Attributes


@dataclass(frozen=True)
class QuantizeAttrs(Attrs):
    """The attributes of ``quantize``."""

    dtype: str = attr("the integers that are made")
    precision: str = attr(
        "the floats that x is divided by the scale in", "float32", one_of("float16", "bfloat16", "float32", "float64")
    )


@dataclass(frozen=True)
class DequantizeAttrs(Attrs):
    """The attributes of ``dequantize``."""

    dtype: str = attr("the floats that are made", "float32", one_of("float16", "bfloat16", "float32", "float64"))


# Types


def is_quantized(kind: DType) -> bool:
    """Whether values are integers of at most 32 bits, which may be narrow ones, of 4 or 2 bits."""
    return kind.bits <= MOST_BITS and (kind.is_data_int or (kind.is_narrow and not kind.holds_floats))


def _integers(name: str) -> DType:
    try:
        kind = dtype(name)
    except ExpressionError as error:
        raise TypeInferenceError(str(error)) from None
    if not is_quantized(kind):
        raise TypeInferenceError(f"quantized numbers are integers of at most {MOST_BITS} bits, found {kind}")
    return kind


def _arguments(types: Sequence[Type]) -> tuple[TensorType, TensorType, TensorType]:
    x, scale, zero = (tensor_argument(t, name) for t, name in zip(types, NAMES, strict=True))
    shape = broadcast_shapes((x.shape, scale.shape, zero.shape), NAMES)
    extents = [(const_int(a), const_int(b)) for a, b in zip(shape, x.shape, strict=False)]
    if len(shape) != x.ndim or any(None not in (a, b) and a != b for a, b in extents):
        raise TypeInferenceError(f"scale and zero must broadcast to x, found {x}, {scale}, {zero}")
    return x, scale, zero


def _quantize_relation(types: Sequence[Type], attrs: QuantizeAttrs) -> TensorType:
    x, scale, zero = _arguments(types)
    kind = _integers(attrs.dtype)
    if zero.dtype is not kind:
        raise TypeInferenceError(f"zero must be of the result's dtype, {kind}, found {zero.dtype}")
    if not (x.dtype.is_float or x.dtype.is_data_int) or not scale.dtype.is_float:
        raise TypeInferenceError(f"numbers are quantized by a scale of floats, found {x.dtype} and {scale.dtype}")
    return TensorType(x.shape, kind)


def _dequantize_relation(types: Sequence[Type], attrs: DequantizeAttrs) -> TensorType:
    x, scale, zero = _arguments(types)
    _integers(str(x.dtype))
    if zero.dtype is not x.dtype or not scale.dtype.is_float:
        raise TypeInferenceError(
            f"zero must be of x's dtype, and scale of floats, found {x.dtype}, {zero.dtype} and {scale.dtype}"
        )
    return TensorType(x.shape, dtype(attrs.dtype))


# Computes


def _quantize(attrs: QuantizeAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    x, scale, zero = inputs

    def element(*i: Axis) -> Expr:
        real, step = te.cast(read_broadcast(x, i), attrs.precision), te.cast(read_broadcast(scale, i), attrs.precision)
        whole = te.cast(te.round(real / step), "float32") + te.cast(
            te.cast(read_broadcast(zero, i), "int32"), "float32"
        )
        return te.cast(whole, attrs.dtype)

    return te.compute(x.shape, element, name="quantize")


def _dequantize(attrs: DequantizeAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    x, scale, zero = inputs

    def element(*i: Axis) -> Expr:
        whole = te.cast(read_broadcast(x, i), "int32") - te.cast(read_broadcast(zero, i), "int32")
        return te.cast(te.cast(whole, "float32") * te.cast(read_broadcast(scale, i), "float32"), attrs.dtype)

    return te.compute(x.shape, element, name="dequantize")


# Registration

_PARAMETERS = [("scale", "floats, broadcast to x"), ("zero", "the zero point, broadcast to x")]


def _registered() -> tuple[Op, Op]:
    quantize = register_op(
        "quantize",
        "round(x / scale) + zero, halfway to even, saturated",
        [("x", "numbers"), *_PARAMETERS],
        _quantize_relation,
        OpPattern.BROADCAST,
        QuantizeAttrs,
        support_level=2,
        layout_rule=same_layout,
    )
    dequantize = register_op(
        "dequantize",
        "(x - zero) · scale",
        [("x", f"integers of at most {MOST_BITS} bits"), *_PARAMETERS],
        _dequantize_relation,
        OpPattern.BROADCAST,
        DequantizeAttrs,
        support_level=2,
        layout_rule=same_layout,
    )
    register_compute(quantize, _quantize)
    register_compute(dequantize, _dequantize)
    return quantize, dequantize


QUANTIZE, DEQUANTIZE = _registered()


# Calls


def quantize(
    x: Node, scale: Node, zero: Node | None = None, dtype: str | DType = "uint8", precision: str | DType = "float32"
) -> Call:
    """``x`` as integers of a dtype: round(x / scale) + zero, halfway to even, saturated; NaN becomes 0.

    ``scale`` and ``zero`` broadcast to x; a zero point that is left out is 0. x is divided by the scale in
    ``precision``; the zero point is added in float32.
    """
    kind = dtype_name(dtype)
    middle = _no_zero_point(_integers(kind)) if zero is None else zero
    return QUANTIZE(x, scale, middle, attrs=QuantizeAttrs(kind, dtype_name(precision)))


def dequantize(x: Node, scale: Node, zero: Node | None = None, dtype: str | DType | None = None) -> Call:
    """The real numbers that integers ``x`` stand for: (x - zero) · scale, in float32, then as floats of a dtype.

    ``scale`` and ``zero`` broadcast to x; a zero point that is left out is 0. Without a dtype, the result has that of
    the scale.
    """
    middle = _no_zero_point(tensor_of(x).dtype) if zero is None else zero
    return DEQUANTIZE(x, scale, middle, attrs=DequantizeAttrs(dtype_name(dtype) or str(tensor_of(scale).dtype)))


def _no_zero_point(kind: DType) -> Constant:
    return Constant(np.zeros((), kind.to_numpy()))
