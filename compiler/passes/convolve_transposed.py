"""A transposed convolution by constant weights becomes a convolution, which has blocked layouts, panels and Winograd.

Output o = s·m + phase - pad collects x[m - shift] · w[phase + s·shift]. So the filters of all phases of m are those of
one convolution of stride 1, whose window is the shifts backwards; ``nn.depth_to_space`` puts phases beside each other.
That multiplies no zeros where the stride divides the window: other transposed convolutions stay.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...graph.node import Call, Constant, Function, Node, tensor_of
from ...graph.visit import rewrite
from ...ir.constants import const_int
from ...ir.simplify import simplify
from ...ops.families.conv.conv import conv
from ...ops.families.conv.transpose import CONV_TRANSPOSES, ConvTransposeAttrs
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
    stride = attrs.strides[0]
    flat = stride == 1 or (len(attrs.strides) == 2 and attrs.groups == 1)  # what depth_to_space takes
    if set(attrs.strides) != {stride} or not flat:
        return None
    axes = []
    each = zip(tensor_of(x).shape[2:], tensor_of(call).shape[2:], weight.value.shape[2:], strict=True)
    for (extent, outputs, window), dilation, before in zip(each, attrs.dilation, attrs.padding, strict=False):
        surplus = const_int(simplify(outputs - extent * stride))
        if 0 in (const_int(extent), const_int(outputs)) or surplus is None:
            return None
        axes.append(_Axis(window, stride, dilation, before, surplus))
    if not all(axis.suits for axis in axes):
        return None
    padding = [axis.before for axis in axes] + [axis.after for axis in axes]
    filters = _filters(weight, stride, attrs.groups)
    made = conv(x, filters, padding=padding, dilation=attrs.dilation, groups=attrs.groups)
    if stride > 1:
        made = depth_to_space(replace(made, origin=call.origin), stride)
        first, unused = [axis.padding % stride for axis in axes], [axis.unused for axis in axes]
        if any((*first, *unused)):
            ends = [-count if count else END for count in unused]
            made = strided_slice(replace(made, origin=call.origin), first, ends, axes=range(2, 2 + len(axes)))
    return replace(made, origin=call.origin, value=call.value)


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
