"""Weights of Winograd convolutions, transformed when a model is compiled, and where ``nn.conv2d`` may use them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ....base.aligned import aligned_empty
from ....base.dataclass import dataclass
from ....graph.layout import NCHW
from ....graph.types import TensorType
from ....ir.constants import const_int
from ....ir.makers import as_index
from ...definition.layout_rule import LayoutCandidate, Packed, ValueLayout
from .layouts import channel_block, data_layout, kernel_layout
from .open_winograd import OPEN_WINOGRAD_CONV2D
from .problem import ConvProblem
from .winograd import WINOGRAD_CONV2D
from .winograd_transform import SIZES, TAPS, filter_matrix
from .winograd_type import WinogradAttrs

MOST_CHANNELS = {2: 1 << 16, 4: 1 << 14, 6: 2048}
"""Sums over so many channels are within 1e-4 of the largest result, by size of tile, for normally distributed numbers:
the error grows with the root of the number of channels."""
PANEL_BLOCKS = (2, 1)
"""How many blocks of filters a panel may have."""
OPEN_GROUPS = (64, 32, 16, 8)
"""How many tiles an open image may be taken in groups of."""


@dataclass(frozen=True, slots=True)
class WinogradPlanes:
    """Transforms weights [K, C, 3, 3] to the planes that ``nn.winograd_conv2d`` takes, in panels of ``width`` filters.

    Computed in double precision, and rounded once.
    """

    size: int
    width: int

    def __call__(self, weight: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        filters, channels = weight.shape[:2]
        points = self.size + TAPS - 1
        panels = weight.reshape(filters // self.width, self.width, channels, TAPS**2)
        planes = aligned_empty((len(panels), points**2, channels, self.width), weight.dtype)
        for panel, made in zip(panels, planes, strict=True):  # one by one, for the sake of memory
            taps = np.ascontiguousarray(panel.transpose(2, 1, 0), np.float64)
            # Few terms and long rows: a sum of rows is faster than numpy's product, which starts threads for it.
            for plane, factors in zip(made, filter_matrix(self.size), strict=True):
                plane[:] = sum(factors[tap] * taps[tap] for tap in np.flatnonzero(factors))
        return planes.reshape(len(panels), points, points, channels, self.width)

    def type_of(self, weight: TensorType) -> TensorType:
        """The type of the planes: [K / width, m + 2, m + 2, C, width], of the same dtype."""
        filters, channels = (const_int(extent) or 0 for extent in weight.shape[:2])
        points = self.size + TAPS - 1
        extents = (filters // self.width, points, points, channels, self.width)
        return TensorType(tuple(map(as_index, extents)), weight.dtype)


def winograd_candidates(problem: ConvProblem, given: ValueLayout | None) -> Iterator[LayoutCandidate]:
    """The layout rule of a 2-D convolution that Winograd's algorithm serves: of 3×3 constant weights, with stride 1 and
    one group. x has its channels in blocks, those in which it is given, or of a vector."""
    if not _serves(problem):
        return
    filters, channels, lanes = problem.filters, problem.group_channels, problem.lanes
    block, data = channel_block(filters, lanes), channel_block(channels, lanes)
    if given is not None and given.primal is NCHW and given.layout is data_layout(2, given.layout.factor("C")):
        data = given.layout.factor("C") if given.layout.is_blocked else data
    if block is None or data is None or channels % data:
        return
    source, blocked = ValueLayout(NCHW, data_layout(2, data)), ValueLayout(NCHW, data_layout(2, block))
    weight = ValueLayout(problem.plain_kernel, kernel_layout(2, data, block))
    for size in SIZES:
        for width in (block * blocks for blocks in PANEL_BLOCKS):
            if channels <= MOST_CHANNELS[size] and filters % width == 0:
                make = WinogradPlanes(size, width)
                packed = Packed(make, make.type_of(problem.weight))
                attrs = WinogradAttrs(size=size, padding=problem.attrs.padding, data_layout=str(source))
                if problem.outputs is None:
                    for group in OPEN_GROUPS:
                        made = replace(attrs, out_layout=str(blocked), group=group)
                        forms = (source, packed, weight)
                        yield LayoutCandidate(forms, made, blocked, OPEN_WINOGRAD_CONV2D, sources=(0, 1, 1))
                else:
                    for out in (blocked, None):
                        made = replace(attrs, out_layout=str(out or NCHW))
                        yield LayoutCandidate((source, packed), made, out, WINOGRAD_CONV2D)


def _serves(problem: ConvProblem) -> bool:
    attrs = problem.attrs
    plain = problem.rank == 2 and problem.is_plain and problem.has_plain_kernel and attrs.groups == 1
    dense = set(attrs.strides) == set(attrs.dilation) == {1} and problem.window == (TAPS, TAPS)
    wide = problem.is_of_one_float and problem.dtype.bits >= 32
    return problem.constant_weight and plain and dense and wide and not problem.is_empty
