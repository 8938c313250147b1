"""The attributes of ``nn.conv1d``, ``nn.conv2d`` and ``nn.conv3d``, which all implementations read."""

from __future__ import annotations

from typing import ClassVar

from ....base.dataclass import dataclass
from ....graph.layout import Layout
from ...definition.accumulate import OUT_DTYPE
from ...definition.attrs import Attrs, all_non_negative, all_positive, attr, inherited, optional, positive


@dataclass(frozen=True, kw_only=True)
class ConvAttrs(Attrs):
    """The attributes of a convolution of any rank; the class of each rank has the defaults."""

    strides: tuple[int, ...] = attr("step of the window, per spatial axis", check=all_positive)
    padding: tuple[int, ...] = attr("zeros around the spatial axes: all begins, then all ends", check=all_non_negative)
    dilation: tuple[int, ...] = attr("distance of the window's elements, per spatial axis", check=all_positive)
    groups: int = attr("number of groups that the channels are split in", default=1, check=positive)
    channels: int | None = attr(
        "number of filters; None: as many as weight has. Fewer, if weight has them in blocks and fills the last one up",
        None,
        optional(positive),
    )
    kernel_size: tuple[int, ...] | None = attr("extents of the window; None: weight's", None, optional(all_positive))
    data_layout: str = attr("layout of x")
    kernel_layout: str = attr("layout of weight; O are the filters, I the channels of a group")
    out_layout: str = attr("layout of the result; empty: that of x", default="")
    out_dtype: str = attr(OUT_DTYPE, default="")

    rank: ClassVar[int]
    """The number of spatial axes."""

    @property
    def data(self) -> Layout:
        """The layout of x."""
        return Layout(self.data_layout)

    @property
    def kernel(self) -> Layout:
        """The layout of the weight."""
        return Layout(self.kernel_layout)

    @property
    def out(self) -> Layout:
        """The layout of the result."""
        return Layout(self.out_layout or self.data_layout)


@dataclass(frozen=True, kw_only=True)
class Conv1DAttrs(ConvAttrs):
    """The attributes of ``nn.conv1d``: one spatial axis, W."""

    rank = 1

    strides: tuple[int, ...] = inherited(ConvAttrs, "strides", default=(1,))
    padding: tuple[int, ...] = inherited(ConvAttrs, "padding", default=(0, 0))
    dilation: tuple[int, ...] = inherited(ConvAttrs, "dilation", default=(1,))
    data_layout: str = inherited(ConvAttrs, "data_layout", default="NCW")
    kernel_layout: str = inherited(ConvAttrs, "kernel_layout", default="OIW")


@dataclass(frozen=True, kw_only=True)
class Conv2DAttrs(ConvAttrs):
    """The attributes of ``nn.conv2d``: two spatial axes, H and W."""

    rank = 2

    strides: tuple[int, ...] = inherited(ConvAttrs, "strides", default=(1, 1))
    padding: tuple[int, ...] = inherited(ConvAttrs, "padding", default=(0, 0, 0, 0))
    dilation: tuple[int, ...] = inherited(ConvAttrs, "dilation", default=(1, 1))
    data_layout: str = inherited(ConvAttrs, "data_layout", default="NCHW")
    kernel_layout: str = inherited(ConvAttrs, "kernel_layout", default="OIHW")


@dataclass(frozen=True, kw_only=True)
class Conv3DAttrs(ConvAttrs):
    """The attributes of ``nn.conv3d``: three spatial axes, D, H and W."""

    rank = 3

    strides: tuple[int, ...] = inherited(ConvAttrs, "strides", default=(1, 1, 1))
    padding: tuple[int, ...] = inherited(ConvAttrs, "padding", default=(0, 0, 0, 0, 0, 0))
    dilation: tuple[int, ...] = inherited(ConvAttrs, "dilation", default=(1, 1, 1))
    data_layout: str = inherited(ConvAttrs, "data_layout", default="NCDHW")
    kernel_layout: str = inherited(ConvAttrs, "kernel_layout", default="OIDHW")
