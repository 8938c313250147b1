"""The windows of pools: their attributes, their taps, and what a tap reads."""

from __future__ import annotations

from collections.abc import Sequence

from ... import te
from ...base.dataclass import dataclass
from ...graph.layout import Layout, source_index
from ...ir.expr import Axis, Expr
from ...ir.makers import as_index
from ..definition.attrs import Attrs, all_non_negative, all_positive, attr, one_of, positive
from .window import LAYOUT, inside, spatial_axes

LONG_WINDOW = 16
"""Windows of more taps may be longer than the tensor: an exporter writes the mean over an image as one of its size."""
SHORT_IMAGE = 8
"""Images of fewer positions, all in one window, are folded as other windows are: they would fill no vector."""


@dataclass(frozen=True)
class WindowAttrs(Attrs):
    """The attributes of windows that pools share."""

    window: tuple[int, ...] = attr("extents of the window, per spatial axis", check=all_positive)
    strides: tuple[int, ...] = attr("step of the window, per spatial axis", check=all_positive)
    padding: tuple[int, ...] = attr("border around the spatial axes: all begins, then all ends", check=all_non_negative)
    dilation: tuple[int, ...] = attr("distance of the window's elements, per spatial axis", check=all_positive)
    ceil_mode: bool = attr("whether a last window may reach beyond the padding", default=False)

    @property
    def primal(self) -> Layout:
        """The layout of x with every axis whole: N, C, and as many spatial axes as the window has."""
        return Layout(f"NC{spatial_axes(len(self.window))}")


@dataclass(frozen=True)
class PoolAttrs(WindowAttrs):
    """The attributes of ``nn.max_pool``, and those that other pools share."""

    layout: str = attr(LAYOUT, default="")

    @property
    def data(self) -> Layout:
        """The layout of x and of the result; N, C, … unless another one is given."""
        return Layout(self.layout) if self.layout else self.primal


@dataclass(frozen=True)
class AvgPoolAttrs(PoolAttrs):
    """The attributes of ``nn.avg_pool``."""

    count_include_pad: bool = attr("whether padding counts as elements, of value 0", default=False)


@dataclass(frozen=True)
class LpPoolAttrs(PoolAttrs):
    """The attributes of ``nn.lp_pool``."""

    p: int = attr("exponent of the norm", default=2, check=positive)


@dataclass(frozen=True)
class MaxPoolIndicesAttrs(WindowAttrs):
    """The attributes of ``nn.max_pool_with_indices``, whose x is N, C, … always."""

    storage_order: int = attr(
        "indices count the spatial axes row-major (0) or column-major (1)", default=0, check=one_of(0, 1)
    )


def place_of(
    spatial: Sequence[Expr], attrs: WindowAttrs, o: Sequence[Expr], taps: Sequence[Axis]
) -> tuple[tuple[Expr, ...], Expr]:
    """Where a tap of an output's window reads, and whether that is inside the tensor."""
    rank = len(o)
    place = tuple(o[d] * attrs.strides[d] + taps[d] * attrs.dilation[d] - attrs.padding[d] for d in range(rank))
    return place, inside(place, spatial, attrs.padding, [attrs.ceil_mode] * rank)


def taps_of(attrs: WindowAttrs, spatial: Sequence[Expr]) -> list[Axis]:
    """The taps of windows; of a long one those only which may lie before the end of the tensor."""
    counts = [as_index(window) for window in attrs.window]
    for d, window in enumerate(attrs.window):
        if window > LONG_WINDOW:
            counts[d] = te.minimum(window, (spatial[d] + (attrs.padding[d] - 1)) // attrs.dilation[d] + 1)
    return [te.reduce_axis((0, count), name=f"r{d}") for d, count in enumerate(counts)]


def read_of(x: te.Tensor, attrs: PoolAttrs, index: Sequence[Axis], taps: Sequence[Axis]) -> tuple[Expr, Expr]:
    """What a tap of the window of the output at ``index`` reads, and whether that is inside the tensor."""
    n, c, *o = source_index([as_index(i) for i in index], attrs.primal, attrs.data)
    place, valid = place_of(spatial_of(x.shape, attrs), attrs, o, taps)
    return x[source_index((n, c, *place), attrs.data, attrs.primal)], valid


def spatial_of(shape: Sequence[Expr], attrs: PoolAttrs) -> tuple[Expr, ...]:
    """The spatial extents of a tensor in the layout."""
    return tuple(shape[attrs.data.position(axis)] for axis in spatial_axes(len(attrs.window)))


def power_of_magnitude(value: Expr, p: int) -> Expr:
    """The magnitude of a value to the power p, |value|ᵖ."""
    if p == 2:
        return value * value
    return te.abs(value) if p == 1 else te.power(te.abs(value), te.const(p, value.dtype))


def root(value: Expr, p: int) -> Expr:
    """The p-th root of a value that is not negative."""
    if p == 2:
        return te.sqrt(value)
    return value if p == 1 else te.power(value, te.const(1 / p, value.dtype))
