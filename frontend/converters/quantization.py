"""ONNX's quantized operators: integers for real numbers, where real = (integer - zero point) · scale.

Products of 8-bit integers are left to ``nn.matmul`` and ``nn.conv``, which know no zero points. What these add is taken
off the sums: Σ (a - p)·(b - q) = Σ a·b - p·Σ b - q·Σ (a - p).
"""

from __future__ import annotations

import numpy as np

from ...base.dtype import DType, dtype
from ...base.errors import ModelError
from ...graph.node import Constant, Node, tensor_of
from ...ir.constants import const_int
from ...ops.definition.arguments import per_axis
from ...ops.families import reduce
from ...ops.families.binary import add, divide, multiply, subtract
from ...ops.families.cast import cast
from ...ops.families.conv.conv import conv
from ...ops.families.matmul.matmul import matmul
from ...ops.families.narrow import E8M0
from ...ops.families.pad import pad
from ...ops.families.repeat import broadcast_to_extents, repeat
from ...ops.families.reshape import expand_dims
from ...ops.families.select import where
from ...ops.families.slicing import strided_slice
from ...ops.families.unary import round as nearest
from ...ops.families.window import known_window, resolve_padding
from ..onnx_node import OnnxNode
from ..registry import converter
from ..tensors import element_type
from .convolution import check_kernel_shape, window_of
from .elementwise import aligned_at

VERSIONS = (10, 13, 19, 21, 23, 24, 25, 28)
MIDDLE_OF_BYTES = 128
"""Unsigned bytes with this zero point are signed ones without."""

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
    if kind.is_narrow and kind.holds_floats:
        scaled = divide(cast(node[0], precision), cast(scale, precision))
        if not _is_zero(zero):
            assert zero is not None
            scaled = add(scaled, cast(zero, precision))
        return cast(scaled, kind, saturate=node.flag("saturate", True))
    return quantized(node[0], scale, zero, kind, precision)


@converter("DequantizeLinear", *VERSIONS)
def _dequantize(node: OnnxNode) -> Node:
    """Convert DequantizeLinear; the result is in the dtype of the scale, unless the node says otherwise."""
    x, scale, zero = node[0], node[1], node.get(2)
    _check(node, tensor_of(x).dtype)
    to = tensor_of(scale).dtype
    if node.integer("output_dtype", 0):
        to = element_type(node.integer("output_dtype"), f"{node}: output_dtype")
    exact = "float32" if tensor_of(x).dtype.holds_floats else "int32"
    whole = cast(x, exact)
    if not _is_zero(zero):
        assert zero is not None
        whole = subtract(whole, cast(_along_axis(node, zero), exact))
    return cast(multiply(cast(whole, "float32"), cast(_along_axis(node, scale), "float32")), to)


def _check(node: OnnxNode, kind: DType) -> None:
    if not (kind.is_data_int or kind.is_narrow) or kind == E8M0:
        raise node.unsupported(f"quantization to {kind}")


def _along_axis(node: OnnxNode, parameter: Node) -> Node:
    """A scale or zero point as it broadcasts with x: of the whole, of each place on the axis, or of each block of
    places."""
    rank, block = node.rank, node.integer("block_size", 0)
    axis = node.integer("axis", 1) % max(rank, 1)
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


def quantized(x: Node, scale: Node, zero: Node | None, kind: DType, precision: str = "float32") -> Node:
    """round(x / scale) + zero, saturated, which the cast does."""
    scaled = cast(nearest(divide(cast(x, precision), cast(scale, precision))), "float32")
    return cast(scaled if zero is None else add(scaled, cast(zero, "float32")), kind)


# Products


@converter("MatMulInteger", 10)
def _matmul_integer(node: OnnxNode) -> Node:
    return integer_product(node[0], node[1], node.get(2), node.get(3))


@converter("QLinearMatMul", 10, 21)
def _qlinear_matmul(node: OnnxNode) -> Node:
    a, a_scale, a_zero, b, b_scale, b_zero, scale, zero = node.all
    sums = integer_product(a, b, a_zero, b_zero)
    factor = multiply(cast(of_rows(a_scale), "float32"), cast(b_scale, "float32"))
    return quantized(multiply(cast(sums, "float32"), factor), scale, zero, tensor_of(zero).dtype)


