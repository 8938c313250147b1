"""layout_transform: a tensor with its elements in the order of another layout, as from NCHW to NCHW16c."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import te
from ...base.aligned import aligned
from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...base.target import Target
from ...graph.layout import Layout, rearranged, source_index, transform
from ...graph.node import Call, Constant, Node
from ...graph.types import TensorType, Type
from ...ir.constants import const_int
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
from .layout_tiles import filled_up, layout_tiles
from .rearranged import rearranging_cycles

GROUP = OpGroup.SHAPES


@dataclass(frozen=True)
class LayoutTransformAttrs(Attrs):
    """The attributes of ``layout_transform``."""

    source: str = attr("the layout that x has")
    destination: str = attr("the layout that the result has")
    extent: int = attr(
        "how many elements of the axis in blocks the result has, where x has more or fewer; beyond its own are zeros", 0
    )


def _relation(types: Sequence[Type], attrs: LayoutTransformAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    source, destination = Layout(attrs.source), Layout(attrs.destination)
    if attrs.extent == 0:
        return TensorType(transform(x.shape, source, destination), x.dtype)
    name, factor = _only_blocks(source, destination)
    extents = source.extents(x.shape)
    have = const_int(extents[name])
    if have is None:
        raise TypeInferenceError(f"extent is {attrs.extent}, but it is open how many {name} x has")
    part, whole = (attrs.extent, have) if source.is_blocked else (have, attrs.extent)
    if whole % factor or not whole - factor < part <= whole:
        raise TypeInferenceError(
            f"{part} of {name} do not end in the last of the blocks of {factor}, which are {whole}"
        )
    return TensorType(destination.shape({**extents, name: as_index(attrs.extent)}), x.dtype)


def _only_blocks(source: Layout, destination: Layout) -> tuple[str, int]:
    """The only axis in blocks, which it is in one of two layouts, and how many elements a block has.

    Raises ``TypeInferenceError`` if there is none, or more.
    """
    blocked = source if source.is_blocked else destination
    names = [name for name in blocked.names if blocked.factor(name) > 1]
    if (
        source.is_blocked == destination.is_blocked
        or len(names) != 1
        or sorted(source.names) != sorted(destination.names)
    ):
        raise TypeInferenceError(f"extent is of the one axis that is in blocks in one of {source} and {destination}")
    return names[0], blocked.factor(names[0])


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
    if attrs.extent and destination.is_blocked:
        name, _ = _only_blocks(source, destination)
        x = filled_up(x, source.position(name), as_index(attrs.extent))

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


def layout_transform(x: Node, source: str | Layout, destination: str | Layout, extent: int = 0) -> Node:
    """x, which is in layout ``source``, in layout ``destination``. With an ``extent``, so many elements of the one axis
    in blocks: out of blocks, the first ones of those that the blocks have; to blocks, also zeros in the last block.

    Nothing is done twice: a transform of a transform is one, there and back is x itself, and a constant is rearranged
    at once.
    """
    attrs = LayoutTransformAttrs(str(source), str(destination), extent)
    if (
        isinstance(x, Call)
        and x.op is LAYOUT_TRANSFORM
        and x.attrs.destination == attrs.source
        and not (extent or x.attrs.extent)
    ):
        return layout_transform(x.args[0], x.attrs.source, destination)
    call = LAYOUT_TRANSFORM(x, attrs=attrs)
    if attrs.source == attrs.destination:
        return x
    if isinstance(x, Constant):
        return Constant(_rearranged(x.value, attrs), x.name)
    return call


def _rearranged(array: npt.NDArray[Any], attrs: LayoutTransformAttrs) -> npt.NDArray[Any]:
    """An array of numpy's, as the type relation says."""
    source, destination = Layout(attrs.source), Layout(attrs.destination)
    if attrs.extent == 0:
        return rearranged(array, source, destination)
    position = (destination if source.is_blocked else source).position(_only_blocks(source, destination)[0])
    if source.is_blocked:
        return aligned(rearranged(array, source, destination).take(range(attrs.extent), position))
    more = [(0, attrs.extent - have if axis == position else 0) for axis, have in enumerate(array.shape)]
    return rearranged(np.pad(array, more), source, destination)
