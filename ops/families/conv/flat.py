"""Schedules of convolutions for known extents, with all spatial axes as one: vectors fit, loads are contiguous.

Windows of one element (pointwise): a product of matrices, weight[k, c] · x[c, positions].

Else, for a stride s, the source is copied in phases, copy[n, c, phase, j] = padded x[n, c, j·s + phase], where the
tap r·dilation = shift·s + phase is at the constant distance ``shift``; a row of the copy is as wide as a row of
outputs plus the largest shift. So a tap is at a constant distance in the flattened copy too, and the sums are
products of matrices with shifted columns. Positions between the end of an output row and the begin of the next are
computed, too.

The compute is the definition (``definition.py``): ``cache_read`` and ``cache_write`` make one axis of the spatial ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ....base.dataclass import dataclass
from ....base.target import Target
from ....ir.constants import const_int
from ....ir.expr import Expr
from ....ir.row_major import ravel_index
from ....lowering.schedule import LoopView, Schedule, StageView
from ....schedules.around import schedule_around, sums_over
from ....schedules.blocks import largest_divisor
from ....schedules.decide_tile import decide_tile
from ....schedules.machine import CORE
from ....schedules.product import PACKED_USES, schedule_core, schedule_product
from ....schedules.register_tile import RegisterTile, register_tile
from ....te.tensor import Tensor, Tensors
from ...definition.cost import elements, moved, multiplied
from ...definition.strategy import OpStrategy
from .attrs import ConvAttrs
from .definition import DefinedStages, definition
from .problem import ConvProblem

UNROLLED_TAPS = 3
"""Windows up to this extent on the last axis are unrolled."""


@dataclass(frozen=True, slots=True)
class Flat:
    """A convolution to ``outputs``, all extents of which are known but the number of images, and its register tile."""

    problem: ConvProblem
    outputs: tuple[int, ...]
    tile: RegisterTile

    @staticmethod
    def of(problem: ConvProblem, outputs: tuple[int, ...], factors: int) -> Flat:
        """The convolution with the tile that takes the least time, for sums of so many products."""
        one = Flat(problem, outputs, RegisterTile(1, 1, problem.lanes))
        filters, kind = problem.group_filters, problem.dtype
        return replace(one, tile=register_tile(filters, one.positions, problem.target, kind, factors, divides=True))

    @property
    def widths(self) -> tuple[int, ...]:
        """Extents of a phase of the source, which an output and all of its taps are in."""
        a = self.problem.attrs
        moves = zip(self.outputs, self.problem.window, a.dilation, a.strides, strict=True)
        return tuple(o + (w - 1) * d // s for o, w, d, s in moves)

    @property
    def positions(self) -> int:
        """How many there are from the first output to the last one, in the flattened source."""
        return 1 + ravel_index([o - 1 for o in self.outputs], self.widths)

    def decide_tile(self, schedule: Schedule, target: Target) -> RegisterTile:
        """The tile by decisions of a schedule; its rows are filters of one group."""
        filters = self.problem.group_filters
        return decide_tile(schedule, self.tile, filters, self.positions, target, rows_divide=filters)


def add_flat(strategy: OpStrategy, problem: ConvProblem) -> None:
    """Offer the flattened implementation, where it can serve: N and C before the spatial axes, all known but N."""
    x, kind, outputs = problem.x, problem.result, problem.outputs
    if not (problem.is_plain and problem.has_plain_kernel) or outputs is None:
        return
    flat = Flat.of(problem, outputs, problem.reduction_extent)
    images = elements(kind) // math.prod(outputs)
    positions = images * math.ceil(flat.positions / flat.tile.columns) * flat.tile.columns
    alone = problem.is_depthwise and problem.group_filters == 1
    strided = CORE.shares.strided_alone if alone else CORE.shares.strided
    efficiency = strided if problem.is_strided else CORE.shares.flat
    copied = [] if problem.is_pointwise else [x, x]
    cost = multiplied(positions * problem.reduction_extent, kind.dtype, problem.target, efficiency)
    cost += moved([*problem.types, *copied])
    if problem.is_pointwise:
        pointwise = Pointwise(flat, problem.is_strided or problem.group_filters >= PACKED_USES * flat.tile.rows)
        strategy.add_implementation(definition, pointwise.schedule, "conv.pointwise", cost=cost)
    else:
        strategy.add_implementation(definition, Shifted(flat).schedule, "conv.shifted", cost=cost)


@dataclass(frozen=True, slots=True)
class Pointwise:
    """A product of matrices, with the columns in panels of a register tile's width, which are copies if ``pack`` is
    decided, as by default."""

    flat: Flat
    pack: bool

    def schedule(self, attrs: ConvAttrs, anchor: DefinedStages, outputs: Tensors, target: Target) -> Schedule:
        """The schedule of the definition, as a product of weights with panels of positions."""
        return self.schedule_sums(anchor, outputs, target)

    def schedule_sums(
        self, anchor: DefinedStages, outputs: Tensors, target: Target, keep: Sequence[Tensor] = ()
    ) -> Schedule:
        """Schedule sums of any terms, and what follows them. ``keep`` are stages that the caller schedules."""
        extents, sums = self.flat.outputs, anchor.sums
        schedule, main = schedule_around(anchor.result, outputs, [sums, *anchor.copies, *keep], target)
        tile = self.flat.decide_tile(schedule, target)
        pack = schedule.decide("pack", [False, True], self.pack)
        width = tile.columns

        def panel(n: Expr, c: Expr, *o: Expr) -> tuple[Expr, ...]:
            position = ravel_index(o, extents)
            return n, position // width, c, position % width

        def in_tiles(n: Expr, k: Expr, *o: Expr) -> tuple[Expr, ...]:
            position = ravel_index(o, extents)
            return n, k, position // width, position % width

        panels = schedule.cache_read(anchor.source, "local", [sums], pad=0, axes=panel)
        for source in anchor.copies:
            schedule[source].compute_inline()
        core = sums_over(schedule, sums, main, in_tiles)
        schedule_product(schedule, main, core, panels, pack, tile, target)
        return schedule


@dataclass(frozen=True, slots=True)
class Shifted:
    """Products of matrices with shifted columns, of a source in phases."""

    flat: Flat

    def schedule(self, attrs: ConvAttrs, anchor: DefinedStages, outputs: Tensors, target: Target) -> Schedule:
        """The schedule of the definition, as products of weights with shifted positions of a copy in phases."""
        return self.schedule_sums(anchor, outputs, target)

    def schedule_sums(
        self, anchor: DefinedStages, outputs: Tensors, target: Target, keep: Sequence[Tensor] = ()
    ) -> Schedule:
        """Schedule sums of any terms, and what follows them. ``keep`` are stages that the caller schedules."""
        sums, widths = anchor.sums, self.flat.widths
        schedule, main = schedule_around(anchor.result, outputs, [sums, *anchor.copies, *keep], target)
        tile = self.flat.decide_tile(schedule, target)
        copy = copy_in_phases(schedule, anchor, self.flat)
        core = sums_over(schedule, sums, main, lambda n, k, *o: (n, k, ravel_index(o, widths)))
        stage = schedule[main]
        n, k, *spatial = stage.loops
        block, _ = stage.split(k, factor=tile.rows)
        _, lane = stage.split(spatial[-1], factor=lanes_for(self.flat.outputs[-1], tile.lanes))
        stage.vectorize(lane)
        tasks = stage.fuse(n, block)
        stage.parallel(tasks)
        schedule[core].compute_at(stage, tasks)
        schedule_phases(schedule, copy, self.flat)
        schedule_core(schedule, core, tile, self._unrolled(schedule[core], core.ndim), in_tiles=False)
        return schedule

    def _unrolled(self, core: StageView, spatial: int) -> list[LoopView]:
        """The loops of the sums to unroll, in an order of the sums' terms in which weights lie side by side."""
        window, (channel, *taps) = self.flat.problem.window, core.loops[spatial:]
        if self.flat.problem.has_plain_kernel:
            return taps[-1:] if window[-1] <= UNROLLED_TAPS else []
        count = const_int(core.op.reduce_axis[0].extent) or 1
        channel, step = core.split(channel, factor=largest_divisor(count, CORE.steps_unrolled))
        core.reorder(*taps, channel, step)
        return [step]


