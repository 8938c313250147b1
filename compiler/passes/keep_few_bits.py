"""Constant weights of 4 and 2 bits stay so: they become real numbers where a product reads them.

x · ((codes - zeros) · scales)ᵀ   →   nn.blockwise_dense(x, codes, zeros, scales)

where a block of neighbours along the reduction has one zero point and one scale.

As real numbers, they would be eight times as much memory, by whose speed a product of a few rows is bounded.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.dataclass import dataclass
from ...base.dtype import FLOAT32
from ...graph.node import Call, Constant, Function, Node, tensor_of
from ...graph.visit import rewrite
from ...ops.definition.registry import get_op
from ...ops.families.matmul.blockwise import blockwise_dense
from ...ops.families.quantize import DEQUANTIZE
from .quantized_values import with_origin

DENSE, MATMUL = get_op("nn.dense"), get_op("nn.matmul")
TRANSPOSE, REPEAT, STRIDED_SLICE = get_op("transpose"), get_op("repeat"), get_op("strided_slice")
LEAST_BLOCK = 8
"""Smaller blocks have scales as large as their codes."""

Array = npt.NDArray[Any]


def keep_few_bits(function: Function) -> Function:
    """The function in which products by constants of few bits that are dequantized are products by these."""

    def kept(node: Node) -> Node | None:
        if not isinstance(node, Call) or node.op not in (DENSE, MATMUL):
            return None
        x, right = node.args
        kind = tensor_of(x).dtype
        weight = _weight(right, by_columns=node.op is DENSE and node.attrs.transposed)
        if weight is None or not kind.is_float or kind.storage_bits > FLOAT32.storage_bits:
            return None
        if tensor_of(node).dtype is not kind:
            return None
        codes, zeros, scales = map(Constant, (weight.codes, weight.zeros, weight.scales))
        return with_origin(blockwise_dense(x, codes, zeros, scales, weight.bits, weight.block), node, {x})

    body = rewrite(function.body, kept)
    return function if body is function.body else replace(function, body=body)


@dataclass(frozen=True, slots=True, eq=False)
class _Weight:
    """(codes - zeros) · scales, [N, K]."""

    codes: Array
    zeros: Array
    scales: Array
    bits: int
    block: int


@dataclass(frozen=True, slots=True, eq=False)
class _Blocks:
    """A scale or a zero point as a matrix that has an element for each block of ``size`` neighbours along an axis, and
    as many as there are, or one, along the other."""

    values: Array
    size: int

    def of_all(self, shape: tuple[int, ...]) -> Array:
        """An element for each of the blocks of a matrix of this shape."""
        return np.broadcast_to(self.values, shape)


def _weight(node: Node, by_columns: bool) -> _Weight | None:
    """The weight that a node dequantizes, [N, K] if it is ``by_columns``, else [K, N]; None if it is none of few
    bits."""
    match node:
        case Call(op=op, args=(turned,), attrs=attrs) if op is TRANSPOSE and attrs.axes == (1, 0):
            return _weight(turned, not by_columns)
        case Call(op=op, args=(Constant() as codes, scale, zero)) if op is DEQUANTIZE:
            kind = tensor_of(codes).dtype
            if kind.is_narrow and not kind.holds_floats and tensor_of(codes).ndim == 2:
                return _of_blocks(codes, scale, zero, 1 if by_columns else 0)
    return None


def _of_blocks(codes: Constant, scale: Node, zero: Node, axis: int) -> _Weight | None:
    """A weight that is reduced along an axis, if its scales and zero points are of blocks along that."""
    kind, extent = tensor_of(codes).dtype, codes.value.shape[axis]
    scales, zeros = (_blocks(parameter, axis, extent) for parameter in (scale, zero))
    if scales is None or zeros is None:
        return None
    block = min(scales.size, zeros.size)
    if block < LEAST_BLOCK or not {scales.size, zeros.size} <= {block, extent}:
        return None
    lowest = -(1 << (kind.bits - 1)) if kind.is_signed else 0

    def by_columns(values: Array) -> Array:
        return np.ascontiguousarray(values if axis == 1 else values.T)

    def unsigned(values: Array) -> Array:
        return by_columns((values.astype(np.int16) - lowest).astype(np.uint8))

    shape = tuple(-(-n // block) if k == axis else n for k, n in enumerate(codes.value.shape))
    spread = by_columns(scales.of_all(shape))
    return _Weight(unsigned(codes.value), unsigned(zeros.of_all(shape)), spread, kind.bits, block)


def _blocks(parameter: Node, axis: int, extent: int) -> _Blocks | None:
    """A scale or a zero point of blocks along an axis of this extent; None if it is not of such."""
    match parameter:
        case Constant(value) if value.ndim <= 2:
            whole = value.reshape((1,) * (2 - value.ndim) + value.shape)
            return _Blocks(whole, extent) if whole.shape[axis] == 1 else None
        case Call(op=op, args=(Constant(value),), attrs=attrs) if op is REPEAT and attrs.axis == axis:
            return _Blocks(value, attrs.times) if value.ndim == 2 else None
        case Call(op=op, args=(whole,), attrs=attrs) if op is STRIDED_SLICE:
            is_beginning = attrs.axes == (axis,) and attrs.starts == (0,) and attrs.steps == (1,)
            return _blocks(whole, axis, extent) if is_beginning else None
    return None
