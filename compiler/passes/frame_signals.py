"""A convolution of one channel along an open axis becomes a product of its windows with the filters.

Such are short-time Fourier transforms and filter banks of signals of any length, as exporters write them: hundreds of
filters as long as a window, far apart. Their positions fill no vectors, since they are strided; the filters of a
product do, and its weights are packed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...graph.node import Call, Constant, Function, Node, tensor_of
from ...graph.visit import inputs, post_order, with_inputs
from ...ir.constants import const_int
from ...ops.definition.registry import get_op
from ...ops.families.conv.attrs import ConvAttrs
from ...ops.families.fourier.frames import frames
from ...ops.families.matmul.matmul import matmul
from ...ops.families.pad import pad
from ...ops.families.reshape import squeeze
from ...ops.families.transpose import transpose

LEAST_WINDOW = 32
"""From so many elements on, summing up a window is worth a copy of it."""


def frame_signals(function: Function) -> Function:
    """The function with products for the convolutions of one channel, of open length, that these can stand for."""
    conv1d = get_op("nn.conv1d")
    done: dict[Node, Node] = {}
    for node in post_order(function.body):
        rebuilt = with_inputs(node, tuple(done[n] for n in inputs(node)))
        done[node] = rebuilt
        if isinstance(rebuilt, Call) and rebuilt.op is conv1d and isinstance(rebuilt.args[1], Constant):
            done[node] = _framed(rebuilt, rebuilt.args[0], rebuilt.args[1])
    body = done[function.body]
    return function if body is function.body else replace(function, body=body)


def _framed(call: Call, x: Node, weight: Constant) -> Node:
    """What stands for a call; the call itself, if it has several channels, a short window, or a known length."""
    attrs: ConvAttrs = call.attrs
    _, channels, window = weight.value.shape
    layouts = (attrs.data_layout, attrs.kernel_layout, str(attrs.out))
    if layouts != ("NCW", "OIW", "NCW") or channels != 1 or attrs.groups != 1:
        return call
    if const_int(tensor_of(call).shape[2]) is not None or window < LEAST_WINDOW or attrs.dilation != (1,):
        return call
    before, after = attrs.padding
    signal = transpose(pad(x, (0, 0, before), (0, 0, after)) if before or after else x, (0, 2, 1))
    rows = squeeze(frames(signal, window, attrs.strides[0]), [3])
    turned = Constant(np.ascontiguousarray(weight.value[:, 0].T), weight.name)
    made = transpose(matmul(rows, turned), (0, 2, 1))
    return replace(made, origin=call.origin, value=call.value) if made.type is call.type else call
