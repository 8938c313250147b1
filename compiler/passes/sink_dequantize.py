"""What only moves elements, or chooses among them, is done with integers, and what is read then dequantized.

move(dequantize(x))                  = dequantize(move(x)), for one scale and one zero point
concatenate(dequantize(x), …)        = dequantize(concatenate(x, …)), if all have the same
max_pool(dequantize(x))              = dequantize(max_pool(x)), for a scale above 0
quantize(dequantize(x))              = x, if both are by the same scale and zero point

Integers are a quarter of the bytes, and products find them where they are read. What is quantized and then dequantized
again stays, as that rounds and clips.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...base.dtype import FLOAT32
from ...graph.node import Call, Constant, Function, Node, tensor_of
from ...graph.visit import inputs, post_order, with_inputs
from ...ops.definition.registry import get_op, op_of
from ...ops.families.pool import MAX_POOL
from ...ops.families.quantize import dequantize
from .quantized_values import Array, Dequantized, dequantized, is_quantize, same_numbers, with_origin

CONCATENATE, TRANSPOSE = get_op("concatenate"), get_op("transpose")
RESHAPES = tuple(get_op(name) for name in ("reshape", "squeeze", "expand_dims"))
MOVES = (
    *RESHAPES,
    TRANSPOSE,
    *(get_op(name) for name in ("identity", "strided_slice", "split_part", "open_slice", "take")),
    *(get_op(name) for name in ("broadcast_to", "tile", "nn.depth_to_space", "nn.space_to_depth")),
)
"""What gives elements of its first argument, whatever they are."""


def sink_dequantize(function: Function) -> Function:
    """The function whose moves are of integers where their arguments are dequantized."""
    done: dict[Node, Node] = {}
    for node in post_order(function.body):
        rebuilt = with_inputs(node, tuple(done[n] for n in inputs(node)))
        if isinstance(rebuilt, Call):
            done[node] = _sunk(rebuilt)
        else:
            done[node] = rebuilt
    body = done[function.body]
    return function if body is function.body else replace(function, body=body)


def _sunk(call: Call) -> Node:
    found = [dequantized(a) for a in call.args]
    if not found or found[0] is None:
        return call
    made = _of_integers(call, found[0], found[1:])
    known = {*call.args, *(part.x for part in found if part is not None)}
    return call if made is None else with_origin(made, call, known)


def _of_integers(call: Call, first: Dequantized, rest: Sequence[Dequantized | None]) -> Node | None:
    if is_quantize(call):
        return first.x if _undoes(call, first) else None
    if call.op is CONCATENATE:
        parts = [part for part in rest if part is not None and same_numbers(part, first)]
        if len(parts) == len(rest):
            return first.of(op_of(call)(first.x, *(part.x for part in parts), attrs=call.attrs))
    elif call.op is TRANSPOSE and not first.is_of_one:
        return _transposed(call, first)
    elif first.is_of_one and (call.op in MOVES or (call.op is MAX_POOL and first.scale.item() > 0)):
        shapes = [argument if part is None else part.x for argument, part in zip(call.args[1:], rest, strict=True)]
        return first.of(_moved(call, first.x, shapes))
    return None


def _moved(call: Call, x: Node, rest: Sequence[Node]) -> Node:
    """The call of integers; a constant that is only given other axes is so now."""
    made = op_of(call)(x, *rest, attrs=call.attrs)
    shape = tensor_of(made).static_shape
    if isinstance(x, Constant) and call.op is TRANSPOSE:
        return Constant(x.value.transpose(call.attrs.axes), x.name)
    if isinstance(x, Constant) and call.op in RESHAPES and shape is not None:
        return Constant(x.value.reshape(shape), x.name)
    return made


def _transposed(call: Call, found: Dequantized) -> Node:
    """Scales and zero points of channels go with these."""
    rank = tensor_of(call).ndim

    def turned(value: Array) -> Constant:
        return Constant(value.reshape((1,) * (rank - value.ndim) + value.shape).transpose(call.attrs.axes))

    x = _moved(call, found.x, ())
    return dequantize(x, turned(found.scale), turned(found.zero), found.call.attrs.dtype)


def _undoes(call: Call, found: Dequantized) -> bool:
    """Whether what is quantized are the numbers that integers of the same type stand for."""
    _, scale, zero = call.args
    kind = tensor_of(found.x).dtype
    if not (isinstance(scale, Constant) and isinstance(zero, Constant)) or tensor_of(call).dtype is not kind:
        return False
    if kind.bits > 16 or call.attrs.precision != "float32" or tensor_of(found.call).dtype is not FLOAT32:
        return False
    with np.errstate(all="ignore"):
        largest = np.abs(found.scale.astype(np.float32)) * np.float32(1 << 17)
    exact = np.all(np.isfinite(largest)) and np.all(found.scale > 0)
    same = scale.value.dtype == found.scale.dtype and _equal(scale.value, found.scale)
    return bool(exact and same and _equal(zero.value, found.zero))


def _equal(a: Array, b: Array) -> bool:
    return np.array_equal(a, b) or (a.size == b.size == 1 and a.item() == b.item())
