"""ONNX's operators on signals: transforms, and the matrix of mel filters. Windows are bodies of the standard."""

from __future__ import annotations

from types import NoneType

import numpy as np

from ...base.dtype import FLOAT64
from ...base.errors import ModelError
from ...graph.node import Constant, Node, tensor_of
from ...ir.constants import const_int
from ...ir.makers import as_index
from ...ops.families.binary import equal, less, maximum
from ...ops.families.cast import cast
from ...ops.families.fourier.dft import dft
from ...ops.families.fourier.frames import frames
from ...ops.families.gather import take
from ...ops.families.reshape import expand_dims, reshape
from ...ops.families.select import where
from ...ops.families.unary import exp, floor, log
from ..integers import as_vector
from ..onnx_node import OnnxNode
from ..registry import converter
from ..tensors import element_type
from .run_time_operands import extent_as_number, numbers_up_to
from .run_time_signal import dft_of_run, stft_of_run, with_components

MEL_CORNER = 700.0
"""A frequency f is proportional to log(1 + f / number(MEL_CORNER)) in mel."""


@converter("DFT", 17)
def _dft_17(node: OnnxNode) -> Node:
    return _dft(node, node.integer("axis", 1))


@converter("DFT", 20)
def _dft_20(node: OnnxNode) -> Node:
    if not isinstance(node.get(2), (Constant, NoneType)):
        return dft_of_run(node, with_components(node, node[0]), None)
    axis = node.constant_int(2, "the axis")
    return _dft(node, -2 if axis is None else axis)


def _dft(node: OnnxNode, axis: int) -> Node:
    if not -node.rank <= axis < node.rank:
        raise ModelError(f"{node}: there is no axis {axis} in {node.type()}")
    along, x = axis % node.rank, with_components(node, node[0])
    is_known = isinstance(node.get(1), (Constant, NoneType)) and const_int(node.type().shape[along]) is not None
    if not is_known and along < node.rank - 1:
        return dft_of_run(node, x, along)
    length = node.constant_int(1, "the length")
    return dft(x, length, axis, node.flag("inverse"), node.flag("onesided"))


@converter("STFT", 17)
def _stft(node: OnnxNode) -> Node:
    """The transform of each frame of a signal, times the window. A frame is as long as is said, else as the window,
    else as the signal."""
    signal = with_components(node, node[0]) if node.rank != 2 else expand_dims(node[0], 2)
    if not isinstance(node[1], Constant) or not _is_known(node, signal):
        return stft_of_run(node, node.finish(signal), node.flag("onesided", True))
    step, window = node.constant_int(1, "the step of frames"), node.get(2)
    length = node.constant_int(3, "the length of frames")
    if step is None or step < 1:
        raise ModelError(f"{node}: the step of frames must be 1 or more, found {step}")
    if length is None:
        shape = tensor_of(signal).shape[1:2] if window is None else tensor_of(window).shape
        (length,) = node.numbers(shape)
    taken: Node = frames(signal, length, step)
    if window is not None:
        if tensor_of(window).ndim != 1 or node.numbers(tensor_of(window).shape) != (length,):
            raise ModelError(f"{node}: the window must have the {length} elements of a frame, found {window.type}")
        taken = taken * reshape(window, [length, 1])
    return dft(taken, None, 2, onesided=node.flag("onesided", True))


def _is_known(node: OnnxNode, signal: Node) -> bool:
    """Whether the length of frames is known: it is given, else that of the window, else that of the signal."""
    if (length := node.get(3)) is not None:
        return isinstance(length, Constant)
    window = node.get(2)
    return const_int(tensor_of(signal).shape[1] if window is None else tensor_of(window).shape[0]) is not None


@converter("MelWeightMatrix", 17)
def _mel_weight_matrix(node: OnnxNode) -> Node:
    """Triangles over the bins of a spectrum, whose corners are at equal distances in mel: [bins, bands]."""
    kind = element_type(node.integer("output_datatype", 1), str(node))
    bands, length = (
        node.extents_of(as_vector(node[k], 1), what)[0] for k, what in enumerate(("bands", "the DFT's length"))
    )
    rate, low, high = (cast(reshape(node[k], []), FLOAT64) for k in (2, 3, 4))
    first, last = (log(f / number(MEL_CORNER) + number(1)) for f in (low, high))
    corners = cast(numbers_up_to(node, bands + 2), FLOAT64)
    step = (last - first) / cast(extent_as_number(node, as_index(bands + 2)), FLOAT64)
    frequencies = (exp(corners * step + first) - number(1)) * number(MEL_CORNER)
    corner = floor(cast(extent_as_number(node, as_index(length + 1)), FLOAT64) * frequencies / rate)
    lower, centre, upper = (take(corner, numbers_up_to(node, bands) + k, 0) for k in range(3))
    bins = expand_dims(cast(numbers_up_to(node, length // 2 + 1), FLOAT64), 1)
    rising = (bins - lower) / maximum(centre - lower, number(1))
    falling = (upper - bins) / maximum(upper - centre, number(1))
    slope = maximum(where(less(bins, centre), rising, falling), number(0))
    return cast(where(equal(bins, centre), number(1), slope), kind)


def number(value: float) -> Constant:
    """A constant of float64 without axes."""
    return Constant(np.array(value, np.float64))
