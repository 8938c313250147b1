"""The schedule of transposed convolutions of known extents, as convolutions of stride 1: one for each of the phases
that positions of the result fall into.

Position o is s·m + phase - pad for a stride s. The taps that reach a phase are those with r·dilation = phase + s·shift,
which read x at m - shift. So the sums are computed with the phases as axes of their own (``cache_write``), whose loops
are unrolled, as is the digit of a tap that says which phase it reaches; then a position of the result chooses its sum.
Phases after the last one that a tap reaches have no sums: the definition says that their positions are zero.
All spatial axes of a phase are one, as in ``flat.py``: a tap is at a constant distance in the copy of x.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ....base.dataclass import dataclass
from ....base.target import Target
from ....graph.types import TensorType
from ....ir.expr import Expr
from ....ir.functions import are_costly
from ....ir.row_major import ravel_index
from ....lowering.schedule import LoopView, Schedule, StageView
from ....schedules.around import schedule_around, sums_over
from ....schedules.decide_tile import decide_tile
from ....schedules.product import schedule_core
from ....schedules.register_tile import RegisterTile, register_tile
from ....te.tensor import Tensor, Tensors
from .flat import lanes_for
from .transpose_definition import ConvTransposeAttrs, TransposedStages


@dataclass(frozen=True, slots=True)
class Phased:
    """A transposed convolution, all extents of which are known but the number of images."""

    attrs: ConvTransposeAttrs
    window: tuple[int, ...]
    filters: int
    outputs: tuple[int, ...]
    target: Target
    result: TensorType

    @property
    def firsts(self) -> tuple[int, ...]:
        """The least m, per axis."""
        return tuple(p // s for p, s in zip(self.attrs.padding, self.attrs.strides, strict=False))

    @property
    def shifts(self) -> tuple[int, ...]:
        """The largest shift, per axis."""
        a = self.attrs
        return tuple((w - 1) * d // s for w, d, s in zip(self.window, a.dilation, a.strides, strict=True))

    @property
    def counts(self) -> tuple[int, ...]:
        """How many values m takes, per axis."""
        a = self.attrs
        return tuple(
            (p + o - 1) // s - f + 1
            for p, o, s, f in zip(a.padding, self.outputs, a.strides, self.firsts, strict=False)
        )

    @property
    def widths(self) -> tuple[int, ...]:
        """The extents of the padded source per axis, which an output of a phase and all of its taps are in."""
        return tuple(c + s for c, s in zip(self.counts, self.shifts, strict=True))

    @property
    def positions(self) -> int:
        """How many positions there are from the first output of a phase to its last one, in the flattened source."""
        return 1 + ravel_index([c - 1 for c in self.counts], self.widths)

    @property
    def group_filters(self) -> int:
        """How many filters a group has."""
        return self.filters // self.attrs.groups

    @property
    def tile(self) -> RegisterTile:
        """The register tile of the sums of a phase; its rows are filters of one group, which they divide."""
        return register_tile(self.group_filters, self.positions, self.target, self.result.dtype, divides=True)

    def schedule(
        self, attrs: ConvTransposeAttrs, anchor: TransposedStages, outputs: Tensors, target: Target
    ) -> Schedule:
        """The schedule of the definition: blocks of filters of each sample are parallel tasks, which compute the sums
        of all phases and then write them interleaved, row by row where functions are computed of them."""
        schedule, main = schedule_around(anchor.result, outputs, [anchor.sums, anchor.source], target)
        filters = self.group_filters
        tile = decide_tile(schedule, self.tile, filters, self.positions, target, rows_divide=filters)
        copy = schedule.cache_read(
            anchor.source, "local", [anchor.sums], pad=0, axes=lambda n, c, *i: (n, c, ravel_index(i, self.widths))
        )
        schedule[anchor.source].compute_inline()
        by_rows = main is not anchor.result and are_costly(schedule[main].bodies)
        if by_rows:
            core = schedule.cache_write(anchor.sums, "local", axes=self._by_phases)
        else:
            core = sums_over(schedule, anchor.sums, main, self._by_phases)
        stage = schedule[main]
        n, k, *spatial = stage.loops[: main.ndim]
        block, filter_of_block = stage.split(k, factor=tile.rows)
        if by_rows:
            self._schedule_rows(stage, schedule[anchor.sums], [filter_of_block, *spatial], tile)
        else:
            _unroll_phases(stage, spatial, attrs.strides)
        tasks = stage.fuse(n, block)
        stage.parallel(tasks)
        schedule[core].compute_at(stage, tasks)
        self._schedule_copy(schedule[copy], tile)
        self._schedule_core(schedule, core, tile)
        return schedule

    def _schedule_rows(self, stage: StageView, sums: StageView, loops: list[LoopView], tile: RegisterTile) -> None:
        """A row of the result at a time: its sums are interleaved, and what is fused after them is in vectors."""
        *outer, row = loops
        strides = self.attrs.strides
        _, lane = stage.split(row, factor=tile.lanes)
        stage.vectorize(lane)
        sums.compute_at(stage, _unroll_phases(stage, outer, (1, *strides[:-1]))[-1])
        _unroll_phases(sums, [sums.loops[len(strides) + 1]], strides[-1:])

    def _by_phases(self, n: Expr, k: Expr, *o: Expr) -> tuple[Expr, ...]:
        """The axes of the sums: n, the phases of strides above 1, k, and m from the first one on, over all axes."""
        a = self.attrs
        padded = [(i + p % s, s) for i, p, s in zip(o, a.padding, a.strides, strict=False)]
        phases = [z % s for z, s in padded if s > 1]
        return n, *phases, k, ravel_index([z // s for z, s in padded], self.widths)

    def _schedule_copy(self, stage: StageView, tile: RegisterTile) -> None:
        """Row by row, channels in parallel."""
        n, c, position = stage.loops
        stage.parallel(stage.fuse(n, c))
        for d in range(1, len(self.widths)):
            factor = math.prod(self.widths[d:])
            _, position = stage.split(position, factor=factor, tail="round_up" if d == 1 else "guard")
        _, lane = stage.split(position, factor=lanes_for(self.widths[-1], tile.lanes))
        stage.vectorize(lane)

    def _schedule_core(self, schedule: Schedule, core: Tensor, tile: RegisterTile) -> None:
        stage = schedule[core]
        unrolled = [*stage.loops[1 : core.ndim - 2]]
        taps = stage.loops[core.ndim + 1 :]
        for tap, stride in zip(taps, self.attrs.strides, strict=True):
            if stride > 1:
                _, digit = stage.split(tap, factor=stride)
                unrolled.append(digit)
        schedule_core(schedule, core, tile, unrolled, in_tiles=False)


def _unroll_phases(stage: StageView, loops: Sequence[LoopView], strides: Sequence[int]) -> list[LoopView]:
    """Unroll the phases of loops over positions; gives the innermost loop over each."""
    innermost = []
    for loop, stride in zip(loops, strides, strict=True):
        phase = stage.split(loop, factor=stride)[1] if stride > 1 else loop
        if stride > 1:
            stage.unroll(phase)
        innermost.append(phase)
    return innermost
