"""A convolution of one channel along an open axis becomes a product of its windows with the filters.

Such are short-time Fourier transforms and filter banks of signals of any length, as exporters write them: hundreds of
filters as long as a window, far apart. Their positions fill no vectors, since they are strided; the filters of a
product do, and its weights are packed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...graph.node import Call, Constant, Function, Node, tensor_of
from ...graph.visit import rewrite
from ...ir.constants import const_int
from ...ops.definition.registry import get_op
from ...ops.families.conv.attrs import ConvAttrs
from ...ops.families.fourier.frames import frames
from ...ops.families.matmul.matmul import matmul
from ...ops.families.pad import pad
from ...ops.families.reshape import squeeze
from ...ops.families.transpose import transpose

CONV1D = get_op("nn.conv1d")
LEAST_WINDOW = 32
"""From so many elements on, summing up a window is worth a copy of it."""


def frame_signals(function: Function) -> Function:
    """The function with products for the convolutions of one channel, of open length, that these can stand for."""
    body = rewrite(function.body, _framed)
    return function if body is function.body else replace(function, body=body)


def _framed(call: Node) -> Node | None:
    """What stands for a convolution of one channel with constant weights, a wide window and an open length."""
    if not (isinstance(call, Call) and call.op is CONV1D and isinstance(weight := call.args[1], Constant)):
        return None
    x = call.args[0]
    attrs: ConvAttrs = call.attrs
    if (attrs.data_layout, attrs.kernel_layout, str(attrs.out)) != ("NCW", "OIW", "NCW"):
        return None
    _, channels, window = weight.value.shape
    if channels != 1 or attrs.groups != 1:
        return None
    if const_int(tensor_of(call).shape[2]) is not None or window < LEAST_WINDOW or attrs.dilation != (1,):
        return None
    before, after = attrs.padding
    signal = transpose(pad(x, (0, 0, before), (0, 0, after)) if before or after else x, (0, 2, 1))
    rows = squeeze(frames(signal, window, attrs.strides[0]), [3])
    turned = Constant(np.ascontiguousarray(weight.value[:, 0].T), weight.name)
    made = transpose(matmul(rows, turned), (0, 2, 1))
    return replace(made, origin=call.origin, value=call.value) if made.type is call.type else None
