"""Products and convolutions of quantized numbers: sums of (a - p) · (b - q), exact in int32, of 8-bit integers a and b.

They are left to ``nn.matmul`` and ``nn.conv``, which know no zero points. What these add is taken off the sums:
Σ (a - p)·(b - q) = Σ a·b - p·Σ b - q·Σ (a - p). Known weights are signed where they can be, with a zero point of 0, and
known activations unsigned, as the words are that are multiplied: then sums over weights alone are to be taken off.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import Any, TypeAlias, Unpack

import numpy as np
import numpy.typing as npt

from ...base.dtype import INT8
from ...graph.node import Call, Constant, Node, tensor_of
from ...ir.makers import as_index
from ..definition.accumulate import is_byte
from ..definition.arguments import per_axis
from ..definition.registry import op_of
from . import reduce
from .binary import bitwise_xor, multiply, subtract
from .cast import bitcast, cast
from .conv.conv import ConvOptions, conv
from .matmul.matmul import matmul
from .pad import pad
from .repeat import broadcast_to_extents
from .reshape import expand_dims
from .select import where
from .window import known_window, resolve_padding

Array: TypeAlias = npt.NDArray[Any]
MIDDLE_OF_BYTES = 128
"""What unsigned bytes are more than the signed ones of the same numbers."""
_MOVES = frozenset({"expand_dims", "reshape", "strided_slice", "transpose"})
"""Operators that give elements of their first argument."""


def is_zero(zero: Node | None) -> bool:
    """Whether a zero point is known to be 0."""
    return zero is None or (isinstance(zero, Constant) and not zero.value.any())


def is_known(x: Node) -> bool:
    """Whether a value is a constant, turned or cut, which only compilation does where it is large."""
    return isinstance(x, Constant) or (isinstance(x, Call) and x.op.name in _MOVES and is_known(x.args[0]))


def of_rows(parameter: Node) -> Node:
    """A scale or zero point of each row, as a column; one of the whole stays as it is."""
    kind = tensor_of(parameter)
    return expand_dims(parameter, -1) if kind.ndim == 1 else parameter


def matmul_less_zeros(a: Node, b: Node, a_zero: Node | None, b_zero: Node | None) -> Node:
    """Σ (a - a_zero) · (b - b_zero) in int32 for matrices of 8-bit integers; zero points are of all, or of each row of
    a and each column of b."""
    b, b_zero = signed(b, b_zero)
    if tensor_of(a).ndim < 2 or tensor_of(b).ndim < 2:
        return matmul(_less_zero(a, a_zero), _less_zero(b, b_zero))
    if is_known(b):
        a, a_zero = _unsigned(a, a_zero)
    result: Node = matmul(a, b)
    if not is_zero(a_zero):
        assert a_zero is not None
        columns = reduce.sum(cast(b, "int32"), -2, keepdims=True)
        result = subtract(result, multiply(cast(of_rows(a_zero), "int32"), columns))
    if not is_zero(b_zero):
        assert b_zero is not None
        rows = reduce.sum(_less_zero(a, None if a_zero is None else of_rows(a_zero)), -1, keepdims=True)
        result = subtract(result, multiply(rows, cast(b_zero, "int32")))
    return result


def conv_less_zeros(
    x: Node,
    weight: Node,
    x_zero: Node | None,
    w_zero: Node | None,
    extent_sources: Sequence[Node] = (),
    **options: Unpack[ConvOptions],
) -> Node:
    """The convolution in int32 of x [N, C, …] less its zero point, which is one number, by the weight
    [K, C / groups, …] less its own, which broadcasts to it. Pads are real zeros. ``extent_sources`` are tensors that
    have the open extents of x, where its zero point is not known."""
    weight, w_zero = signed(weight, w_zero)
    split = _split_zero(weight, w_zero)
    if split is None:
        return conv(_less_zero(x, x_zero), _less_zero(weight, w_zero), **options)
    weight, rest = split
    if is_known(weight):
        x, x_zero = _unsigned(x, x_zero)
    if is_zero(x_zero):
        return _sums(x, weight, rest, options)
    assert x_zero is not None
    full = _padded(x, weight, x_zero, extent_sources, options)
    sums = _sums(full, weight, rest, {**options, "padding": 0, "auto_pad": "NOTSET"})
    rank = tensor_of(x).ndim
    wide = cast(weight, "int32")
    filters = reduce.sum(wide if rest is None else subtract(wide, Constant(rest)), range(1, rank))
    return subtract(sums, multiply(cast(x_zero, "int32"), expand_dims(filters, range(2 - rank, 0))))


def _split_zero(weight: Node, zero: Node | None) -> tuple[Node, Array | None] | None:
    """Weights of 8 bits, signed where they are known, and what is left to take off them, as int32 that broadcasts to
    them; None where zero points of weights, or the weights that have some, are not known."""
    if is_zero(zero):
        return weight, None
    if not isinstance(weight, Constant) or not isinstance(zero, Constant) or not is_byte(tensor_of(weight).dtype):
        return None
    less = 0 if tensor_of(weight).dtype is INT8 else MIDDLE_OF_BYTES
    shifted = (weight.value.astype(np.int16) - less).astype(np.int8)
    return Constant(shifted, weight.name), np.asarray(zero.value.astype(np.int32) - less)


def _sums(x: Node, weight: Node, rest: Array | None, options: ConvOptions) -> Node:
    """The convolution of x by the weight less the rest of its zero points, by which the sums of windows are multiplied.
    Those of one group are the same for all filters."""
    sums = conv(x, weight, **options)
    if rest is None:
        return sums
    kind = tensor_of(weight)
    filters = as_index(1) if options.get("groups", 1) == 1 else kind.shape[0]
    ones = Constant(np.ones([int(extent) for extent in (filters, *kind.shape[1:])], np.int8))
    of_filters = rest.reshape(rest.shape[0], *[1] * (kind.ndim - 2)) if rest.size > 1 else rest.reshape(())
    return subtract(sums, multiply(conv(x, ones, **options), Constant(of_filters)))


def _less_zero(x: Node, zero: Node | None) -> Node:
    wide = cast(x, "int32")
    return wide if zero is None or is_zero(zero) else subtract(wide, cast(zero, "int32"))


def signed(x: Node, zero: Node | None) -> tuple[Node, Node | None]:
    """Known bytes less their known zero point, as signed bytes, if all fit; else as they are. Those of a constant that
    is turned or cut are known, too, where one zero point is that of all."""
    if not isinstance(zero, (Constant, NoneType)):
        return x, zero
    if isinstance(x, Constant):
        return _signed_constant(x, zero)
    of_all = None if is_zero(zero) else zero
    if not isinstance(x, Call) or not is_known(x) or (of_all is not None and of_all.value.size > 1):
        return x, zero
    less, left = signed(x.args[0], of_all)
    return (x, zero) if less is x.args[0] else (op_of(x)(less, attrs=x.attrs), left)


def _signed_constant(x: Constant, zero: Constant | None) -> tuple[Node, Constant | None]:
    if zero is None or not zero.value.any():
        if tensor_of(x).dtype is INT8 or (x.value > 127).any():
            return x, zero
        return Constant(x.value.view(np.int8), x.name), None
    less = x.value.astype(np.int16) - zero.value.astype(np.int16)
    fits = less.min(initial=0) >= -128 and less.max(initial=0) <= 127
    return (Constant(less.astype(np.int8), x.name), None) if fits else (x, zero)


def _unsigned(x: Node, zero: Node | None) -> tuple[Node, Node | None]:
    """Signed bytes, of a zero point that is known, as unsigned ones of the same numbers."""
    if tensor_of(x).dtype is not INT8 or not (zero is None or isinstance(zero, Constant)):
        return x, zero
    turned = bitcast(bitwise_xor(x, Constant(np.asarray(-MIDDLE_OF_BYTES, np.int8))), "uint8")
    return turned, unsigned_zero(Constant(np.asarray(0, np.int8)) if zero is None else zero)


def unsigned_zero(zero: Constant) -> Constant:
    """The zero point that the numbers of signed bytes have as unsigned ones."""
    return Constant(np.asarray(zero.value.astype(np.int16) + MIDDLE_OF_BYTES).astype(np.uint8))


def _padded(x: Node, weight: Node, zero: Node, sources: Sequence[Node], options: ConvOptions) -> Node:
    """x with its zero point around it, where the convolution has pads."""
    kind = tensor_of(x)
    rank = kind.ndim - 2
    window = known_window(tensor_of(weight).shape[2:])
    steps = per_axis(options.get("strides", 1), rank, "strides")
    spread = per_axis(options.get("dilation", 1), rank, "dilation")
    given, chosen = options.get("padding", 0), options.get("auto_pad", "NOTSET")
    pads = resolve_padding(kind.shape[2:], window, steps, spread, given, chosen)
    if not any(pads):
        return x
    before, after = (0, 0, *pads[:rank]), (0, 0, *pads[rank:])
    if isinstance(zero, Constant):
        return pad(x, before, after, value=float(zero.value.ravel()[0]))
    one = Constant(np.ones((1,) * kind.ndim, np.uint8))
    ones = broadcast_to_extents(one, (1, 1, *kind.shape[2:]), sources)
    return where(cast(pad(ones, before, after), "bool"), pad(x, before, after), zero)
