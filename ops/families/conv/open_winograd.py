"""nn.open_winograd_conv2d: a convolution by windows of 3×3 whose height or width is open, by the method that is faster.

Winograd's method multiplies less, but goes through transformed weights, which are several times as large, for each
group of tiles: of a few tiles it is the slower one. So the operator takes the weights in both forms, and the height and
the width that a run has choose between ``winograd.py`` and ``open_blocked.py``. The batch does not, since each image is
computed by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ....base.dataclass import dataclass
from ....base.errors import TypeInferenceError
from ....base.target import Target
from ....graph.layout import NCHW
from ....graph.node import Call, Node
from ....graph.types import TensorType, Type
from ....ir.constants import const_int
from ....ir.expr import Expr
from ....ir.makers import as_index, minimum
from ....ir.open_extents import IN_COSTS
from ....lowering.schedule import Schedule
from ....te.tensor import Tensors
from ...definition.arguments import PerAxis, naming
from ...definition.cost import moved
from ...definition.registry import OpPattern, register_op
from ...definition.relations import tensor_argument
from ...definition.strategy import OpStrategy, register_strategy
from ..window import given_padding
from .attrs import Conv2DAttrs
from .definition import DefinedStages
from .layouts import kernel_layout
from .open_blocked import OpenBlocked
from .problem import ConvProblem
from .winograd import Winograd, winograd_of
from .winograd_transform import TAPS
from .winograd_type import WinogradAttrs, winograd_type

# Type relation and registration


def _relation(types: Sequence[Type], attrs: WinogradAttrs) -> Type:
    x, weight = tensor_argument(types[0], "x"), tensor_argument(types[2], "weight")
    result = tensor_argument(winograd_type(types[:2], attrs), "result")
    if attrs.out is NCHW or not attrs.group:
        raise TypeInferenceError(f"it needs a group and blocks of channels made, found {attrs}")
    layout = _direct(attrs).kernel
    channels, filters = attrs.data.extents(x.shape)["C"], attrs.out.extents(result.shape)["C"]
    needed = layout.shape({"O": filters, "I": channels, "H": as_index(TAPS), "W": as_index(TAPS)})
    if weight is not TensorType(needed, x.dtype):
        raise TypeInferenceError(f"weight must be {TensorType(needed, x.dtype)}, as {layout} says, found {weight}")
    return result


OPEN_WINOGRAD_CONV2D = register_op(
    "nn.open_winograd_conv2d",
    "Convolution over H and W by windows of 3×3 with stride 1, of many tiles as Winograd does it, of few directly",
    [
        ("x", "[N, C, H, W], channels in blocks as data_layout says"),
        ("planes", "[K / f, m + 2, m + 2, C, f]: the transformed weights, in panels of f filters"),
        ("weight", "[K, C, 3, 3], filters in the blocks of the result, channels in those of x"),
    ],
    _relation,
    OpPattern.OUT_ELEMENTWISE_FUSABLE,
    WinogradAttrs,
    support_level=10,
)


def _direct(attrs: WinogradAttrs) -> Conv2DAttrs:
    """The attributes of ``nn.conv2d`` of x and weight."""
    return Conv2DAttrs(
        padding=attrs.padding,
        data_layout=str(attrs.data),
        kernel_layout=str(kernel_layout(2, attrs.data.factor("C"), attrs.out.factor("C"))),
        out_layout=str(attrs.out),
    )


# Strategy


@dataclass(frozen=True, slots=True)
class Directly:
    """The same convolution without transforms."""

    convolution: OpenBlocked

    def compute(self, attrs: WinogradAttrs, inputs: Tensors, result: Type) -> DefinedStages:
        """The definition, of x and weight."""
        x, _, weight = inputs
        return self.convolution.compute(_direct(attrs), (x, weight), result)

    def schedule(self, attrs: WinogradAttrs, anchor: DefinedStages, outputs: Tensors, target: Target) -> Schedule:
        """The schedule of ``conv.open_blocked``."""
        return self.convolution.schedule(_direct(attrs), anchor, outputs, target)


@register_strategy(OPEN_WINOGRAD_CONV2D)
def _strategy(attrs: WinogradAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    x, _, weight, kind = (tensor_argument(t, "argument") for t in (*inputs, result))
    images, block = const_int(x.shape[0]) or IN_COSTS, attrs.out.factor("C")
    by_tiles = winograd_of(attrs, inputs, result, target)
    problem = ConvProblem(_direct(attrs), x, weight, kind, target)
    blocked = OpenBlocked(problem, block, problem.filters // block)
    directly = Directly(blocked)
    position = problem.reduction_extent * problem.filters * blocked.product_cycles
    height, width = kind.shape[2:4]
    strategy = OpStrategy()
    cost = images * (by_tiles.blocking.cycles + by_tiles.products.transforms) + moved([x, kind])
    with strategy.specialized(_cycles(by_tiles) <= height * width * math.ceil(position)):
        strategy.add_implementation(
            by_tiles.compute, by_tiles.schedule, "open_winograd_conv2d.tiled", cost=cost, direct=False
        )
    cost = images * math.prod(problem.assumed_outputs) * position + moved([x, x, x, weight, kind])
    strategy.add_implementation(
        directly.compute, directly.schedule, "open_winograd_conv2d.direct", cost=cost, direct=False
    )
    return strategy


def _cycles(made: Winograd) -> Expr:
    """The cycles of an image by Winograd's method: for each group, for each register tile of its products, of which the
    last one may have fewer rows, and for each tile."""
    rows = made.blocking.rows
    two, one, most, least = (
        made.products.group_cycles(tiles, rows, made.blocking.together) for tiles in (2 * rows, rows, rows - 1 or 1, 1)
    )
    group = math.ceil(2 * one - two)
    row = math.ceil((most - least) / max(1, rows - 2))
    tile = math.ceil(made.products.transforms / made.products.tiles)
    rest = made.count % rows
    last = minimum(rest, 1) * (math.ceil(least) - group - row) + rest * row
    return made.groups * group + made.count // rows * math.ceil(two - one) + last + made.count * tile


# Calls


def open_winograd_conv2d(
    x: Node,
    planes: Node,
    weight: Node,
    size: int,
    group: int,
    padding: PerAxis = 0,
    data_layout: str = "NCHW16c",
    out_layout: str = "",
) -> Call:
    """``conv2d`` of x, channels in blocks, by windows of 3×3: of ``weight``, and of what ``winograd_planes`` has made
    of it for tiles of ``size``, of which ``group`` are taken together.

    ``padding``: one number, one per spatial axis, or all begins and then all ends.
    """
    with naming(OPEN_WINOGRAD_CONV2D.name):
        pads = given_padding(padding, 2)
        attrs = WinogradAttrs(size=size, padding=pads, data_layout=data_layout, out_layout=out_layout, group=group)
    return OPEN_WINOGRAD_CONV2D(x, planes, weight, attrs=attrs)
