"""layout_transform: a tensor with its elements in the order of another layout, as from NCHW to NCHW16c."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ... import te
from ...base.dataclass import dataclass
from ...base.target import Target
from ...graph.layout import Layout, rearranged, source_index, transform
from ...graph.node import Call, Constant, Node
from ...graph.types import TensorType, Type
from ...ir.expr import Axis, Expr
from ...ir.makers import as_index
from ...lowering.schedule import Schedule
from ...schedules.around import schedule_around
from ...te.tensor import Tensors
from ..definition.attrs import Attrs, attr
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import tensor_argument
from ..definition.strategy import OpStrategy, register_strategy
from .layout_tiles import layout_tiles
from .rearranged import rearranging_cycles

GROUP = OpGroup.SHAPES


@dataclass(frozen=True)
class LayoutTransformAttrs(Attrs):
    """The attributes of ``layout_transform``."""

    source: str = attr("the layout that x has")
    destination: str = attr("the layout that the result has")


def _relation(types: Sequence[Type], attrs: LayoutTransformAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    return TensorType(transform(x.shape, Layout(attrs.source), Layout(attrs.destination)), x.dtype)


LAYOUT_TRANSFORM = register_op(
    "layout_transform",
    "the elements in the order of another layout",
    [("x", "a tensor in layout source")],
    _relation,
    OpPattern.INJECTIVE,
    LayoutTransformAttrs,
    support_level=3,
)


def _compute(attrs: LayoutTransformAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs
    kind = tensor_argument(result, "result")
    source, destination = Layout(attrs.source), Layout(attrs.destination)

    def element(*index: Axis) -> Expr:
        return x[source_index([as_index(i) for i in index], source, destination)]

    return te.compute(kind.shape, element, name="layout_transform")


def _schedule(attrs: LayoutTransformAttrs, anchor: Tensors, outputs: Tensors, target: Target) -> Schedule:
    """Vectors, where one axis is the innermost of both layouts. Else tiles, which read along the source's innermost
    axis and write along the destination's: element by element, but all of a line that is loaded is used."""
    schedule, main = schedule_around(anchor[0], outputs, [], target)
    stage = schedule[main]
    source, destination = Layout(attrs.source), Layout(attrs.destination)
    loops = list(stage.loops)
    last, lanes = len(loops) - 1, target.lanes(main.dtype)
    read = destination.digits(source.axes[-1].name)[-1]
    if read == last:
        loops[last], lane = stage.split(loops[last], factor=math.gcd(source.axes[-1].block or lanes, lanes))
        stage.vectorize(lane)
        stage.parallel(stage.fuse(*loops))
        return schedule
    loops[read], along = stage.split(loops[read], factor=source.axes[-1].block or lanes)
    loops[last], across = stage.split(loops[last], factor=lanes)
    stage.reorder(*loops, along, across)
    stage.unroll(across)
    stage.parallel(stage.fuse(*loops))
    return schedule


@register_strategy(LAYOUT_TRANSFORM)
def _strategy(attrs: LayoutTransformAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    strategy = OpStrategy()
    cost = rearranging_cycles(result)
    kind = tensor_argument(result, "result")
    tiles = layout_tiles(Layout(attrs.source), Layout(attrs.destination), target.lanes(kind.dtype), _schedule)
    if tiles is not None and kind.dtype.is_float and kind.dtype.storage_bits >= 32:
        strategy.add_implementation(tiles.compute, tiles.schedule, "layout_transform.registers", cost=cost)
    strategy.add_implementation(_compute, _schedule, "layout_transform.tiled", cost=cost)
    return strategy


def layout_transform(x: Node, source: str | Layout, destination: str | Layout) -> Node:
    """x, which is in layout ``source``, in layout ``destination``.

    Nothing is done twice: a transform of a transform is one, there and back is x itself, and a constant is rearranged
    at once.
    """
    attrs = LayoutTransformAttrs(str(source), str(destination))
    if isinstance(x, Call) and x.op is LAYOUT_TRANSFORM and x.attrs.destination == attrs.source:
        return layout_transform(x.args[0], x.attrs.source, destination)
    call = LAYOUT_TRANSFORM(x, attrs=attrs)
    if attrs.source == attrs.destination:
        return x
    if isinstance(x, Constant):
        return Constant(rearranged(x.value, Layout(attrs.source), Layout(attrs.destination)), x.name)
    return call
