"""onnxruntime's weights of few bits, in blocks that have a scale and a zero point each: products with them, and rows of
them."""

from __future__ import annotations

import numpy as np

from ....graph.node import Constant, Node, tensor_of
from ....ops.families.binary import add, bitwise_and, divide, multiply, right_shift, subtract
from ....ops.families.cast import cast
from ....ops.families.concatenate import concatenate
from ....ops.families.gather import take
from ....ops.families.matmul.blockwise import blockwise_dense
from ....ops.families.matmul.matmul import dense
from ....ops.families.repeat import repeat
from ....ops.families.reshape import expand_dims, reshape
from ....ops.families.slicing import strided_slice
from ...integers import as_int64, from_the_end, integers
from ...onnx_node import OnnxNode
from ..elementwise import as_dtype
from ..run_time_operands import extent_as_number
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
    if node.integer("weight_prepacked", 0) or bits not in WIDTHS:
        raise node.unsupported(f"weights of {bits} bits, or packed for one processor,")
    kind, blocks = node.type().dtype, -(-columns // block)
    whole = strided_slice(reshape(unpacked(node[1], bits), (rows, blocks * block)), [0], [columns], [1])
    of_columns, bias = node.get(4), node.get(5)
    middle = _middle(node, rows, blocks, bits)
    if of_columns is None and tensor_of(middle).dtype == "uint8" and isinstance(node[1], Constant):
        scales = reshape(node[2], (rows, blocks))
        y = blockwise_dense(node[0], whole, middle, scales, bits, block)
        return y if bias is None else add(y, bias)

    def spread(x: Node) -> Node:
        """A number for each block as one for each column, whose block the file may say."""
        numbers = as_dtype(reshape(x, (rows, blocks)), kind)
        if of_columns is not None:
            return take(numbers, strided_slice(of_columns, [0], [columns], [0]), 1)
        return strided_slice(repeat(numbers, block, 1), [0], [columns], [1])

    weights = multiply(subtract(cast(whole, str(kind)), spread(middle)), spread(node[2]))
    y = dense(node[0], weights)
    return y if bias is None else add(y, bias)


def _middle(node: OnnxNode, rows: int, blocks: int, bits: int) -> Node:
    """The zero point of each block, [N, blocks]; packed like weights where it is of bytes."""
    given = node.get(3)
    if given is None:
        return Constant(np.full((rows, blocks), 1 << (bits - 1), np.uint8))
    if tensor_of(given).dtype == "uint8":
        packed = -(-blocks * bits // 8)
        given = strided_slice(unpacked(reshape(given, (rows, packed)), bits), [0], [blocks], [1])
    return given


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
    """Slices of a table, as real numbers: of integers of 4 bits, or of bytes that hold several unsigned ones along the
    last axis, whose zero point is the middle if none is given."""
    bits, block = node.integer("bits", 4), node.integer("block_size", 128)
    rank, kind, packed = node.rank, node.type(2).dtype, node.type().dtype == "uint8"
    axis, quantized = node.integer("gather_axis", 0) % rank, node.integer("quantize_axis", 1) % rank
    if packed and (bits not in WIDTHS or quantized != rank - 1 or axis == quantized):
        raise node.unsupported("a table of bytes that is not packed, or gathered, along the axis of its blocks,")
    if axis == quantized:
        return _gather_in_blocks(node, axis, block)
    along = quantized if quantized < axis else quantized + node.type(1).ndim - 1

    def taken(x: Node) -> Node:
        return take(x, node[1], axis)

    def numbers(x: Node) -> Node:
        return cast(unpacked(taken(x), bits) if packed else taken(x), str(kind))

    whole, scales, zeros = numbers(node[0]), taken(node[2]), node.get(3)
    columns, count = (node.numbers((tensor_of(x).shape[along],))[0] for x in (whole, scales))

    def spread(x: Node) -> Node:
        """A number for each block as one for each element."""
        return strided_slice(repeat(x, block, along), [0], [columns], [along])

    if zeros is not None:
        whole = subtract(whole, spread(strided_slice(numbers(zeros), [0], [count], [along])))
    elif packed:
        whole = subtract(whole, Constant(np.asarray(1 << (bits - 1), kind.to_numpy())))
    return multiply(whole, spread(scales))


def _gather_in_blocks(node: OnnxNode, axis: int, block: int) -> Node:
    """Elements of integers of 4 bits along the axis of their blocks, as real numbers."""
    kind, zeros = str(node.type(2).dtype), node.get(3)
    index = from_the_end(as_int64(node[1]), extent_as_number(node, node.type().shape[axis]))
    of_blocks = divide(index, integers(block))
    whole = cast(take(node[0], index, axis), kind)
    if zeros is not None:
        whole = subtract(whole, cast(take(zeros, of_blocks, axis), kind))
    return multiply(whole, take(node[2], of_blocks, axis))
