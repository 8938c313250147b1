"""Products and convolutions of dequantized bytes are sums of integers, exact in int32, scaled to real numbers behind.

Σ (a - p)·s · (b - q)·t = s·t · Σ (a - p)·(b - q), which is the sums, dequantized

What is quantized behind them, and what stands between, is their epilogue by the ordinary fusion. Weights stay bytes.
How bytes are multiplied is the strategy's choice, which knows the target.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...base.dataclass import dataclass
from ...graph.node import Call, Constant, Function, Node, tensor_of
from ...graph.visit import inputs, post_order, with_inputs
from ...ir.constants import const_int
from ...ops.definition.accumulate import is_byte
from ...ops.definition.registry import get_op
from ...ops.families.conv.conv import CONVS
from ...ops.families.quantize import dequantize
from ...ops.families.transpose import transpose
from ...ops.families.zero_points import conv_less_zeros, is_zero, matmul_less_zeros, signed
from .quantized_values import Array, Dequantized, dequantized, in_float32, with_origin

DENSE, MATMUL = get_op("nn.dense"), get_op("nn.matmul")
CONV_OPS = tuple(op for op, _ in CONVS.values())
MOST_TERMS = (2**31 - 1) // 255**2
"""A sum of more products of bytes less their zero points may be beyond int32."""


def integer_products(function: Function) -> Function:
    """The function with products and convolutions of integers in place of those of dequantized ones."""
    done: dict[Node, Node] = {}
    for node in post_order(function.body):
        rebuilt = with_inputs(node, tuple(done[n] for n in inputs(node)))
        if isinstance(rebuilt, Call) and rebuilt.op in (DENSE, MATMUL, *CONV_OPS):
            factors = [_of_bytes(argument) for argument in rebuilt.args]
            made = None if None in factors else _product(rebuilt, *[f for f in factors if f is not None])
            if made is not None:
                rebuilt = with_origin(made, rebuilt, {*rebuilt.args, *(f.x for f in factors if f is not None)})
        done[node] = rebuilt
    body = done[function.body]
    return function if body is function.body else replace(function, body=body)


def _of_bytes(node: Node) -> Dequantized | None:
    found = dequantized(node)
    return found if found is not None and is_byte(tensor_of(found.x).dtype) else None


def _product(call: Call, a: Dequantized, b: Dequantized) -> Node | None:
    made = _conv(call, a, b) if call.op in CONV_OPS else _matmul(call, a, b)
    return None if made is None else dequantize(made.sums, made.scale, dtype=tensor_of(call).dtype)


@dataclass(frozen=True, slots=True, eq=False)
class _Scaled:
    sums: Node
    scale: Constant


def _matmul(call: Call, a: Dequantized, b: Dequantized) -> _Scaled | None:
    left, right = tensor_of(a.x), tensor_of(b.x)
    terms = const_int(left.shape[-1]) if left.ndim else None
    if left.ndim < 2 or right.ndim < 2 or terms is None or terms > MOST_TERMS or not a.is_of_one:
        return None
    turned = call.op is DENSE and call.attrs.transposed
    column = right.ndim - 2 if turned else right.ndim - 1
    scales, zeros = (_along(value, right.ndim, column) for value in (b.scale, b.zero))
    scale = None if scales is None else in_float32(np.float64(a.scale.item()) * scales)
    if scale is None or zeros is None:
        return None
    weight = b.x
    if turned:
        weight = Constant(weight.value.T, weight.name) if isinstance(weight, Constant) else transpose(weight, (1, 0))
    zero = Constant(zeros.astype(b.zero.dtype))
    return _Scaled(matmul_less_zeros(a.x, weight, Constant(a.zero.reshape(())), zero), scale)


def _conv(call: Call, x: Dequantized, weight: Dequantized) -> _Scaled | None:
    attrs, kind = call.attrs, tensor_of(weight.x)
    plain = attrs.data is attrs.out and not attrs.data.is_blocked and str(attrs.data).startswith("NC")
    channels, *window = (const_int(extent) or 0 for extent in kind.shape[1:])
    if not plain or not str(attrs.kernel).startswith("OI") or attrs.kernel.is_blocked or not x.is_of_one:
        return None
    if channels * int(np.prod(window)) > MOST_TERMS:
        return None
    scales, zeros = (_along(value, kind.ndim, 0) for value in (weight.scale, weight.zero))
    scale = None if scales is None else in_float32(np.float64(x.scale.item()) * scales)
    if scale is None or zeros is None:
        return None
    if zeros.size > 1:
        zeros = zeros.reshape(-1, *(1,) * (kind.ndim - 1))
    filters, zero = signed(weight.x, Constant(zeros.astype(weight.zero.dtype)))
    if not is_zero(zero) and not isinstance(filters, Constant):
        return None
    if scale.value.size > 1:
        scale = Constant(scale.value.reshape(-1, *(1,) * attrs.rank))
    sums = conv_less_zeros(
        x.x,
        filters,
        Constant(x.zero.reshape(())),
        zero,
        groups=attrs.groups,
        strides=attrs.strides,
        padding=attrs.padding,
        dilation=attrs.dilation,
    )
    return _Scaled(sums, scale)


def _along(value: Array, rank: int, axis: int) -> Array | None:
    """A parameter of each place on an axis, in one axis, or of all, in none; None if it is of other axes."""
    if value.size == 1:
        return value.reshape(())
    shape = (1,) * (rank - value.ndim) + value.shape
    return value.reshape(-1) if value.size == shape[axis] else None
