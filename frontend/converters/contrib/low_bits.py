"""onnxruntime's weights of few bits, in blocks that have a scale and a zero point each: products with them, and rows of
them."""

from __future__ import annotations

import numpy as np

from ....graph.node import Constant, Node, tensor_of
from ....ops.families.binary import add, bitwise_and, multiply, right_shift, subtract
from ....ops.families.cast import cast
from ....ops.families.concatenate import concatenate
from ....ops.families.gather import take
from ....ops.families.matmul.matmul import dense
from ....ops.families.repeat import repeat
from ....ops.families.reshape import expand_dims, reshape
from ....ops.families.slicing import strided_slice
from ...onnx_node import OnnxNode
from ..elementwise import as_dtype
from .entering import contrib

WIDTHS = (1, 2, 4, 8)
"""How many bits a number may have, of those that share a byte."""


def unpacked(x: Node, bits: int) -> Node:
    """Bytes as the unsigned numbers of so many bits that they pack along the last axis, the lowest bits first."""
    if bits == 8:
        return x
    shape = tensor_of(x).shape
    low = Constant(np.asarray((1 << bits) - 1, np.uint8))
    shifted = [right_shift(x, Constant(np.asarray(start, np.uint8))) for start in range(0, 8, bits)]
    parts = [expand_dims(bitwise_and(part, low), (-1,)) for part in shifted]
    return reshape(concatenate(parts, -1), (*(0,) * (len(shape) - 1), -1))


@contrib("MatMulNBits", "K N accuracy_level bits block_size weight_prepacked", inputs=6)
def _matmul_of_bits(node: OnnxNode) -> Node:
    """x · Wᵀ, for a W of [N, K] that stands as [N, blocks, bytes of a block]; without a zero point it is the middle of
    the numbers. x is not rounded, whatever accuracy_level allows."""
    rows, columns, block = (node.integer(name) for name in ("N", "K", "block_size"))
    bits = node.integer("bits", 4)
    if node.integer("weight_prepacked", 0) or node.get(4) is not None or bits not in WIDTHS:
        raise node.unsupported(f"weights of {bits} bits, packed for one processor, or with groups out of order,")
    kind, blocks = node.type().dtype, -(-columns // block)
    whole = reshape(unpacked(node[1], bits), (rows, blocks, block))
    scales = as_dtype(reshape(node[2], (rows, blocks, 1)), kind)
    weights = multiply(subtract(cast(whole, str(kind)), _zeros(node, rows, blocks, bits)), scales)
    flat = strided_slice(reshape(weights, (rows, blocks * block)), [0], [columns], [1])
    y, bias = dense(node[0], flat), node.get(5)
    return y if bias is None else add(y, bias)


def _zeros(node: OnnxNode, rows: int, blocks: int, bits: int) -> Node:
    """The zero point of each block, [N, blocks, 1], or one for all; packed like weights where it is of bytes."""
    given, kind = node.get(3), node.type().dtype
    if given is None:
        return Constant(np.asarray(1 << (bits - 1), kind.to_numpy()))
    if tensor_of(given).dtype == "uint8":
        packed = -(-blocks * bits // 8)
        given = strided_slice(unpacked(reshape(given, (rows, packed)), bits), [0], [blocks], [1])
    return as_dtype(reshape(given, (rows, blocks, 1)), kind)


FLOATS4 = {
    0: (0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4, 0, -1 / 192, -2 / 3, -1, -1 / 3, -1 / 2, -1 / 6, -1 / 4),
    1: (
        *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635),
        *(-0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725),
        *(0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
    ),
}
"""The numbers that the 16 codes stand for, by quant_type: FP4 and NF4 of bitsandbytes. Source of the second: Dettmers
et al., QLoRA (2023), appendix E."""


@contrib("MatMulBnb4", "K N block_size quant_type training_mode transB", inputs=3)
def _matmul_of_floats4(node: OnnxNode) -> Node:
    """x · Wᵀ, for a W of [N, K] whose numbers are codes of 4 bits, the first of two in the high bits, times the largest
    magnitude of their block."""
    rows, columns, block = (node.integer(name) for name in ("N", "K", "block_size"))
    table = FLOATS4.get(node.integer("quant_type"))
    if table is None or not node.integer("transB", 1):
        raise node.unsupported("a quant_type other than 0 and 1, or a weight that is [K, N],")
    kind = node.type().dtype
    low_first = reshape(unpacked(reshape(node[1], (-1, 1)), 4), (-1, 2))
    codes = reshape(concatenate([strided_slice(low_first, [at], [at + 1], [1]) for at in (1, 0)], 1), (-1,))
    numbers = take(Constant(np.array(table, kind.to_numpy())), cast(codes, "int32"), 0)
    largest = repeat(as_dtype(reshape(node[2], (-1,)), kind), block, 0)
    whole, spread = (strided_slice(x, [0], [rows * columns], [0]) for x in (numbers, largest))
    return dense(node[0], reshape(multiply(whole, spread), (rows, columns)))


@contrib("GatherBlockQuantized", "bits block_size gather_axis quantize_axis", inputs=4)
def _gather_of_blocks(node: OnnxNode) -> Node:
    """Rows of a table of bytes, which hold numbers of ``bits`` along the last axis, as real numbers."""
    bits, block = node.integer("bits", 4), node.integer("block_size", 128)
    rank, kind = node.rank, node.type(2).dtype
    axis, quantized = node.integer("gather_axis", 0) % rank, node.integer("quantize_axis", 1) % rank
    if node.type().dtype != "uint8" or bits not in WIDTHS or quantized != rank - 1 or axis == quantized:
        raise node.unsupported("a table of no packed bytes, or blocks along another axis than the last,")
    whole = cast(unpacked(take(node[0], node[1], axis), bits), str(kind))
    extent = tensor_of(whole).shape[-1]
    columns = node.numbers((extent,))[0]

    def spread(x: Node) -> Node:
        """A number for each block as one for each element."""
        return strided_slice(repeat(x, block, -1), [0], [columns], [-1])

    zeros, scales = node.get(3), take(node[2], node[1], axis)
    if zeros is None:
        middle: Node = Constant(np.asarray(1 << (bits - 1), kind.to_numpy()))
    else:
        count = node.numbers(tensor_of(scales).shape[-1:])[0]
        own = strided_slice(unpacked(take(zeros, node[1], axis), bits), [0], [count], [-1])
        middle = spread(cast(own, str(kind)))
    return multiply(subtract(whole, middle), spread(scales))
