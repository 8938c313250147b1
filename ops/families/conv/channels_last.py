"""Convolutions of data whose channels stand last: NWC, NHWC, NDHWC. Vectors are of filters, so loads are contiguous.

A register tile is of neighbouring outputs of a row times vectors of filters: each factor of x is broadcast once, each
vector of weights loaded once. The weights are read from panels as wide as a tile, where these are worth copying
together. The compute is the definition (``definition.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from ....base.dataclass import dataclass
from ....base.target import Target
from ....graph.layout import Layout
from ....ir.constants import const_int
from ....ir.expr import Expr
from ....ir.open_extents import MANY_ROWS
from ....ir.row_major import ravel_index
from ....lowering.schedule import LoopView, Schedule, StageView
from ....schedules.around import schedule_around, sums_over
from ....schedules.decide_tile import decide_tile
from ....schedules.default_schedule import schedule_stage
from ....schedules.product import PACKED_USES, schedule_core
from ....schedules.register_tile import RegisterTile, register_tile
from ....te.tensor import Tensor, Tensors
from ...definition.cost import moved
from ...definition.strategy import OpStrategy
from ..window import spatial_axes
from .attrs import ConvAttrs
from .definition import DefinedStages, definition, schedule_copies
from .problem import ConvProblem

UNROLLED_CHANNELS = 4
"""Sums over so few channels are unrolled."""


def add_channels_last(strategy: OpStrategy, problem: ConvProblem) -> None:
    """Offer it where x and the result have their channels last, and tiles do not straddle groups."""
    if not problem.held_in(Layout(f"N{spatial_axes(problem.rank)}C")) or problem.attrs.kernel.is_blocked:
        return
    made = ChannelsLast(problem)
    if made.within_groups:
        strategy.add_implementation(definition, made.schedule, "conv.channels_last", cost=moved(problem.types))


@dataclass(frozen=True, slots=True)
class ChannelsLast:
    """The schedule of a convolution with channels last."""

    problem: ConvProblem

    @property
    def spatial(self) -> tuple[int, ...]:
        """The extents of the outputs' spatial axes, some perhaps assumed."""
        return tuple(const_int(e) or MANY_ROWS for e in self.problem.result.shape[1:-1])

    @property
    def flat(self) -> bool:
        """Whether the rows of tiles run over all outputs of an image, as one axis: a product of matrices."""
        problem = self.problem
        return problem.outputs is not None and problem.is_pointwise and not problem.is_strided

    @property
    def row(self) -> int:
        """How many outputs there are in a row."""
        return math.prod(self.spatial) if self.flat else self.spatial[-1]

    @property
    def tile(self) -> RegisterTile:
        """The tile that takes the least time; of groups, one that does not straddle any, if there is one."""
        problem, columns = self.problem, self.problem.group_filters
        groups, kind, target = problem.attrs.groups, problem.dtype, problem.target
        stride = problem.attrs.strides[-1] * problem.group_channels * groups
        tile = register_tile(self.row, columns, target, kind, stride)
        if groups == 1 or columns % tile.columns == 0:
            return tile
        one_vector = register_tile(self.row, tile.lanes, target, kind, stride)
        return replace(one_vector, lanes=math.gcd(columns, tile.lanes))

    @property
    def within_groups(self) -> bool:
        """Whether there are tiles, of vectors, that straddle no groups."""
        tile = self.tile
        return self.problem.attrs.groups == 1 or (tile.lanes > 1 and self.problem.group_filters % tile.columns == 0)

    def schedule(self, attrs: ConvAttrs, anchor: DefinedStages, outputs: Tensors, target: Target) -> Schedule:
        """Run rows of outputs in parallel, where all weights stay in the cache; else run panels in parallel, each for
        all outputs."""
        sums = anchor.sums
        schedule, main = schedule_around(anchor.result, outputs, [sums, *anchor.copies], target)
        tile = self._decide_tile(schedule, target)
        pack = schedule.decide("pack", [False, True], self._packs(tile))
        panels = self._copy_in_panels(schedule, anchor, tile.columns)
        core = sums_over(schedule, sums, main, self._axes_of_tiles(tile.columns))
        at = self._schedule_tiles(schedule[main], tile)
        schedule[core].compute_at(schedule[main], at)
        channel = schedule[core].loops[-1]
        few = self.problem.group_channels <= UNROLLED_CHANNELS
        schedule_core(schedule, core, tile, [channel] if few else [])
        if pack:
            schedule_stage(schedule[panels], target)
        else:
            schedule[panels].compute_inline()
        schedule_copies(schedule, anchor, attrs, lambda copy: schedule_stage(copy, target))
        return schedule

    def _decide_tile(self, schedule: Schedule, target: Target) -> RegisterTile:
        problem = self.problem
        group = problem.group_filters if problem.attrs.groups > 1 else 0
        return decide_tile(schedule, self.tile, self.row, problem.group_filters, target, columns_divide=group)

    def _packs(self, tile: RegisterTile) -> bool:
        """Whether weights are copied to panels: they are used often enough, or have their filters not last."""
        often = math.prod(self.spatial) >= PACKED_USES * tile.rows and self.problem.filters > tile.columns
        return often or self.problem.attrs.kernel.names[-1] != "O"

    def _copy_in_panels(self, schedule: Schedule, anchor: DefinedStages, width: int) -> Tensor:
        """A copy of the weights, panels[tile, window…, channel, column]."""
        kernel, window = self.problem.attrs.kernel, spatial_axes(self.problem.rank)

        def panel(*index: Expr) -> tuple[Expr, ...]:
            at = dict(zip(kernel.names, index, strict=True))
            return at["O"] // width, *(at[axis] for axis in window), at["I"], at["O"] % width

        pad = 0 if self.problem.filters % width else None
        return schedule.cache_read(anchor.weight, "local", [anchor.sums], pad=pad, axes=panel)

    def _axes_of_tiles(self, width: int) -> Callable[..., tuple[Expr, ...]]:
        """The axes of the sums: n, the positions of an image, as one if they are flat, and filters in tiles."""
        outputs = self.problem.outputs if self.flat else None

        def in_tiles(n: Expr, *index: Expr) -> tuple[Expr, ...]:
            *o, k = index
            return n, *(o if outputs is None else [ravel_index(o, outputs)]), k // width, k % width

        return in_tiles

    def _schedule_tiles(self, stage: StageView, tile: RegisterTile) -> LoopView:
        """Put tiles of what is written inside, and tasks outside; gives the loop at which a tile is summed."""
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
        return inner[-1]

    @property
    def _weights_stay_cached(self) -> bool:
        """Whether the weights stay in the cache; else tiles of all outputs follow each other for one panel."""
        elements = self.problem.reduction_extent * self.problem.filters
        return elements * self.problem.dtype.storage_bytes <= self.problem.target.l2_bytes // 2
