"""An implementation of layout_transform between channels in blocks of a vector and channels not in blocks, as from
NCHW16c to NCHW and back: square tiles of channels and positions, transposed in vector registers."""

from __future__ import annotations

from functools import reduce
from operator import mul

from ... import te
from ...base.dataclass import dataclass
from ...base.target import Target
from ...graph.layout import Layout
from ...graph.types import Type
from ...ir.constants import ZERO, const_int
from ...ir.expr import Const, Expr, Var
from ...ir.makers import as_index
from ...ir.row_major import ravel_index, unravel_index
from ...ir.simplify import simplify
from ...ir.visit import tensor_reads
from ...lowering.schedule import Schedule
from ...schedules.around import schedule_around
from ...schedules.register_transpose import turn_tiles
from ...te.tensor import ComputeOp, PlaceholderOp, Tensor, Tensors
from ..definition.implementation import ScheduleFunction
from ..definition.relations import tensor_argument
from .rearranged import RearrangedStages


@dataclass(frozen=True, slots=True)
class LayoutTiles:
    """The axis in blocks is number ``axis`` of the plain layout; the axes behind it count as one, the positions.

    An x of open extents whose elements are moved as they are read has the schedule ``of_moved``: to find the rows of
    positions would take a division for each lane there.
    """

    axis: int
    lanes: int
    to_blocks: bool
    of_moved: ScheduleFunction

    def compute(self, attrs: object, inputs: Tensors, result: Type) -> RearrangedStages:
        """The definition, of an x whose positions are one axis, the last or the one before the lanes."""
        (x,) = inputs
        if self.to_blocks:
            x = filled_up(x, self.axis, tensor_argument(result, "result").shape[self.axis] * self.lanes)
        kind, lanes, split = tensor_argument(result, "result"), self.lanes, self.axis + 1
        positions = kind.shape[split:-1] if self.to_blocks else kind.shape[split:]

        def joined(*index: te.Axis) -> Expr:
            own = [as_index(i) for i in index]
            return x[(*own[:split], *unravel_index(own[split], positions), *own[split + 1 :])]

        shape = (*x.shape[:split], simplify(reduce(mul, positions)), *x.shape[split + len(positions) :])
        source = te.compute(shape, joined, name="layout_transform.source")

        def element(*index: te.Axis) -> Expr:
            *before, channel = (as_index(i) for i in index[:split])
            if self.to_blocks:
                position = ravel_index([as_index(i) for i in index[split:-1]], positions)
                return source[(*before, channel * lanes + index[-1], position)]
            position = ravel_index([as_index(i) for i in index[split:]], positions)
            return source[(*before, channel // lanes, position, channel % lanes)]

        return RearrangedStages(te.compute(kind.shape, element, name="layout_transform"), source)

    def schedule(self, attrs: object, anchor: RearrangedStages, outputs: Tensors, target: Target) -> Schedule:
        """Read each tile along the innermost axis of x, and write it along that of the result."""
        (x,) = anchor.source.op.inputs
        if any(const_int(extent) is None for extent in anchor.source.shape) and not _is_read_in_order(x):
            return self.of_moved(attrs, anchor, outputs, target)
        schedule, main = schedule_around(anchor.result, outputs, [], target)
        stage = schedule[main]
        outer, positions = list(stage.loops[: self.axis + 1]), list(stage.loops[self.axis + 1 :])
        if self.to_blocks:
            across = positions.pop()
            tile, along = stage.split(stage.fuse(*positions), factor=self.lanes)
        else:
            outer[-1], along = stage.split(outer[-1], factor=self.lanes)
            tile, across = stage.split(stage.fuse(*positions), factor=self.lanes)
        stage.reorder(*outer, tile, along, across)
        stage.unroll(along)
        stage.vectorize(across)
        stage.parallel(stage.fuse(*outer))
        row = anchor.source.ndim - 2
        turn_tiles(schedule, anchor.source, anchor.result, stage, tile, row, self.lanes)
        return schedule


def filled_up(x: Tensor, axis: int, extent: Expr) -> Tensor:
    """x with zeros behind its elements along an axis, so many as the extent has more; x where these are not known."""
    have, whole = const_int(x.shape[axis]), const_int(simplify(extent))
    if have is None or whole is None or whole <= have:
        return x
    more = [whole - have if number == axis else 0 for number in range(x.ndim)]
    return te.pad(x, 0, more, name="layout_transform.filled")


def _is_read_in_order(x: Tensor) -> bool:
    """Whether what x is computed from is read at the place of each element, along some of its axes, or in the order of
    its elements, as of another shape; what is in another shape is no longer read along its axes."""
    pending: list[tuple[Tensor, bool]] = [(x, False)]
    seen = set(pending)
    while pending:
        tensor, is_in_other_shape = pending.pop()
        if not isinstance(tensor.op, ComputeOp):
            if not isinstance(tensor.op, PlaceholderOp):
                return False
            continue
        kinds = (Const,) if is_in_other_shape else (Var, Const)
        own = ravel_index([axis.var for axis in tensor.op.axis], tensor.shape)
        inputs = {id(read): read for read in tensor.op.inputs}
        for read in (read for body in tensor.op.body for read in tensor_reads(body)):
            along_axes = all(isinstance(i, kinds) for i in read.indices)
            if not along_axes and simplify(ravel_index(read.indices, read.tensor.shape) - own) is not ZERO:
                return False
            found = inputs[id(read.tensor)], not along_axes
            if found not in seen:
                seen.add(found)
                pending.append(found)
    return True


def layout_tiles(source: Layout, destination: Layout, lanes: int, of_moved: ScheduleFunction) -> LayoutTiles | None:
    """Tiles for a transform between a layout and the same one with an axis, but the last, in blocks of a vector."""
    blocked, plain = (destination, source) if destination.is_blocked else (source, destination)
    last = blocked.axes[-1]
    if plain.is_blocked or last.block != lanes or blocked.names != plain.names or blocked.ndim != plain.ndim + 1:
        return None
    axis = plain.position(last.name)
    return None if axis == plain.ndim - 1 else LayoutTiles(axis, lanes, destination is blocked, of_moved)
