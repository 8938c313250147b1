"""What a convolution is asked for: a call and a target, in the numbers by which implementations decide and block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from ....base.dataclass import dataclass
from ....base.dtype import DType
from ....base.target import Target
from ....graph.layout import Layout
from ....graph.node import Call, Constant
from ....graph.types import TensorType, Type
from ....ir.constants import const_int
from ....ir.expr import Expr
from ....ir.makers import as_index
from ....ir.open_extents import CHANNELS, MANY_ROWS
from ....ir.simplify import simplify
from ...definition.cost import elements
from ...definition.relations import tensor_argument
from ..window import known_window, spatial_axes
from .attrs import ConvAttrs
from .layouts import data_layout, kernel_layout


@dataclass(frozen=True)  # without slots, for the cached properties
class ConvProblem:
    """A call of ``nn.conv1d``, ``nn.conv2d`` or ``nn.conv3d`` that has its type, for a target.

    The number of filters and the window are known, as the type relation asks for it, and that of channels, unless they
    are one group; other extents may be symbolic. ``constant_weight`` says that the weight is known when the model is
    compiled.
    """

    attrs: ConvAttrs
    x: TensorType
    weight: TensorType
    result: TensorType
    target: Target
    constant_weight: bool = False

    @staticmethod
    def of(attrs: ConvAttrs, inputs: Sequence[Type], result: Type, target: Target) -> ConvProblem:
        """The problem of types and attributes that the type relation accepted."""
        x, weight, kind = (tensor_argument(t, "argument") for t in (*inputs, result))
        return ConvProblem(attrs, x, weight, kind, target)

    @staticmethod
    def of_call(call: Call, target: Target) -> ConvProblem:
        """The problem of a call, which tells of a constant weight."""
        x, weight, kind = (tensor_argument(t, "argument") for t in (*(a.type for a in call.args), call.type))
        return ConvProblem(call.attrs, x, weight, kind, target, isinstance(call.args[1], Constant))

    def with_channels(self, channels: int, filters: int) -> ConvProblem:
        """The problem with so many channels and filters, of plain layouts and one group."""

        def of(kind: TensorType, *extents: int) -> TensorType:
            first = kind.shape[:1] if len(extents) == 1 else ()
            return TensorType((*first, *map(as_index, extents), *kind.shape[2:]), kind.dtype)

        return replace(
            self,
            attrs=replace(self.attrs, channels=None),
            x=of(self.x, channels),
            weight=of(self.weight, filters, channels),
            result=of(self.result, filters),
        )

    # Types

    @property
    def types(self) -> tuple[TensorType, TensorType, TensorType]:
        """The types of x, the weight and the result."""
        return self.x, self.weight, self.result

    @property
    def dtype(self) -> DType:
        """The dtype of the result."""
        return self.result.dtype

    @property
    def lanes(self) -> int:
        """How many elements of the result a vector holds."""
        return self.target.lanes(self.dtype)

    @property
    def is_of_one_float(self) -> bool:
        """Whether x, the weight and the result are of one dtype, of floats."""
        return self.x.dtype is self.weight.dtype is self.dtype and self.dtype.is_float

    # Layouts

    @property
    def rank(self) -> int:
        """The number of spatial axes."""
        return self.attrs.rank

    def held_in(self, layout: Layout) -> bool:
        """Whether x and the result are both in this layout."""
        return self.attrs.data is self.attrs.out is layout

    @property
    def is_plain(self) -> bool:
        """Whether x and the result are in N, C, …."""
        return self.held_in(data_layout(self.rank))

    @property
    def plain_kernel(self) -> Layout:
        """The layout O, I, … of weights that are not in blocks."""
        return Layout(f"OI{spatial_axes(self.rank)}")

    @property
    def has_plain_kernel(self) -> bool:
        """Whether the weight is in O, I, …."""
        return self.attrs.kernel is self.plain_kernel

    def has_panels_of(self, filters: int) -> bool:
        """Whether the weight has its filters, and nothing else, in blocks of so many."""
        return self.attrs.kernel is kernel_layout(self.rank, 1, filters)

    # Extents

    @property
    def batch(self) -> int | None:
        """The number of images, if it is known."""
        return const_int(self._extents_of_result["N"])

    @cached_property
    def outputs(self) -> tuple[int, ...] | None:
        """The spatial extents of the result; None unless all are known."""
        extents = tuple(const_int(self._extents_of_result[axis]) for axis in spatial_axes(self.rank))
        known = tuple(extent for extent in extents if extent is not None)
        return known if len(known) == self.rank else None

    @property
    def assumed_outputs(self) -> tuple[int, ...]:
        """The spatial extents of the result; of those that are open, what tiles go by."""
        extents = (const_int(self._extents_of_result[axis]) for axis in spatial_axes(self.rank))
        return tuple(MANY_ROWS if extent is None else extent for extent in extents)

    @property
    def width(self) -> Expr:
        """The extent of the result along its last spatial axis."""
        return self._extents_of_result[spatial_axes(self.rank)[-1]]

    @property
    def open_width(self) -> Expr | None:
        """The extent of the result along its last spatial axis, if that is open."""
        return self.width if const_int(self.width) is None else None

    @cached_property
    def window(self) -> tuple[int, ...]:
        """The extents of the window, one for each spatial axis."""
        return known_window([self._extents_of_weight[axis] for axis in spatial_axes(self.rank)])

    @cached_property
    def filters(self) -> int:
        """The filters of all groups, without what fills up the last block of the weight."""
        return const_int(self._extents_of_result["C"]) or 0

    @property
    def group_filters(self) -> int:
        """Filters of a group."""
        return self.filters // self.attrs.groups

    @property
    def has_open_channels(self) -> bool:
        """Whether the number of channels is not known; then there is one group."""
        return const_int(self._extents_of_weight["I"]) is None

    @property
    def group_channels(self) -> int:
        """Channels of a group; of an open number, what costs and decisions assume."""
        channels = const_int(self._extents_of_weight["I"])
        return CHANNELS if channels is None else channels

    def channels_are_multiple_of(self, number: int) -> bool:
        """Whether the channels of a group are a multiple of a number, for all that they can be."""
        return const_int(simplify(self._extents_of_weight["I"] % number)) == 0

    @property
    def reduction_extent(self) -> int:
        """How many products an element of the result is the sum of."""
        return self.group_channels * math.prod(self.window)

    @property
    def products(self) -> int:
        """How many products all sums are made of; of open extents, as costs assume them."""
        return self.reduction_extent * elements(self.result)

    # Kinds

    @property
    def is_empty(self) -> bool:
        """Whether x or the result has no elements."""
        return 0 in [const_int(extent) for extent in (*self.x.shape, *self.result.shape)]

    @property
    def is_filled_up(self) -> bool:
        """Whether the last block of filters in the weight has some that are none of the convolution's."""
        return const_int(self._extents_of_weight["O"]) != self.filters

    @property
    def is_pointwise(self) -> bool:
        """Whether the window is one element, and there is no padding."""
        return math.prod(self.window) == 1 and not any(self.attrs.padding)

    @property
    def is_depthwise(self) -> bool:
        """Whether each channel is a group, with one or several filters."""
        return self.group_channels == 1 and self.attrs.groups > 1

    @property
    def is_strided(self) -> bool:
        """Whether some stride is not 1."""
        return math.prod(self.attrs.strides) > 1

    @cached_property
    def _extents_of_weight(self) -> dict[str, Expr]:
        return self.attrs.kernel.extents(self.weight.shape)

    @cached_property
    def _extents_of_result(self) -> dict[str, Expr]:
        return self.attrs.out.extents(self.result.shape)
