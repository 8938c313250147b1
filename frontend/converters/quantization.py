"""ONNX's quantized operators: integers for real numbers, where real = (integer - zero point) · scale."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...base.dtype import DType, dtype
from ...base.errors import ModelError
from ...graph.node import Constant, Node, tensor_of
from ...ir.constants import const_int
from ...ops.families import reduce
from ...ops.families.binary import add, divide, equal, maximum, minimum, multiply, subtract
from ...ops.families.cast import cast
from ...ops.families.narrow import E8M0
from ...ops.families.parametric import clip
from ...ops.families.quantize import dequantize, is_quantized, quantize
from ...ops.families.repeat import repeat
from ...ops.families.reshape import squeeze
from ...ops.families.select import where
from ...ops.families.slicing import strided_slice
from ...ops.families.unary import round as nearest
from ...ops.families.window import known_window
from ...ops.families.zero_points import conv_less_zeros, is_zero, matmul_less_zeros, of_rows
from ..onnx_node import OnnxNode
from ..registry import converter
from ..tensors import element_type
from .convolution import check_kernel_shape, same_padded
from .elementwise import aligned_at
from .run_time_convolution import convolution_of_run, has_open_weight, with_known_channels

VERSIONS = (10, 13, 19, 21, 23, 24, 25, 28)
BYTE = 255.0
"""The largest unsigned byte."""

# Between real numbers and integers


@converter("QuantizeLinear", *VERSIONS)
def _quantize(node: OnnxNode) -> Node:
    zero = node.get(2)
    kind = dtype("uint8") if zero is None else tensor_of(zero).dtype
    if zero is None and node.integer("output_dtype", 0):
        kind = element_type(node.integer("output_dtype"), f"{node}: output_dtype")
    _check(node, kind)
    precision = "float32"
    if node.integer("precision", 0):
        precision = str(element_type(node.integer("precision"), f"{node}: precision"))
    scale, zero = _along_axis(node, node[1]), None if zero is None else _along_axis(node, zero)
    if kind.holds_floats:
        scaled = divide(cast(node[0], precision), cast(scale, precision))
        if not is_zero(zero):
            assert zero is not None
            scaled = add(scaled, cast(zero, precision))
        return cast(scaled, kind, saturate=node.flag("saturate", True))
    return quantize(node[0], scale, zero, kind, precision)


@converter("DequantizeLinear", *VERSIONS)
def _dequantize(node: OnnxNode) -> Node:
    """Convert DequantizeLinear; the result is in the dtype of the scale, unless the node says otherwise."""
    x, scale, zero = node[0], node[1], node.get(2)
    _check(node, tensor_of(x).dtype)
    to = tensor_of(scale).dtype
    if node.integer("output_dtype", 0):
        to = element_type(node.integer("output_dtype"), f"{node}: output_dtype")
    scale, zero = _along_axis(node, scale), None if zero is None else _along_axis(node, zero)
    if is_quantized(tensor_of(x).dtype):
        return dequantize(x, scale, zero, to)
    whole = cast(x, "float32")
    if not is_zero(zero):
        assert zero is not None
        whole = subtract(whole, cast(zero, "float32"))
    return cast(multiply(whole, cast(scale, "float32")), to)


@converter("DynamicQuantizeLinear", 11)
def _dynamic_quantize(node: OnnxNode) -> Sequence[Node]:
    """Convert it as the body that the standard has, but for the scale of nothing but zeros."""
    return dynamically_quantized(node[0])


def dynamically_quantized(x: Node) -> tuple[Node, Node, Node]:
    """x as unsigned bytes, with their scale and zero point; the scale is 1 where all are 0, or there are none, as
    onnxruntime has it."""
    zero, one, top = (Constant(np.asarray(value, np.float32)) for value in (0, 1, BYTE))
    low, high = minimum(reduce.min(x), zero), maximum(reduce.max(x), zero)
    span = divide(subtract(high, low), top)
    scale = where(equal(span, zero), one, span)
    middle = cast(nearest(clip(divide(subtract(zero, low), scale), 0.0, BYTE)), "uint8")
    return quantize(x, scale, middle, dtype("uint8")), scale, middle


def _check(node: OnnxNode, kind: DType) -> None:
    if not (is_quantized(kind) or kind.is_narrow) or kind == E8M0:
        raise node.unsupported(f"quantization to {kind}")


def _along_axis(node: OnnxNode, parameter: Node) -> Node:
    """A scale or zero point as it broadcasts with x: of the whole, of each place on the axis, or of each block of
    places."""
    rank, block = node.rank, node.integer("block_size", 0)
    axis = node.integer("axis", 1) % max(rank, 1)
    if rank == 0 and tensor_of(parameter).ndim:
        return squeeze(parameter)
    if not block:
        return aligned_at(parameter, rank, axis)
    if block < 0 or tensor_of(parameter).ndim != rank:
        raise ModelError(
            f"{node}: blocks of {block} elements need a scale and a zero point of rank {rank}, found "
            f"{tensor_of(parameter)}"
        )
    extent, blocks = (const_int(t.shape[axis]) for t in (node.type(), tensor_of(parameter)))
    if extent is not None and blocks is not None and blocks != -(-extent // block):
        raise ModelError(f"{node}: {extent} elements are not {blocks} blocks of {block}")
    spread = repeat(parameter, block, axis)
    return spread if extent is None or extent % block == 0 else strided_slice(spread, [0], [extent], [axis])


# Products


@converter("MatMulInteger", 10)
def _matmul_integer(node: OnnxNode) -> Node:
    return matmul_less_zeros(node[0], node[1], node.get(2), node.get(3))


@converter("QLinearMatMul", 10, 21)
def _qlinear_matmul(node: OnnxNode) -> Node:
    a, a_scale, a_zero, b, b_scale, b_zero, scale, zero = node.all
    sums = matmul_less_zeros(a, b, a_zero, b_zero)
    factor = multiply(cast(of_rows(a_scale), "float32"), cast(b_scale, "float32"))
    return quantize(multiply(cast(sums, "float32"), factor), scale, zero, tensor_of(zero).dtype)


# Convolutions


@converter("ConvInteger", 10)
def _conv_integer(node: OnnxNode) -> Node:
    return _convolution(node, node[0], node[1], node.get(2), node.get(3))


@converter("QLinearConv", 10)
def qlinear_conv(node: OnnxNode) -> Node:
    """A convolution of quantized numbers, and its bias, if it has one."""
    x, x_scale, x_zero, weight, w_scale, w_zero, scale, zero = (node[k] for k in range(8))
    sums = _convolution(node, x, weight, x_zero, w_zero)
    rank, bias = tensor_of(sums).ndim, node.get(8)
    if bias is not None:
        sums = add(sums, aligned_at(bias, rank, 1))
    of_filters = aligned_at(w_scale, rank, 1) if tensor_of(w_scale).ndim else w_scale
    factor = multiply(cast(x_scale, "float32"), cast(of_filters, "float32"))
    return quantize(multiply(cast(sums, "float32"), factor), scale, zero, tensor_of(zero).dtype)


def _convolution(node: OnnxNode, x: Node, weight: Node, x_zero: Node | None, w_zero: Node | None) -> Node:
    """The convolution of a node in int32 of x less its zero point by the weight less its own, which is one for all
    filters or one for each."""
    if w_zero is not None and tensor_of(w_zero).ndim:
        w_zero = node.finish(aligned_at(w_zero, tensor_of(x).ndim, 0))  # a constant stays one
    x, weight = with_known_channels(node, x, weight)
    if has_open_weight(x, weight):
        return convolution_of_run(node, _less_zero(x, x_zero), _less_zero(weight, w_zero))
    window = tensor_of(weight).shape[2:]
    check_kernel_shape(node, window)
    fill = float(x_zero.value.ravel()[0]) if isinstance(x_zero, Constant) else 0.0 if x_zero is None else x_zero
    x, options = same_padded(node, x, known_window(window), fill)
    groups = node.integer("group", 1)
    return conv_less_zeros(x, weight, x_zero, w_zero, node.shapes.inputs, groups=groups, **options)


def _less_zero(x: Node, zero: Node | None) -> Node:
    """Numbers less their zero point, in int32."""
    wide = cast(x, "int32")
    return wide if zero is None else subtract(wide, cast(zero, "int32"))
