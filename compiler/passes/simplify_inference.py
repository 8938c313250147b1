"""Batch normalisation with constant statistics is a scale and a shift per channel; a convolution takes the scale in.

batch_norm(x) = x · a + b            a = scale / sqrt(variance + epsilon), b = bias - mean · a
batch_norm(conv(x, w) + c) = conv(x, w · a) + (c · a + b)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...graph.node import Call, Constant, Function, Node, tensor_of
from ...graph.visit import inputs, post_order, users, with_inputs
from ...ops.definition.registry import get_op, op_of
from ...ops.families.conv.attrs import ConvAttrs
from ...ops.families.conv.conv import CONVS

Array = npt.NDArray[Any]

ADD, MULTIPLY, BATCH_NORM = (get_op(name) for name in ("add", "multiply", "nn.batch_norm"))
CONV_OPS = tuple(op for op, _ in CONVS.values())


def simplify_inference(function: Function) -> Function:
    """The function without batch normalisations whose parameters are constants."""
    used_by = users(function.body)
    done: dict[Node, Node] = {}
    for node in post_order(function.body):
        rebuilt = with_inputs(node, tuple(done[n] for n in inputs(node)))
        if isinstance(node, Call) and isinstance(rebuilt, Call) and _is_constant_batch_norm(rebuilt):
            with np.errstate(all="ignore"):  # the batch norm itself would overflow as quietly
                rebuilt = _without_batch_norm(node, rebuilt, used_by)
        done[node] = rebuilt
    body = done[function.body]
    return function if body is function.body else replace(function, body=body)


def _is_constant_batch_norm(call: Call) -> bool:
    return call.op is BATCH_NORM and all(isinstance(a, Constant) for a in call.args[1:])


def _without_batch_norm(original: Call, call: Call, used_by: Mapping[Node, tuple[Node, ...]]) -> Node:
    x = call.args[0]
    parameters = (argument.value for argument in call.args[1:] if isinstance(argument, Constant))
    scale, bias, mean, variance = (value.astype(np.float64) for value in parameters)
    a = scale / np.sqrt(variance + call.attrs.epsilon)
    b = bias - mean * a
    alone = len(used_by[original.args[0]]) == 1
    match x:
        case Call(op=add_op, args=(Call() as conv, Constant() as shift)) if add_op is ADD and alone:
            c = _per_channel(shift, conv)
            (first, *_) = inputs(original.args[0])
            weight = _constant_weight(conv)
            if c is not None and weight is not None and len(used_by[first]) == 1:
                return _shifted(_scaled(conv, weight, a, call), c * a + b, call)
        case Call() if alone and (weight := _constant_weight(x)) is not None:
            return _shifted(_scaled(x, weight, a, call), b, call)
    return _shifted(MULTIPLY(x, _channel_constant(a, call), origin=call.origin), b, call)


def _constant_weight(call: Call) -> Array | None:
    """The weight of a convolution, if it is constant, and the channels are where batch norms have theirs."""
    if call.op not in CONV_OPS or not isinstance(call.args[1], Constant):
        return None
    attrs: ConvAttrs = call.attrs
    fits = attrs.out.names[1] == "C" and not attrs.out.is_blocked and not attrs.kernel.blocks("O")
    return call.args[1].value if fits else None


def _per_channel(shift: Constant, conv: Call) -> Array | None:
    """A constant that is added per channel, as a vector; None if it is something else."""
    rank = tensor_of(conv).ndim
    value = shift.value
    if value.ndim < rank:
        value = value.reshape((1,) * (rank - value.ndim) + value.shape)
    if rank < 2 or value.size != value.shape[1]:
        return None
    return value.reshape(-1).astype(np.float64)


def _scaled(conv: Call, weight: Array, a: Array, norm: Call) -> Call:
    """The convolution with output channel k multiplied by a[k], by way of its weight."""
    attrs = conv.attrs
    filters = attrs.kernel.position("O")
    factors = a.reshape(-1, *(1,) * (weight.ndim - 1 - filters))
    scaled: Array = np.empty_like(weight)  # multiplied in double precision, part by part, and rounded once
    np.multiply(weight, factors, out=scaled, casting="unsafe", dtype=np.float64)
    return op_of(conv)(conv.args[0], Constant(scaled), attrs=attrs, origin=(*conv.origin, *norm.origin))


def _shifted(x: Node, b: Array, norm: Call) -> Call:
    shifted = ADD(x, _channel_constant(b, norm), origin=() if isinstance(x, Call) and x.origin else norm.origin)
    return replace(shifted, value=norm.value)


def _channel_constant(values: Array, norm: Call) -> Constant:
    """Values per channel, shaped to broadcast against the normalised tensor."""
    x = tensor_of(norm)
    return Constant(values.reshape(-1, *(1,) * (x.ndim - 2)).astype(x.dtype.to_numpy()))
