"""A transposed convolution by constant weights becomes a convolution, which has blocked layouts, panels and Winograd.

Output o = s·m + phase - pad collects x[m - shift] · w[phase + s·shift]. So the filters of all phases of m are those of
one convolution of stride 1, whose window is the shifts backwards; ``nn.depth_to_space`` puts phases beside each other.
That multiplies no zeros where the stride divides the window. Of others each phase has a convolution of its own, where
extents are open; those of known extents stay, for which there is an implementation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from ...base.dataclass import dataclass
from ...graph.node import Call, Constant, Function, Node, tensor_of
from ...graph.visit import rewrite
from ...ir.constants import const_int
from ...ir.simplify import simplify
from ...ops.definition.extent_formulas import extent_of_x
from ...ops.families.concatenate import concatenate
from ...ops.families.conv.conv import conv
from ...ops.families.conv.transpose import CONV_TRANSPOSES
from ...ops.families.conv.transpose_definition import ConvTransposeAttrs
from ...ops.families.reshape import RESHAPE, ReshapeAttrs, expand_dims
from ...ops.families.slicing import END, strided_slice
from ...ops.families.space_depth import depth_to_space

OPS = tuple(CONV_TRANSPOSES.values())


def convolve_transposed(function: Function) -> Function:
    """The function with convolutions for the transposed ones that these can stand for."""
    body = rewrite(function.body, _convolved)
    return function if body is function.body else replace(function, body=body)


def _convolved(call: Node) -> Node | None:
    """What stands for a transposed convolution, if its window, strides and padding allow it."""
    if not (isinstance(call, Call) and call.op in OPS and isinstance(weight := call.args[1], Constant)):
        return None
    x = call.args[0]
    attrs: ConvTransposeAttrs = call.attrs
    axes = []
    each = zip(tensor_of(x).shape[2:], tensor_of(call).shape[2:], weight.value.shape[2:], strict=True)
    steps = zip(each, attrs.strides, attrs.dilation, attrs.padding, strict=False)
    for (extent, outputs, window), stride, dilation, before in steps:
        surplus = const_int(simplify(outputs - extent * stride))
        if 0 in (const_int(extent), const_int(outputs)) or surplus is None:
            return None
        axes.append(_Axis(window, stride, dilation, before, surplus))
    strides = set(attrs.strides)
    flat = strides == {1} or (len(axes) == 2 and len(strides) == 1 and attrs.groups == 1)  # as depth_to_space takes it
    is_open = None in map(const_int, tensor_of(x).shape[2:])
    if flat and all(axis.suits for axis in axes):
        made = _at_once(call, x, weight, axes)
    elif is_open and all(axis.suits_phase(phase) for axis in axes for phase in range(axis.stride)):
        made = _phase_by_phase(call, x, weight, axes)
    else:
        return None
    if strides != {1}:
        first, unused = [axis.padding % axis.stride for axis in axes], [axis.unused for axis in axes]
        if any((*first, *unused)):
            ends = [-count if count else END for count in unused]
            made = strided_slice(replace(made, origin=call.origin), first, ends, axes=range(2, 2 + len(axes)))
    return replace(made, origin=call.origin, value=call.value)


def _at_once(call: Call, x: Node, weight: Constant, axes: Sequence[_Axis]) -> Call:
    """All phases by one convolution."""
    attrs: ConvTransposeAttrs = call.attrs
    stride = axes[0].stride
    padding = [axis.before for axis in axes] + [axis.after for axis in axes]
    filters = _filters(weight, stride, attrs.groups)
    made = conv(x, filters, padding=padding, dilation=attrs.dilation, groups=attrs.groups)
    return made if stride == 1 else depth_to_space(replace(made, origin=call.origin), stride)


def _phase_by_phase(call: Call, x: Node, weight: Constant, axes: Sequence[_Axis]) -> Call:
    """Each phase by a convolution; then they are put beside each other, axis by axis."""
    attrs: ConvTransposeAttrs = call.attrs
    made: dict[tuple[int, ...], Call] = {}
    for phases in product(*(range(axis.stride) for axis in axes)):
        each = list(zip(axes, phases, strict=True))
        padding = [axis.before_phase(phase) for axis, phase in each] + [axis.after_phase(phase) for axis, phase in each]
        taps: tuple[Any, ...] = (..., *(slice(phase, None, axis.stride) for axis, phase in each))
        filters = _filters(Constant(weight.value[taps], weight.name), 1, attrs.groups)
        of_phase = conv(x, filters, padding=padding, dilation=attrs.dilation, groups=attrs.groups)
        made[phases] = replace(of_phase, origin=call.origin)
    for d in reversed(range(len(axes))):
        apart = made
        made = {
            outer: _interleaved([apart[(*outer, phase)] for phase in range(axes[d].stride)], 2 + d, call)
            for outer in product(*(range(axis.stride) for axis in axes[:d]))
        }
    return made[()]


def _interleaved(parts: Sequence[Call], axis: int, call: Call) -> Call:
    """Elements of several tensors in turn, along an axis."""
    if len(parts) == 1:
        return parts[0]
    apart = [replace(expand_dims(part, axis + 1), origin=call.origin) for part in parts]
    beside = replace(concatenate(apart, axis + 1), origin=call.origin)
    extents = [
        extent_of_x(a) if number is None else number for a, number in enumerate(map(const_int, tensor_of(beside).shape))
    ]
    merged = RESHAPE(beside, attrs=ReshapeAttrs((*extents[:axis], -1, *extents[axis + 2 :])))
    return replace(merged, origin=call.origin)


@dataclass(frozen=True, slots=True)
class _Axis:
    """A spatial axis of a transposed convolution, whose outputs 0 and up are at m from ``padding // stride`` up. There
    are ``surplus`` more of them than ``stride`` times the inputs, of which any number may be."""

    window: int
    stride: int
    dilation: int
    padding: int
    surplus: int

    @property
    def suits(self) -> bool:
        """Whether each phase has as many taps as any other, and no input is cut off."""
        even = self.window % self.stride == 0 and 1 in (self.stride, self.dilation)
        return even and self.before >= 0 and self.after >= 0

    def suits_phase(self, phase: int) -> bool:
        """Whether a phase has a tap, and no input is cut off of it."""
        even = phase < self.window and 1 in (self.stride, self.dilation)
        return even and self.before_phase(phase) >= 0 and self.after_phase(phase) >= 0

    def before_phase(self, phase: int) -> int:
        """The padding at the begin of the convolution for a phase by itself."""
        return (math.ceil((self.window - phase) / self.stride) - 1) * self.dilation - self.padding // self.stride

    def after_phase(self, phase: int) -> int:
        """The padding at the end of that convolution."""
        return self.more + self.padding // self.stride

    @property
    def reach(self) -> int:
        """The largest shift."""
        return (self.window // self.stride - 1) * self.dilation

    @property
    def before(self) -> int:
        """The padding of the convolution at the begin: the first m reads x from m - ``reach`` on."""
        return self.reach - self.padding // self.stride

    @property
    def more(self) -> int:
        """How many more m there are than inputs."""
        return (self.padding + self.surplus - 1) // self.stride - self.padding // self.stride + 1

    @property
    def after(self) -> int:
        """The padding of the convolution at the end."""
        return self.more + self.reach - self.before

    @property
    def unused(self) -> int:
        """How many elements the phases have behind the last output."""
        return self.more * self.stride - self.padding % self.stride - self.surplus


def _filters(weight: Constant, stride: int, groups: int) -> Constant:
    """[C, K / groups, window…] as [phases · K, C / groups, shifts backwards…]; of several groups there is one phase."""
    channels, filters, *window = weight.value.shape
    rank = len(window)
    cut = [part for extent in window for part in (extent // stride, stride)]
    taps = weight.value.reshape(groups, channels // groups, filters, *cut)
    shifts, phases = [3 + 2 * d for d in range(rank)], [4 + 2 * d for d in range(rank)]
    turned = np.flip(taps, tuple(shifts)).transpose(*phases, 0, 2, 1, *shifts)
    count = groups * filters * stride**rank
    made = turned.reshape(count, channels // groups, *(extent // stride for extent in window))
    return Constant(np.ascontiguousarray(made), weight.name)
