"""col2im: windows that are columns added up to the image that they were taken from, as far as they overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ... import te
from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Node
from ...graph.types import TensorType, Type
from ...ir.constants import const_int
from ...ir.expr import Expr
from ...ir.makers import as_index
from ...te.tensor import Tensors
from ..definition.accumulate import accumulator, narrowed, widened
from ..definition.arguments import PerAxis, integer_list, naming, per_axis
from ..definition.attrs import Attrs, all_non_negative, all_positive, attr
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import NUMBER_KINDS, tensor_argument
from ..definition.strategy import register_compute

GROUP = OpGroup.IMAGES


@dataclass(frozen=True)
class Col2ImAttrs(Attrs):
    """The attributes of ``col2im``; there is a number of each for every spatial axis."""

    image: tuple[int, ...] = attr("extents of the image", check=all_non_negative)
    window: tuple[int, ...] = attr("extents of the windows", check=all_positive)
    strides: tuple[int, ...] = attr("step of the windows, for each axis", check=all_positive)
    padding: tuple[int, ...] = attr("pads before each axis, then those after", check=all_non_negative)
    dilation: tuple[int, ...] = attr("distance of the elements of a window, for each axis", check=all_positive)

    @property
    def positions(self) -> tuple[int, ...]:
        """How many windows there are along each axis."""
        rank = len(self.image)
        return tuple(
            (e + self.padding[d] + self.padding[rank + d] - self.dilation[d] * (self.window[d] - 1) - 1)
            // self.strides[d]
            + 1
            for d, e in enumerate(self.image)
        )


def _relation(types: Sequence[Type], attrs: Col2ImAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    rank = len(attrs.image)
    if x.ndim != 3 or x.dtype.kind not in NUMBER_KINDS:
        raise TypeInferenceError(f"x must be numbers [batch, channels · window, windows], found {x}")
    if any(len(values) != rank for values in (attrs.window, attrs.strides, attrs.dilation)):
        raise TypeInferenceError(f"window, strides and dilation need a number for each of the {rank} axes of the image")
    if len(attrs.padding) != 2 * rank or min(attrs.positions, default=1) < 1:
        raise TypeInferenceError(f"the windows {attrs.window} do not fit the padded image {attrs.image}")
    size, columns, windows = math.prod(attrs.window), const_int(x.shape[1]), const_int(x.shape[2])
    if columns is None or columns % size:
        raise TypeInferenceError(f"axis 1 of x must be known, and a multiple of the {size} elements of a window")
    if windows is not None and windows != math.prod(attrs.positions):
        raise TypeInferenceError(f"x has {windows} windows, but the image {attrs.image} has {attrs.positions}")
    extents = (columns // size, *attrs.image)
    return TensorType((x.shape[0], *(as_index(extent) for extent in extents)), x.dtype)


def _compute(attrs: Col2ImAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    """Each element of the image sums up those of the windows that lie there."""
    (x,) = inputs
    size, positions = math.prod(attrs.window), attrs.positions
    offsets = [te.reduce_axis((0, extent), name=f"k{d}") for d, extent in enumerate(attrs.window)]

    def element(n: te.Axis, c: te.Axis, *place: te.Axis) -> Expr:
        row, window = as_index(0), as_index(0)
        inside = te.const(True, "bool")
        for d, (at, k) in enumerate(zip(place, offsets, strict=True)):
            distance = at + attrs.padding[d] - k * attrs.dilation[d]
            number = distance // attrs.strides[d]
            inside = inside & (distance >= 0) & (distance % attrs.strides[d] == 0) & (number < positions[d])
            row, window = row * attrs.window[d] + k, window * positions[d] + number
        value = te.if_then_else(inside, widened(x[n, c * size + row, window]), te.const(0, accumulator(x.dtype)))
        return te.sum(value, axis=offsets)

    shape = tensor_argument(result, "result").shape
    return narrowed(te.compute(shape, element, name="col2im.sums"), x.dtype, "col2im")


COL2IM = register_op(
    "col2im",
    "the image of which windows are columns; where windows overlap, their elements are added",
    [("x", "[batch, channels · elements of a window, windows]")],
    _relation,
    OpPattern.OUT_ELEMENTWISE_FUSABLE,
    Col2ImAttrs,
    support_level=5,
)
register_compute(COL2IM, _compute)


def col2im(
    x: Node,
    image: Sequence[int],
    window: Sequence[int],
    strides: PerAxis = 1,
    padding: Sequence[int] | int = 0,
    dilation: PerAxis = 1,
) -> Call:
    """The image [batch, channels, …] of the extents ``image`` whose windows are the columns of x, in row-major order;
    elements of windows that overlap are added. ``padding`` is that before each axis, then that after."""
    with naming("col2im", x):
        extents, rank = integer_list(image, "image"), len(tuple(image))
        attrs = Col2ImAttrs(
            extents,
            integer_list(window, "window"),
            per_axis(strides, rank, "strides"),
            per_axis(padding, 2 * rank, "padding"),
            per_axis(dilation, rank, "dilation"),
        )
    return COL2IM(x, attrs=attrs)
