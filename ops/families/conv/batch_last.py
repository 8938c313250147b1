"""Convolutions of data whose batch stands last: WCN, HWCN, DHWCN. Vectors are of images, so loads are contiguous.

At each output position a product of matrices: a register tile is of filters times vectors of images, the weights are
broadcast.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .... import te
from ....base.errors import SelectionError
from ....base.target import Target
from ....graph.layout import Layout, source_index
from ....graph.types import TensorType, Type
from ....ir.expr import Axis, Expr
from ....ir.makers import as_index
from ....lowering.schedule import Schedule
from ....schedules.around import schedule_around
from ....schedules.default_schedule import schedule_stage
from ....schedules.product import schedule_core
from ....schedules.register_tile import RegisterTile, register_tile
from ....te.tensor import Tensors
from ...definition.strategy import Compute, OpStrategy, ScheduleFunction
from ...definition.tile_config import configured_tile
from ..window import padded, spatial_axes
from .attrs import ConvAttrs
from .problem import ConvProblem
from .stages import ConvStages


def add_batch_last(strategy: OpStrategy, problem: ConvProblem) -> None:
    """Offer it where x and the result have their batch last, which is known and half fills a vector."""
    attrs, kind, batch = problem.attrs, problem.result, problem.batch
    if not problem.held_in(Layout(f"{spatial_axes(problem.rank)}CN")) or attrs.kernel.is_blocked or batch is None:
        return
    tile = register_tile(problem.group_filters, batch, problem.target, kind.dtype, divides=attrs.groups > 1)
    plan = BatchLast(attrs, problem.window, problem.group_channels, problem.filters, batch, kind, tile)
    with strategy.specialized(2 * kind.shape[-1] >= tile.lanes):
        strategy.add_implementation(plan.compute, plan.schedule, "conv.batch_last", 15, configure=plan.configure)


@dataclass(frozen=True, slots=True)
class BatchLast:
    """The numbers of a convolution of channels in groups, filters of all groups, and a batch of images."""

    attrs: ConvAttrs
    window: tuple[int, ...]
    channels: int
    filters: int
    batch: int
    result: TensorType
    tile: RegisterTile

    def compute(self, attrs: ConvAttrs, inputs: Tensors, result: Type) -> ConvStages:
        x, weight = inputs
        source = padded(x, attrs.data, attrs.padding, "conv.padded")
        kernel = Layout(f"OI{spatial_axes(attrs.rank)}")
        per_group, width = self.filters // attrs.groups, self.tile.columns
        tiles = math.ceil(self.batch / width)
        c = te.reduce_axis((0, self.channels), name="c")
        taps = [te.reduce_axis((0, w), name=f"r{d}") for d, w in enumerate(self.window)]

        def element(*index: Axis) -> Expr:
            *o, k, t, j = (as_index(i) for i in index)
            place = (i * s + tap * d for i, s, tap, d in zip(o, attrs.strides, taps, attrs.dilation, strict=True))
            n, channel = t * width + j, c if attrs.groups == 1 else k // per_group * self.channels + c
            value: Expr = source[(*place, channel, n)]
            if tiles * width > self.batch:
                value = te.if_then_else(n < self.batch, value, te.const(0, x.dtype))
            factor = weight[source_index([as_index(i) for i in (k, c, *taps)], attrs.kernel, kernel)]
            return te.sum(value * factor, axis=[*taps, c])

        core = te.compute((*self.result.shape[:-1], tiles, width), element, name="conv.sums")

        def unfold(*index: Axis) -> Expr:
            *o, k, n = (as_index(i) for i in index)
            return core[(*o, k, n // width, n % width)]

        return ConvStages(te.compute(self.result.shape, unfold, name="conv"), x, source, weight, core)

    def schedule(self, attrs: ConvAttrs, anchor: ConvStages, outputs: Tensors, target: Target) -> Schedule:
        core = anchor.sums
        schedule, main = schedule_around(anchor.result, outputs, [core, *anchor.copies], target)
        stage, tile = schedule[main], self.tile
        *o, k, n = stage.loops
        t, column = stage.split(n, factor=tile.columns)
        block, row = stage.split(k, factor=tile.rows)
        vector, lane = stage.split(column, factor=tile.lanes)
        stage.vectorize(lane)
        stage.reorder(*o, t, block, row, vector, lane)
        stage.parallel(stage.fuse(*o))
        schedule[core].compute_at(stage, block)
        schedule_core(schedule, core, tile)
        for copy in anchor.copies:
            schedule_stage(schedule[copy], target)
        return schedule

    def configure(self, config: Mapping[str, Any]) -> tuple[Compute, ScheduleFunction]:
        """The compute and the schedule with the ``rows`` and ``vectors`` of a tuning record."""
        tile = configured_tile(config, self.tile)
        if self.filters // self.attrs.groups % tile.rows and self.attrs.groups > 1:
            raise SelectionError(f"the config's tile of {tile.rows} filters straddles groups")
        made = replace(self, tile=tile)
        return made.compute, made.schedule
