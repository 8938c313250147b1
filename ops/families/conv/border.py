"""Taps of a window that lie beyond the border of x for a whole tile of the output: these need not be computed.

Where a window is dilated far, most of its taps are: of 3×3 taps 12 apart on an image of 14×14, 82 of 100 products are
of zeros. A tap is left out by one test for the tile, so that x needs no more padding than what a tile that is partly
inside reads beyond the border. Where a whole axis is one tile, as may be if its extent is open, taps are left out of
images that are narrower than the padding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from .... import te
from ....base.dataclass import dataclass
from ....ir.expr import Expr
from .attrs import ConvAttrs

WHOLE = math.inf
"""The tile of an axis that has all of its positions."""


@dataclass(frozen=True, slots=True)
class Border:
    """The border of a convolution with this window to ``outputs`` positions, which are computed in tiles of ``tile``.

    All are numbers for each spatial axis. Along an axis whose tile is None nothing is left out.
    """

    attrs: ConvAttrs
    window: tuple[int, ...]
    outputs: tuple[int, ...]
    tile: tuple[float | None, ...]

    @property
    def share(self) -> float:
        """The share of all pairs of a tap and a tile in which the tap reads x at all."""
        return math.prod(map(self._share, range(len(self.outputs))))

    @property
    def padding(self) -> tuple[int, ...]:
        """The padding that is read nevertheless, in the order of the attribute."""
        kept = [
            math.inf if size is None else (size - 1) * s for size, s in zip(self.tile, self.attrs.strides, strict=True)
        ]
        return tuple(int(min(pad, most)) for pad, most in zip(self.attrs.padding, (*kept, *kept), strict=True))

    def reads(self, output: Sequence[Expr], taps: Sequence[Expr]) -> list[Expr]:
        """The position in x, with that ``padding``, which the output at a position reads at a tap."""
        steps = zip(output, taps, self.attrs.strides, self.attrs.dilation, strict=True)
        left_out = [pad - kept for pad, kept in zip(self.attrs.padding, self.padding, strict=True)]
        return [
            o * stride + tap * dilation - out for (o, tap, stride, dilation), out in zip(steps, left_out, strict=False)
        ]

    def inside(
        self, output: Sequence[Expr], taps: Sequence[Expr], shape: Sequence[Expr], outputs: Sequence[Expr]
    ) -> Expr:
        """Whether the tile that an output is in reads any of x at a tap; ``shape`` and ``outputs`` have the spatial
        extents of x and the result."""
        attrs = self.attrs
        tests: list[Expr] = []
        for axis, (o, tap, size) in enumerate(zip(output, taps, self.tile, strict=True)):
            if size is None:
                continue
            stride, begin, end = attrs.strides[axis], attrs.padding[axis], attrs.padding[len(output) + axis]
            tile, count = (0, outputs[axis]) if size == WHOLE else (o // int(size) * int(size), int(size))
            first = tile * stride + tap * attrs.dilation[axis] - begin
            tests += [first >= -(count - 1) * stride] if begin else []
            tests += [first < shape[axis]] if end else []
        return te.all(*tests)

    def _share(self, axis: int) -> float:
        attrs, outputs, size = self.attrs, self.outputs[axis], self.tile[axis]
        if size is None:
            return 1.0
        pads = attrs.padding[axis], attrs.padding[len(self.outputs) + axis]
        count = int(min(size, outputs))
        return share_of_axis(outputs, self.window[axis], count, attrs.strides[axis], attrs.dilation[axis], *pads)


@lru_cache(maxsize=4096)
def share_of_axis(outputs: int, window: int, size: int, stride: int, dilation: int, begin: int, end: int) -> float:
    """The share of an axis of so many ``outputs``; the search for a tile asks for the same ones again and again."""
    # The least extent that gives so many outputs: a stride may leave some elements at the end unread.
    extent = (outputs - 1) * stride + (window - 1) * dilation + 1 - begin - end
    firsts = range(0, outputs, size)
    reached = sum(
        -(size - 1) * stride <= first * stride + tap * dilation - begin < extent
        for first in firsts
        for tap in range(window)
    )
    return reached / (len(firsts) * window)
