"""An implementation of layout_transform between channels in blocks of a vector and channels not in blocks, as from
NCHW16c to NCHW and back: square tiles of channels and positions, transposed in vector registers."""

from __future__ import annotations

from dataclasses import dataclass

from ... import te
from ...base.target import Target
from ...graph.layout import Layout
from ...graph.types import Type
from ...ir.expr import Expr
from ...ir.makers import as_index
from ...ir.row_major import ravel_index, unravel_index
from ...lowering.schedule import Schedule
from ...schedules.around import schedule_around
from ...schedules.register_transpose import schedule_transposed, transposed
from ...te.tensor import Tensors
from ..definition.relations import tensor_argument


@dataclass(frozen=True, slots=True)
class LayoutTiles:
    """The axis in blocks is number ``axis`` of the plain layout; the axes behind it count as one, the positions."""

    axis: int
    lanes: int
    to_blocks: bool

    def compute(self, attrs: object, inputs: Tensors, result: Type) -> te.Tensor:
        """A tile is read along the innermost axis of x, and written along that of the result."""
        (x,) = inputs
        kind, lanes, split = tensor_argument(result, "result"), self.lanes, self.axis + 1
        positions = kind.shape[split:-1] if self.to_blocks else kind.shape[split:]
        count = ravel_index([extent - 1 for extent in positions], positions) + 1
        outer = kind.shape[: self.axis]
        blocks = kind.shape[self.axis] if self.to_blocks else kind.shape[self.axis] // lanes

        def load(*index: te.Axis) -> Expr:
            *before, block, tile, element = map(as_index, index)
            written, read = element // lanes, element % lanes
            position, lane = (read, written) if self.to_blocks else (written, read)
            position = tile * lanes + position
            at = unravel_index(position, positions)
            where = (*before, block * lanes + lane, *at) if self.to_blocks else (*before, block, *at, lane)
            return te.if_then_else(position < count, x[where], te.const(0, x.dtype))

        shape = (*outer, blocks, (count + (lanes - 1)) // lanes, lanes * lanes)
        rows = te.compute(shape, load, name="layout_transform.rows")
        tiles, *_ = transposed(rows, lanes, "layout_transform")

        def element(*index: te.Axis) -> Expr:
            *before, channel = (as_index(i) for i in index[:split])
            if self.to_blocks:
                position, lane = ravel_index([as_index(i) for i in index[split:-1]], positions), as_index(index[-1])
                return tiles[(*before, channel, position // lanes, position % lanes * lanes + lane)]
            position = ravel_index([as_index(i) for i in index[split:]], positions)
            return tiles[(*before, channel // lanes, position // lanes, channel % lanes * lanes + position % lanes)]

        return te.compute(kind.shape, element, name="layout_transform")

    def schedule(self, attrs: object, anchor: Tensors, outputs: Tensors, target: Target) -> Schedule:
        stages = [*anchor[0].op.inputs]
        while stages[-1].op.name != "layout_transform.rows":
            stages.append(*stages[-1].op.inputs)
        schedule, main = schedule_around(anchor[0], outputs, stages, target)
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
        schedule_transposed(schedule, stages, stage, tile, self.lanes)
        return schedule


def layout_tiles(source: Layout, destination: Layout, lanes: int) -> LayoutTiles | None:
    """Tiles for a transform between a layout and the same one with an axis, but the last, in blocks of a vector."""
    blocked, plain = (destination, source) if destination.is_blocked else (source, destination)
    last = blocked.axes[-1]
    if plain.is_blocked or last.block != lanes or blocked.names != plain.names or blocked.ndim != plain.ndim + 1:
        return None
    axis = plain.position(last.name)
    return None if axis == plain.ndim - 1 else LayoutTiles(axis, lanes, destination is blocked)
