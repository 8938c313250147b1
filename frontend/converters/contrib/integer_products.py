"""onnxruntime's products of integers: exact sums in 32 bits, scaled to real numbers or to integers again."""

from __future__ import annotations

from dataclasses import replace

from ....base.dtype import dtype
from ....graph.node import Node, tensor_of
from ....ops.families.binary import add, divide, multiply
from ....ops.families.cast import cast
from ....ops.families.matmul.matmul import matmul
from ....ops.families.quantize import quantize
from ....ops.families.transpose import transpose
from ....ops.families.zero_points import matmul_less_zeros, of_rows
from ...onnx_node import OnnxNode
from ..elementwise import as_dtype
from ..linear import scaled
from ..quantization import dynamically_quantized, qlinear_conv
from .entering import contrib
from .products import WINDOW


@contrib("MatMulIntegerToFloat", inputs=7)
def _matmul_to_float(node: OnnxNode) -> Node:
    a, b, a_scale, b_scale = (node[k] for k in range(4))
    return real_product(matmul_less_zeros(a, b, node.get(4), node.get(5)), a_scale, b_scale, node.get(6))


def real_product(sums: Node, a_scale: Node, b_scale: Node, bias: Node | None) -> Node:
    """Sums of products of integers as real numbers, in the dtype of the scales; a has one scale or one a row, b one or
    one a column."""
    y = multiply(cast(sums, str(tensor_of(a_scale).dtype)), multiply(of_rows(a_scale), b_scale))
    return y if bias is None else add(y, bias)


@contrib("DynamicQuantizeMatMul", inputs=5)
def _dynamic_matmul(node: OnnxNode) -> Node:
    """The left operand is quantized to unsigned bytes between its smallest and largest number."""
    a, scale, zero = dynamically_quantized(node[0])
    return real_product(matmul_less_zeros(a, node[1], zero, node.get(3)), scale, node[2], node.get(4))


@contrib("QGemm", "alpha transA transB", inputs=9)
def _qgemm(node: OnnxNode) -> Node:
    """A bias is added to the sums, so that its scale is that of products. Without a zero point of its own the result is
    real, and divided by its scale if it has one."""
    a, b = (
        node.finish(transpose(node[k])) if node.flag(name) else node[k] for k, name in ((0, "transA"), (3, "transB"))
    )
    sums, bias = matmul_less_zeros(a, b, node[2], node[5]), node.get(6)
    if bias is not None:
        sums = add(sums, bias)
    y = real_product(sums, scaled(node[1], node.real("alpha", 1.0)), node[4], None)
    scale, zero = node.get(7), node.get(8)
    if scale is None or zero is None:
        return y if scale is None else divide(y, scale)
    return quantize(y, scale, zero, tensor_of(zero).dtype)


@contrib("MatMulInteger16", inputs=2)
def _matmul_of_words(node: OnnxNode) -> Node:
    kinds = [node.type(k).dtype for k in range(2)]
    wide = dtype("int32" if any(kind.is_signed for kind in kinds) else "uint32")
    return matmul(as_dtype(node[0], wide), as_dtype(node[1], wide))


@contrib("QLinearConv", f"channels_last {WINDOW}", inputs=9)
def _qlinear_conv(node: OnnxNode) -> Node:
    """Convert it as ONNX's; with ``channels_last`` x and the result have their channels last, the weights do not."""
    if not node.flag("channels_last"):
        return qlinear_conv(node)
    rank = node.rank
    first = transpose(node[0], (0, rank - 1, *range(1, rank - 1)))
    return transpose(qlinear_conv(replace(node, inputs=(first, *node.inputs[1:]))), (0, *range(2, rank), 1))
