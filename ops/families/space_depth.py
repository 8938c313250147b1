"""depth_to_space and space_to_depth: channels become blocks of pixels, and blocks channels.

Both are of NCHW; depth_to_space takes other layouts as well, so that it goes along with convolutions in front of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import te
from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...base.target import Target
from ...graph.layout import Layout, source_index
from ...graph.node import Call, Node, tensor_of
from ...graph.types import TensorType, Type
from ...ir.constants import ZERO, const_int
from ...ir.expr import Axis, Expr
from ...ir.makers import as_index
from ...ir.simplify import simplify
from ...lowering.schedule import Schedule
from ...schedules.around import schedule_around
from ...schedules.register_transpose import interleave_rows
from ...te.tensor import Tensors
from ..definition.arguments import naming
from ..definition.attrs import Attrs, attr, one_of, positive
from ..definition.condition import clause
from ..definition.cost import elements, moved
from ..definition.layout_rule import follow_layout
from ..definition.op_group import OpGroup
from ..definition.pattern_schedules import injective_schedule
from ..definition.registry import OpPattern, register_op
from ..definition.relations import tensor_argument
from ..definition.strategy import OpStrategy, register_compute, register_strategy
from .conv.flat import lanes_for
from .rearranged import RearrangedStages
from .transpose import MOST_INTERLEAVED, MOST_LANES
from .window import axis_extents, checked_layout

GROUP = OpGroup.SHAPES

CYCLES_PER_ELEMENT = 10
"""Measured: of each element the place is worked out, with divisions, and it is loaded by itself."""


@dataclass(frozen=True)
class BlockAttrs(Attrs):
    """The attributes of ``space_to_depth``, and those that ``depth_to_space`` has, too."""

    block_size: int = attr("edge of a block of pixels", check=positive)
    mode: str = attr(
        "order of the channels where they are many: by block, then by channel (DCR), or the reverse (CRD)",
        "DCR",
        one_of("DCR", "CRD"),
    )


@dataclass(frozen=True)
class PixelAttrs(BlockAttrs):
    """The attributes of ``depth_to_space``."""

    layout: str = attr("layout of x and the result", "NCHW")


NCHW = Layout("NCHW")


def _image(kind: Type) -> TensorType:
    x = tensor_argument(kind, "x")
    if x.ndim != 4:
        raise TypeInferenceError(f"x must be of rank 4, batch, channels, rows and columns, found {x}")
    return x


def _leaving_nothing(*extents: Expr, by: int) -> Sequence[Expr]:
    """What has to be 0 or more where a number divides these extents, which the relations only round."""
    return tuple(ZERO - extent % by for extent in extents)


def _require_divided(extent: Expr, by: int, what: str) -> None:
    if (const_int(extent) or 0) % by:
        raise TypeInferenceError(f"{what} must divide by {by}, found {extent}")


def _depth_to_space_relation(types: Sequence[Type], attrs: PixelAttrs) -> Type:
    layout, b = checked_layout(attrs.layout, "NCHW", "C", "layout"), attrs.block_size
    x = _image(types[0]) if layout is NCHW else tensor_argument(types[0], "x")
    extents = axis_extents(x, attrs.layout, "NCHW", "C", ("x", "layout"))
    channels = simplify(extents["C"] // (b * b))
    shape = extents | {"C": channels, "H": simplify(extents["H"] * b), "W": simplify(extents["W"] * b)}
    if not layout.divides(shape):
        raise TypeInferenceError(f"the result's {channels} channels must divide into the blocks of layout {layout}")
    return TensorType(layout.shape(shape), x.dtype)


def _channels(call: Call) -> Expr:
    return Layout(call.attrs.layout).extents(tensor_of(call.args[0]).shape)["C"]


def _depth_to_space_compute(attrs: PixelAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs
    kind = tensor_argument(result, "result")
    b, layout = attrs.block_size, Layout(attrs.layout)
    channels = layout.extents(kind.shape)["C"]

    def element(*index: Axis) -> Expr:
        n, c, h, w = source_index([as_index(i) for i in index], NCHW, layout)
        source = _source_channel(attrs, channels, c, h % b * b + w % b)
        return x[source_index((n, source, h // b, w // b), layout, NCHW)]

    return te.compute(kind.shape, element, name="depth_to_space")


def _source_channel(attrs: PixelAttrs, channels: Expr, channel: Expr, pixel: Expr) -> Expr:
    """The channel that holds a pixel of each block, for one of the ``channels`` of the result."""
    by_block = attrs.mode == "DCR"
    return pixel * channels + channel if by_block else channel * attrs.block_size**2 + pixel


@dataclass(frozen=True, slots=True)
class InterleavedPixels:
    """The implementation for NCHW: a row of the result is as many rows of the source as a block is wide, their elements
    in turn. A vector of each is read, and as many are written, whose elements come from all of them."""

    block: int
    lanes: int

    def compute(self, attrs: PixelAttrs, inputs: Tensors, result: Type) -> RearrangedStages:
        """The definition, of an x whose channels are those of the result, rows and columns of a block."""
        (x,) = inputs
        kind = tensor_argument(result, "result")
        b = self.block
        batch, channels, _, _ = kind.shape

        def apart(*index: Axis) -> Expr:
            n, c, row, column, h, w = map(as_index, index)
            return x[n, _source_channel(attrs, channels, c, row * b + column), h, w]

        source = te.compute((batch, channels, b, b, *x.shape[2:]), apart, name="depth_to_space.source")

        def element(*index: Axis) -> Expr:
            n, c, h, w = map(as_index, index)
            return source[n, c, h % b, w % b, h // b, w // b]

        return RearrangedStages(te.compute(kind.shape, element, name="depth_to_space"), source)

    def schedule(self, attrs: PixelAttrs, anchor: RearrangedStages, outputs: Tensors, target: Target) -> Schedule:
        """The schedule of the definition: rows of pixels are parallel tasks, in which vectors of the source's rows are
        interleaved in registers."""
        schedule, main = schedule_around(anchor.result, outputs, [], target)
        stage = schedule[main]
        n, c, h, w = stage.loops
        row, _ = stage.split(h, factor=self.block)
        part, within = stage.split(w, factor=self.block * self.lanes)
        vector, lane = stage.split(within, factor=self.lanes)
        stage.unroll(vector)
        stage.vectorize(lane)
        stage.parallel(stage.fuse(n, c, row))
        interleave_rows(schedule, anchor.source, anchor.result, stage, part, 3, self.lanes)
        return schedule


def _space_to_depth_relation(types: Sequence[Type], attrs: BlockAttrs) -> Type:
    x, b = _image(types[0]), attrs.block_size
    n, c, h, w = x.shape
    return TensorType((n, simplify(c * (b * b)), simplify(h // b), simplify(w // b)), x.dtype)


def _space_to_depth_compute(attrs: BlockAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs
    b, channels = attrs.block_size, x.shape[1]

    def element(n: Any, c: Any, h: Any, w: Any) -> Expr:
        block, channel = (c // channels, c % channels) if attrs.mode == "DCR" else (c % (b * b), c // (b * b))
        return x[n, channel, h * b + block // b, w * b + block % b]

    return te.compute(tensor_argument(result, "result").shape, element, name="space_to_depth")


DEPTH_TO_SPACE = register_op(
    "nn.depth_to_space",
    "channels to blocks of pixels",
    [("x", "NCHW, or as layout says")],
    _depth_to_space_relation,
    OpPattern.INJECTIVE,
    PixelAttrs,
    support_level=5,
    layout_rule=follow_layout(lambda call: NCHW),
    extent_rule=lambda call: _leaving_nothing(_channels(call), by=call.attrs.block_size**2),
)
SPACE_TO_DEPTH = register_op(
    "nn.space_to_depth",
    "blocks of pixels to channels",
    [("x", "NCHW")],
    _space_to_depth_relation,
    OpPattern.INJECTIVE,
    BlockAttrs,
    support_level=5,
    extent_rule=lambda call: _leaving_nothing(*tensor_of(call.args[0]).shape[2:], by=call.attrs.block_size),
)
register_compute(SPACE_TO_DEPTH, _space_to_depth_compute)


def is_interleaved(attrs: PixelAttrs) -> bool:
    """Whether rows of pixels are made of vectors of several channels, whose elements are interleaved in registers."""
    return attrs.layout == "NCHW" and 1 < attrs.block_size <= MOST_INTERLEAVED


@register_strategy(DEPTH_TO_SPACE)
def _depth_to_space_strategy(attrs: PixelAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    """Vectors of channels are moved as they are; neighbours in a row come from different positions."""
    strategy, layout = OpStrategy(), Layout(attrs.layout)
    movement = moved([*inputs, result])
    cost = movement if layout.axes[-1].name == "C" else CYCLES_PER_ELEMENT * elements(result)
    schedule = injective_schedule.for_target(target)
    strategy.add_implementation(_depth_to_space_compute, schedule, "nn.depth_to_space.generic", cost=cost)
    if layout is NCHW:
        x = tensor_argument(inputs[0], "x")
        width = const_int(x.shape[-1])
        lanes = min(target.lanes(x.dtype), MOST_LANES)
        made = InterleavedPixels(attrs.block_size, lanes if width is None else lanes_for(width, lanes))
        with strategy.specialized(clause("small blocks", is_interleaved(attrs))):
            name = "nn.depth_to_space.interleaved"
            strategy.add_implementation(made.compute, made.schedule, name, cost=movement)
    return strategy


def depth_to_space(x: Node, block_size: int, mode: str = "DCR") -> Call:
    """Each pixel's channels spread to a block of pixels. Each run checks open channels."""
    with naming(DEPTH_TO_SPACE.name, x):
        attrs = PixelAttrs(block_size, mode)
        _require_divided(_image(tensor_of(x)).shape[1], block_size**2, "channels")
    return DEPTH_TO_SPACE(x, attrs=attrs)


def space_to_depth(x: Node, block_size: int, mode: str = "DCR") -> Call:
    """Each block of pixels gathered to the channels of one. Each run checks open rows and columns."""
    with naming(SPACE_TO_DEPTH.name, x):
        attrs = BlockAttrs(block_size, mode)
        for extent, what in zip(_image(tensor_of(x)).shape[2:], ("rows", "columns"), strict=True):
            _require_divided(extent, block_size, what)
    return SPACE_TO_DEPTH(x, attrs=attrs)