def copy_in_phases(schedule: Schedule, anchor: DefinedStages, flat: Flat) -> Tensor:
    """A copy of the source, in which a tap is at a constant distance from an output: copy[n, c, phase…, j]."""
    widths, steps = flat.widths, anchor.steps
    strides = [s // step for s, step in zip(flat.problem.attrs.strides, steps, strict=True)]

    def in_phases(n: Expr, c: Expr, *i: Expr) -> tuple[Expr, ...]:
        phases = [index % s for index, s in zip(i, strides, strict=True) if s > 1]
        within = [index // s if s > 1 else index for index, s in zip(i, strides, strict=True)]
        return n, c, *phases, ravel_index(within, widths)

    copy = schedule.cache_read(anchor.source, "local", [anchor.sums], pad=0, axes=in_phases)
    for source in anchor.copies:
        schedule[source].compute_inline()
    return copy


def schedule_phases(schedule: Schedule, copy: Tensor, flat: Flat) -> None:
    """Copy row by row, channels in parallel."""
    stage, widths = schedule[copy], flat.widths
    n, c, *_, position = stage.loops
    stage.parallel(stage.fuse(n, c))
    for d in range(1, len(widths)):
        _, position = stage.split(position, factor=math.prod(widths[d:]), tail="round_up" if d == 1 else "guard")
    if flat.problem.attrs.strides[-1] == 1:
        _, lane = stage.split(position, factor=lanes_for(widths[-1], flat.tile.lanes))
        stage.vectorize(lane)


def lanes_for(extent: int, lanes: int) -> int:
    """The widest vectors that an axis half fills."""
    while lanes > 1 and extent <= lanes // 2:
        lanes //= 2
    return lanes
