"""depth_to_space and space_to_depth: channels become blocks of pixels, and blocks channels.

Both are of NCHW; depth_to_space takes other layouts as well, so that it goes along with convolutions in front of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import te
from ..graph.layout import Layout, source_index
from ..graph.node import Call, Node
from ..graph.types import TensorType, Type
from ..ir.errors import TypeInferenceError
from ..ir.expr import Axis, Expr, as_index, const_int
from ..ir.simplify import simplify
from ..ir.target import Target
from .attrs import Attrs, attr, one_of, positive
from .cost import elements, moved
from .layout_rule import follow_layout, register_layout_rule
from .layout_transform import CYCLES_PER_ELEMENT
from .pattern_schedules import injective_schedule
from .registry import OpPattern, register_op
from .relations import tensor_argument
from .strategy import OpStrategy, Tensors, register_compute, register_strategy
from .window import axis_extents, checked_layout


@dataclass(frozen=True)
class BlockAttrs(Attrs):
    block_size: int = attr("edge of a block of pixels", check=positive)
    mode: str = attr(
        "order of the channels where they are many: by block, then by channel (DCR), or the reverse (CRD)",
        "DCR",
        one_of("DCR", "CRD"),
    )


@dataclass(frozen=True)
class PixelAttrs(BlockAttrs):
    layout: str = attr("layout of x and the result", "NCHW")


NCHW = Layout("NCHW")


def _image(kind: Type) -> TensorType:
    x = tensor_argument(kind, "x")
    if x.ndim != 4:
        raise TypeInferenceError(f"x must be of rank 4, batch, channels, rows and columns, found {x}")
    return x


def _divided(extent: Expr, by: int, what: str) -> Expr:
    known = const_int(extent)
    if known is None or known % by:
        raise TypeInferenceError(f"{what} must divide by {by}, found {extent}")
    return simplify(extent // by)


def _depth_to_space_relation(types: Sequence[Type], attrs: PixelAttrs) -> Type:
    layout, b = checked_layout(attrs.layout, "NCHW", "C", "layout"), attrs.block_size
    x = _image(types[0]) if layout is NCHW else tensor_argument(types[0], "x")
    extents = axis_extents(x, attrs.layout, "NCHW", "C", ("x", "layout"))
    channels = _divided(extents["C"], b * b, "channels")
    shape = extents | {"C": channels, "H": simplify(extents["H"] * b), "W": simplify(extents["W"] * b)}
    if not layout.divides(shape):
        raise TypeInferenceError(f"the result's {channels} channels must divide into the blocks of layout {layout}")
    return TensorType(layout.shape(shape), x.dtype)


def _depth_to_space_compute(attrs: PixelAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs
    assert isinstance(result, TensorType)
    b, layout = attrs.block_size, Layout(attrs.layout)
    channels = layout.extents(result.shape)["C"]

    def element(*index: Axis) -> Expr:
        n, c, h, w = source_index([as_index(i) for i in index], NCHW, layout)
        block = h % b * b + w % b
        source = block * channels + c if attrs.mode == "DCR" else c * (b * b) + block
        return x[source_index((n, source, h // b, w // b), layout, NCHW)]

    return te.compute(result.shape, element, name="depth_to_space")


def _space_to_depth_relation(types: Sequence[Type], attrs: BlockAttrs) -> Type:
    x, b = _image(types[0]), attrs.block_size
    n, c, h, w = x.shape
    return TensorType((n, simplify(c * (b * b)), _divided(h, b, "rows"), _divided(w, b, "columns")), x.dtype)


def _space_to_depth_compute(attrs: BlockAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs
    assert isinstance(result, TensorType)
    b, channels = attrs.block_size, x.shape[1]

    def element(n: Any, c: Any, h: Any, w: Any) -> Expr:
        block, channel = (c // channels, c % channels) if attrs.mode == "DCR" else (c % (b * b), c // (b * b))
        return x[n, channel, h * b + block // b, w * b + block % b]

    return te.compute(result.shape, element, name="space_to_depth")


DEPTH_TO_SPACE = register_op(
    "nn.depth_to_space",
    "channels to blocks of pixels",
    [("x", "NCHW, or as layout says")],
    _depth_to_space_relation,
    OpPattern.INJECTIVE,
    PixelAttrs,
    support_level=5,
)
SPACE_TO_DEPTH = register_op(
    "nn.space_to_depth",
    "blocks of pixels to channels",
    [("x", "NCHW")],
    _space_to_depth_relation,
    OpPattern.INJECTIVE,
    BlockAttrs,
    support_level=5,
)
register_compute(SPACE_TO_DEPTH, _space_to_depth_compute)


@register_strategy(DEPTH_TO_SPACE)
def _depth_to_space_strategy(attrs: PixelAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    """Vectors of channels are moved as they are; neighbours in a row come from different places."""
    strategy = OpStrategy()
    vectors = Layout(attrs.layout).axes[-1].name == "C"
    cost = moved([*inputs, result]) if vectors else CYCLES_PER_ELEMENT * elements(result)
    schedule = injective_schedule.for_target(target)
    strategy.add_implementation(_depth_to_space_compute, schedule, "nn.depth_to_space.generic", cost=cost)
    return strategy


register_layout_rule(DEPTH_TO_SPACE, follow_layout(lambda call: NCHW))


def depth_to_space(x: Node, block_size: int, mode: str = "DCR") -> Call:
    """Each pixel's channels spread to a block of pixels."""
    return DEPTH_TO_SPACE(x, attrs=PixelAttrs(block_size, mode))


def space_to_depth(x: Node, block_size: int, mode: str = "DCR") -> Call:
    """Each block of pixels gathered to the channels of one."""
    return SPACE_TO_DEPTH(x, attrs=BlockAttrs(block_size, mode))