def integer_product(a: Node, b: Node, a_zero: Node | None, b_zero: Node | None) -> Node:
    """Σ (a - a_zero) · (b - b_zero) in int32; zero points are of all, or of each row of a and each column of b."""
    b, b_zero = _signed(b, b_zero)
    if tensor_of(a).ndim < 2 or tensor_of(b).ndim < 2:
        return matmul(_less_zero(a, a_zero), _less_zero(b, b_zero))
    result: Node = matmul(a, b)
    if not _is_zero(a_zero):
        assert a_zero is not None
        columns = reduce.sum(cast(b, "int32"), -2, keepdims=True)
        result = subtract(result, multiply(cast(of_rows(a_zero), "int32"), columns))
    if not _is_zero(b_zero):
        assert b_zero is not None
        rows = reduce.sum(_less_zero(a, None if a_zero is None else of_rows(a_zero)), -1, keepdims=True)
        result = subtract(result, multiply(rows, cast(b_zero, "int32")))
    return result


def of_rows(parameter: Node) -> Node:
    """A scale or zero point of each row, as a column; one of the whole stays as it is."""
    kind = tensor_of(parameter)
    return expand_dims(parameter, -1) if kind.ndim == 1 else parameter


def _less_zero(x: Node, zero: Node | None) -> Node:
    wide = cast(x, "int32")
    return wide if zero is None or _is_zero(zero) else subtract(wide, cast(zero, "int32"))


def _is_zero(zero: Node | None) -> bool:
    """Whether a zero point is known to be 0."""
    return zero is None or (isinstance(zero, Constant) and not zero.value.any())


def _signed(x: Node, zero: Node | None) -> tuple[Node, Node | None]:
    """Known unsigned bytes around 128 as signed bytes around 0."""
    if not (isinstance(x, Constant) and isinstance(zero, Constant) and x.value.dtype == np.uint8):
        return x, zero
    if (zero.value != MIDDLE_OF_BYTES).any():
        return x, zero
    return Constant((x.value ^ MIDDLE_OF_BYTES).view(np.int8), x.name), None


# Convolutions


@converter("ConvInteger", 10)
def _conv_integer(node: OnnxNode) -> Node:
    check_kernel_shape(node)
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
    return quantized(multiply(cast(sums, "float32"), factor), scale, zero, tensor_of(zero).dtype)


def _convolution(node: OnnxNode, x: Node, weight: Node, x_zero: Node | None, w_zero: Node | None) -> Node:
    """The convolution in int32 of x less its zero point by the weight less its own, which is one for all filters or one
    for each. Pads are real zeros."""
    weight, w_zero = _signed(weight, w_zero)
    rank, groups = tensor_of(x).ndim, node.integer("group", 1)
    options = window_of(node)
    if not _is_zero(w_zero):  # rare: the sums of windows would be a convolution of their own
        assert w_zero is not None
        per_filter = aligned_at(w_zero, rank, 0) if tensor_of(w_zero).ndim else w_zero
        return conv(_less_zero(x, x_zero), _less_zero(weight, per_filter), groups=groups, **options)
    if _is_zero(x_zero):
        return conv(x, weight, groups=groups, **options)
    assert x_zero is not None
    full = _padded(node, x, weight, x_zero)
    sums = conv(full, weight, groups=groups, **{**options, "padding": 0, "auto_pad": "NOTSET"})
    filters = reduce.sum(cast(weight, "int32"), range(1, rank))
    return subtract(sums, multiply(cast(x_zero, "int32"), aligned_at(filters, rank, 1)))


def _padded(node: OnnxNode, x: Node, weight: Node, zero: Node) -> Node:
    """x with its zero point around it, where the convolution has pads."""
    kind, options = tensor_of(x), window_of(node)
    rank = kind.ndim - 2
    window = known_window(tensor_of(weight).shape[2:])
    steps, spread = (per_axis(options[name], rank, name) for name in ("strides", "dilation"))
    pads = resolve_padding(kind.shape[2:], window, steps, spread, options["padding"], options["auto_pad"])
    if not any(pads):
        return x
    before, after = (0, 0, *pads[:rank]), (0, 0, *pads[rank:])
    if isinstance(zero, Constant):
        return pad(x, before, after, value=float(zero.value.ravel()[0]))
    one = Constant(np.ones((1,) * kind.ndim, np.uint8))
    ones = broadcast_to_extents(one, (1, 1, *kind.shape[2:]), node.shapes.inputs)
    return where(cast(pad(ones, before, after), "bool"), pad(x, before, after), zero)
