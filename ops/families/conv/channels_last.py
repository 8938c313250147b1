"""Convolutions of data whose channels stand last: NWC, NHWC, NDHWC. Vectors are of filters, so loads are contiguous.

A register tile is of neighbouring outputs of a row times vectors of filters: each factor of x is broadcast once, each
vector of weights loaded once. The weights are read from panels as wide as a tile, where these are worth copying
together.
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
from ....ir.constants import const_int
from ....ir.expr import Axis, Expr
from ....ir.makers import as_index
from ....ir.open_extents import MANY_ROWS
from ....ir.row_major import ravel_index, unravel_index
from ....lowering.schedule import Schedule
from ....schedules.around import schedule_around
from ....schedules.default_schedule import schedule_stage
from ....schedules.product import PACKED_USES, schedule_core
from ....schedules.register_tile import RegisterTile, register_tile
from ....te.tensor import Tensors
from ...definition.strategy import Compute, OpStrategy, ScheduleFunction
from ...definition.tile_config import configured_panels
from ..window import padded, spatial_axes
from .attrs import ConvAttrs
from .problem import ConvProblem
from .stages import ConvStages

UNROLLED_CHANNELS = 4
"""Sums over so few channels are unrolled."""


def add_channels_last(strategy: OpStrategy, problem: ConvProblem) -> None:
    """Offer it where x and the result have their channels last, and tiles do not straddle groups."""
    if not problem.held_in(Layout(f"N{spatial_axes(problem.rank)}C")) or problem.attrs.kernel.is_blocked:
        return
    plan = ChannelsLast(
        problem.attrs, problem.window, problem.group_channels, problem.filters, problem.result, problem.target
    )
    if plan.within_groups:
        strategy.add_implementation(plan.compute, plan.schedule, "conv.channels_last", 15, configure=plan.configure)


@dataclass(frozen=True, slots=True)
class ChannelsLast:
    """The numbers of a convolution of channels in groups, and filters of all groups."""

    attrs: ConvAttrs
    window: tuple[int, ...]
    channels: int
    filters: int
    result: TensorType
    target: Target
    given_tile: RegisterTile | None = None  # by a tuning record
    given_pack: bool | None = None

    @property
    def spatial(self) -> tuple[int, ...]:
        """The extents of the outputs' spatial axes, some perhaps assumed."""
        return tuple(const_int(e) or MANY_ROWS for e in self.result.shape[1:-1])

    @property
    def flat(self) -> bool:
        """Whether the rows of tiles run over all outputs of an image, as one axis: a product of matrices."""
        known = all(const_int(e) is not None for e in self.result.shape[1:-1])
        return known and all(n == 1 for n in (*self.window, *self.attrs.strides)) and not any(self.attrs.padding)

    @property
    def row(self) -> int:
        """How many outputs there are in a row."""
        return math.prod(self.spatial) if self.flat else self.spatial[-1]

    @property
    def tile(self) -> RegisterTile:
        if self.given_tile is not None:
            return self.given_tile
        stride = self.attrs.strides[-1] * self.channels * self.attrs.groups
        columns, kind = self.filters // self.attrs.groups, self.result.dtype
        tile = register_tile(self.row, columns, self.target, kind, stride)
        if self.attrs.groups == 1 or columns % tile.columns == 0:
            return tile
        one_vector = register_tile(self.row, tile.lanes, self.target, kind, stride)
        return replace(one_vector, lanes=math.gcd(columns, tile.lanes))

    @property
    def within_groups(self) -> bool:
        """Whether there are tiles, of vectors, that straddle no groups."""
        per_group = self.filters // self.attrs.groups
        return self.attrs.groups == 1 or (self.tile.lanes > 1 and per_group % self.tile.columns == 0)

    @property
    def packed(self) -> bool:
        """Whether weights are copied to panels: they are used often enough, or have their filters not last."""
        if self.given_pack is not None:
            return self.given_pack
        often = math.prod(self.spatial) >= PACKED_USES * self.tile.rows and self.filters > self.tile.columns
        return often or self.attrs.kernel.names[-1] != "O"

    def compute(self, attrs: ConvAttrs, inputs: Tensors, result: Type) -> ConvStages:
        x, weight = inputs
        source = padded(x, attrs.data, attrs.padding, "conv.padded")
        width = self.tile.columns
        tiles = math.ceil(self.filters / width)
        panels = self._panels(weight, tiles, width)
        c = te.reduce_axis((0, self.channels), name="c")
        taps = [te.reduce_axis((0, w), name=f"r{d}") for d, w in enumerate(self.window)]

        def element(n: Axis, *index: Axis) -> Expr:
            *o, t, j = (as_index(i) for i in index)
            at = unravel_index(o[0], self.spatial) if self.flat else o
            place = (i * s + tap * d for i, s, tap, d in zip(at, attrs.strides, taps, attrs.dilation, strict=True))
            channel = c if attrs.groups == 1 else t // (tiles // attrs.groups) * self.channels + c
            return te.sum(source[(n, *place, channel)] * panels[(t, *taps, c, j)], axis=[*taps, c])

        shape = self.result.shape
        rows = (self.row,) if self.flat else shape[1:-1]
        core = te.compute((shape[0], *rows, tiles, width), element, name="conv.sums")

        def unfold(n: Axis, *index: Axis) -> Expr:
            *o, k = (as_index(i) for i in index)
            at = (ravel_index(o, self.spatial),) if self.flat else o
            return core[(n, *at, k // width, k % width)]

        return ConvStages(te.compute(shape, unfold, name="conv"), x, source, panels, core)

    def _panels(self, weight: te.Tensor, tiles: int, width: int) -> te.Tensor:
        kernel = Layout(f"OI{spatial_axes(self.attrs.rank)}")

        def element(t: Axis, *index: Axis) -> Expr:
            *taps, c, j = (as_index(i) for i in index)
            k = t * width + j
            value = weight[source_index((k, c, *taps), self.attrs.kernel, kernel)]
            whole = tiles * width == self.filters
            return value if whole else te.if_then_else(k < self.filters, value, te.const(0, weight.dtype))

        return te.compute((tiles, *self.window, self.channels, width), element, name="conv.panels")

    def schedule(self, attrs: ConvAttrs, anchor: ConvStages, outputs: Tensors, target: Target) -> Schedule:
        core, panels = anchor.sums, anchor.weight
        schedule, main = schedule_around(anchor.result, outputs, [core, panels, *anchor.copies], target)
        stage, tile = schedule[main], self.tile
        n, *o, k = stage.loops
        *outer, row = [stage.fuse(*o)] if self.flat else o
        t, column = stage.split(k, factor=tile.columns)
        block, row = stage.split(row, factor=tile.rows)
        vector, lane = stage.split(column, factor=tile.lanes)
        stage.vectorize(lane)
        if not self._weights_stay_cached:
            outer, inner = [n, t], [*outer, block]
        elif self.flat:
            outer, inner = [n, block], [t]
        else:
            outer, inner = [n, *outer], [t, block]
        stage.reorder(*outer, *inner, row, vector, lane)
        stage.parallel(stage.fuse(*outer))
        schedule[core].compute_at(stage, inner[-1])
        channel = schedule[core].loops[-1]
        schedule_core(schedule, core, tile, [channel] if self.channels <= UNROLLED_CHANNELS else [])
        if self.packed:
            schedule_stage(schedule[panels], target)
        else:
            schedule[panels].compute_inline()
        for copy in anchor.copies:
            schedule_stage(schedule[copy], target)
        return schedule

    @property
    def _weights_stay_cached(self) -> bool:
        """Whether the weights stay in the cache; else tiles of all outputs follow each other for one panel."""
        elements = math.prod(self.window) * self.channels * self.filters
        return elements * self.result.dtype.storage_bytes <= self.target.l2_bytes // 2

    def configure(self, config: Mapping[str, Any]) -> tuple[Compute, ScheduleFunction]:
        """The compute and the schedule with the ``rows``, ``vectors`` and ``pack`` of a tuning record."""
        tile, pack = configured_panels(config, self.tile, self.packed)
        made = replace(self, given_tile=tile, given_pack=pack)
        if not made.within_groups:
            raise SelectionError(f"the config's tile of {tile.columns} filters straddles groups")
        return made.compute, made.schedule
