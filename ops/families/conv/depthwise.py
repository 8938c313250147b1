"""Depthwise convolutions: each channel has filters of its own, so that nothing is summed over channels.

With the spatial axes last, vectors are of neighbours in a row; of channels, where these stand last. A register tile is
of a few outputs below or beside each other; they share what they read, as a small window is unrolled. Of a large one a
column is unrolled: outputs below each other share its weights, too, and all of that fits in registers. The compute is
the definition (``definition.py``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ....base.dataclass import dataclass
from ....base.target import Target
from ....graph.layout import Layout
from ....graph.node import Call, tensor_of
from ....ir.constants import const_int
from ....ir.expr import Expr
from ....lowering.relations import Tail
from ....lowering.schedule import LoopView, Schedule, StageView
from ....schedules.around import schedule_around_sums
from ....schedules.blocks import largest_divisor
from ....schedules.default_schedule import schedule_stage
from ....schedules.gaps import with_last
from ....schedules.machine import CORE
from ....schedules.vector_rows import copied_in_phases, vectorize_row
from ....te.tensor import Tensor, Tensors
from ...definition.accumulate import is_byte
from ...definition.condition import clause
from ...definition.cost import elements, moved
from ...definition.strategy import OpStrategy
from ..window import spatial_axes
from .attrs import ConvAttrs
from .definition import DefinedStages, definition, last_read
from .flat import lanes_for
from .problem import ConvProblem

MOST_ROWS = 8
"""Outputs of a tile, each a vector: they and the weights of a small window fit in 32 registers, or nearly in 16."""
MOST_UNROLLED = 400
"""Terms of a tile's sums up to which a window, or a column of it, is unrolled as a whole; else only its last axis."""
SHORT_ROW = 8
"""Rows of an open length up to this have vectors of so many lanes, where others are longer: these take less to load."""
READ_AS_THEY_LIE, FEW_COLUMNS, REGISTERS_TO_READ, LOW_WINDOW = 2, 5, 32, 3
"""Rows of an open length are read as they lie at this stride, for windows of so many columns at most, by a core of so
many vector registers; windows of at most so many rows then have as many outputs below each other as may be."""
NEIGHBOURS_PER_CYCLE, STRIDED_PER_CYCLE, SHORT_STRIDED_PER_CYCLE = 1.6, 0.45, 0.65
"""Vectors that are multiplied in a cycle, if a core can do so many: of positions side by side, of positions apart,
which are copied first, and of these in vectors that leave a part of the core's units idle: a copy holds several."""


def add_depthwise(strategy: OpStrategy, problem: ConvProblem) -> None:
    """Offer one where x and the result are in the same layout: N, C, …, or N, …, C of known extents but for N."""
    if problem.attrs.kernel.is_blocked:
        return
    made = Depthwise.of(problem)
    alone = clause("each channel is a group", problem.is_depthwise)
    if problem.is_plain:
        width = problem.open_width
        if width is not None and problem.lanes >= 2 * SHORT_ROW:
            short = replace(made, outputs=(*made.outputs[:-1], SHORT_ROW)).in_usual_order
            with strategy.specialized(alone, clause("short rows", width <= SHORT_ROW)):
                strategy.add_implementation(
                    definition,
                    short.schedule_rows,
                    "conv.depthwise_short_rows",
                    keeps_order=not short.by_columns,
                    cost=made.cost(),
                )
        with strategy.specialized(alone):
            strategy.add_implementation(
                definition,
                made.schedule_rows,
                "conv.depthwise",
                keeps_order=not made.by_columns,
                cost=made.cost(),
            )
            if made.by_columns:
                in_order = replace(made, by_columns=False)
                strategy.add_implementation(
                    definition, in_order.schedule_rows, "conv.depthwise_in_order", cost=made.cost()
                )
    elif problem.outputs is not None and problem.held_in(Layout(f"N{spatial_axes(problem.rank)}C")):
        with strategy.specialized(alone, clause("one filter a channel", problem.group_filters == 1)):
            strategy.add_implementation(
                definition, made.schedule_channels, "conv.depthwise_channels_last", cost=moved(problem.types)
            )


def axes_of_rows(call: Call) -> int | None:
    """How many axes a row has, of x in N, C, …: the spatial ones. Its channels are computed apart, so that rows may lie
    anywhere."""
    attrs: ConvAttrs = call.attrs
    x, weight = (tensor_of(argument) for argument in call.args)
    plain = attrs.data is attrs.out is Layout(f"NC{spatial_axes(attrs.rank)}")
    served = x.dtype.is_float or is_byte(x.dtype)
    alone = attrs.groups > 1 and const_int(attrs.kernel.extents(weight.shape)["I"]) == 1
    return attrs.rank if plain and alone and served else None


@dataclass(frozen=True, slots=True)
class Depthwise:
    """The schedules of a depthwise convolution to ``outputs``, or, where these are open, to about so many. A large
    window in rows may be gone through column by column, which is another order of the sums. What rows read is
    ``copied`` where it costs much to make, or moves by several elements."""

    problem: ConvProblem
    outputs: tuple[int, ...]
    by_columns: bool = False
    copied: bool = False

    @staticmethod
    def of(problem: ConvProblem, copied: bool = False) -> Depthwise:
        """The schedule that goes through windows as is best."""
        return Depthwise(problem, problem.assumed_outputs, copied=copied).in_usual_order

    @property
    def in_usual_order(self) -> Depthwise:
        """The same with windows gone through as is best: by columns where they are large, or read as they lie."""
        return replace(self, by_columns=self.problem.is_plain and (self.is_crowded or self.reads_every_second))

    @property
    def is_open(self) -> bool:
        """Whether some extent of the result, beside the batch, is."""
        return self.problem.outputs is None

    @property
    def rows(self) -> int:
        """How many vectors below each other a tile has: of an open number, as many as may be where their window is
        gone through by columns, else half of that, since there may be few. The more rows there are, the fewer vectors
        are loaded for each of them where a window is high: of a known number, the last tile may then have some to
        spare."""
        if self.is_open:
            low = self.reads_every_second and max(self.problem.window[:-1], default=1) <= LOW_WINDOW
            most = self.by_columns and (low or not self.problem.is_strided)
            return MOST_ROWS if most else MOST_ROWS // 2
        if len(self.outputs) == 1:
            return 1
        height = self.outputs[-2]
        high = self.by_columns and math.prod(self.problem.window[:-1]) > MOST_ROWS // 2
        if high and 2 * largest_divisor(height, MOST_ROWS) < MOST_ROWS < height:
            return math.ceil(height / math.ceil(height / MOST_ROWS))
        return rows_for(height)

    @property
    def is_crowded(self) -> bool:
        """Whether to go through the window column by column: it does not fit beside a tile."""
        window = self.problem.window
        crowded = math.prod(window) + MOST_ROWS > self.problem.target.vector_registers
        return crowded and 1 < math.prod(window[:-1]) <= MOST_UNROLLED // MOST_ROWS

    @property
    def reads_every_second(self) -> bool:
        """Whether rows of open length are best read as they lie, every second element of two vectors, by windows that
        are gone through column by column: one instruction takes these for each column. A copy in phases, which takes
        two for all columns, is made of a row that ends anywhere, and takes longer, if there are registers for the tile
        and what it reads."""
        problem = self.problem
        strided = problem.is_plain and problem.open_width is not None and problem.attrs.strides[-1] == READ_AS_THEY_LIE
        suits = len(problem.window) > 1 and problem.window[-1] <= FEW_COLUMNS
        registers = problem.target.vector_registers >= REGISTERS_TO_READ
        return strided and suits and registers and self.outputs[-1] > SHORT_ROW and not self.copied

    # N, C, …: vectors of neighbours in a row

    def cost(self) -> float:
        """Cycles, by what was measured on layers of usual networks. Vectors that do not fill the path through a core's
        units take as long as those that do."""
        problem = self.problem
        rate = STRIDED_PER_CYCLE if problem.is_strided else NEIGHBOURS_PER_CYCLE
        taken = max(self.lanes, problem.lanes * problem.target.fma_per_cycle // CORE.full_rate)
        if problem.is_strided and taken > self.lanes:
            rate = SHORT_STRIDED_PER_CYCLE
        filled = math.ceil(self.outputs[-1] / self.lanes) * taken / max(1, self.outputs[-1])
        vectors = filled * elements(problem.result) * math.prod(problem.window) / problem.lanes
        return vectors / min(rate, problem.target.fma_per_cycle) + moved([problem.x, problem.result])

    @property
    def lanes(self) -> int:
        """How many neighbours in a row make a vector: half of a whole vector, where that takes half the time and leaves
        fewer lanes without an output."""
        width, target = self.outputs[-1], self.problem.target
        lanes = lanes_for(width, self.problem.lanes)
        halves = target.fma_per_cycle < CORE.full_rate and lanes == self.problem.lanes > SHORT_ROW
        return lanes // 2 if halves and math.ceil(width / (lanes // 2)) % 2 else lanes

    def schedule_rows(self, attrs: ConvAttrs, anchor: DefinedStages, outputs: Tensors, target: Target) -> Schedule:
        """Run channels in parallel; each computes tiles of vectors below each other, and their epilogue. Rows of sums
        go on to the end of their last vector, and so does what these read. What is open goes on to a whole tile."""
        schedule, core, main = schedule_around_sums(anchor.result, anchor.sums, outputs, anchor.copies, target)
        by_columns, rows, copy = self._decide_rows(schedule, anchor)
        stage = schedule[main]
        n, k, *o = stage.loops[: main.ndim]
        c, filters = stage.split(k, factor=self.problem.group_filters)
        t, lane = stage.split(o[-1], factor=self.lanes)
        stage.vectorize(lane)
        task = stage.fuse(n, c)
        stage.parallel(task)
        block = task
        if len(o) > 1:
            block, row = stage.split(o[-2], factor=rows)
            stage.reorder(task, filters, *o[:-2], block, t, row, lane)
            stage.unroll(row)
        source = self._copy_beyond_rows(schedule, anchor, core)
        schedule[core].compute_at(stage, t)
        self._sum_rows(schedule[core], by_columns, rows)
        if copy == "none":
            schedule[source].compute_inline()
            return schedule
        stride, lanes = self._stride_of_copy(anchor), target.lanes(anchor.source.dtype)
        if stride > 1 and self.problem.open_width is not None:
            source = copied_in_phases(schedule, source, core, stride, lanes)
        else:
            if stride > 1:
                schedule[source].transform_layout(with_last(source.ndim, source.ndim - 1, stride))
            vectorize_row(schedule[source], lanes, self._tail_of_copy(copy), stride)
        schedule[source].compute_at(stage, task if copy == "image" else block)
        return schedule

    def _decide_rows(self, schedule: Schedule, anchor: DefinedStages) -> tuple[bool, int, str]:
        """Whether windows are gone through column by column, the vectors below each other in a tile, and what is copied
        of the padded x: nothing, what a tile reads, or the image.

        A copy needs no masks, and has what each tap reads as neighbours.
        """
        orders = [False, True] if len(self.problem.window) > 1 else [False]
        by_columns = schedule.decide("by_columns", orders, self.by_columns, reorders_sum=True)
        made = replace(self, by_columns=by_columns)
        highest = self._most_rows if len(self.outputs) > 1 else 1
        rows = schedule.decide("rows", range(1, highest + 1), min(made.rows, highest))
        fits = math.prod(self._extents_copied) * anchor.source.dtype.storage_bytes <= self.problem.target.l1_bytes
        read_as_it_lies = by_columns and self.reads_every_second
        copied = self.copied or (self.problem.attrs.strides[-1] > 1 and not read_as_it_lies)
        usual = "none" if not copied else "image" if fits else "tile"
        return by_columns, rows, schedule.decide("copy", ["none", "tile", "image"], usual)

    @property
    def _most_rows(self) -> int:
        """The most vectors below each other: as many as half of the registers hold, or those of a tile by default."""
        most = max(MOST_ROWS, self.problem.target.vector_registers // 2)
        return most if self.is_open else min(most, self.outputs[-2])

    def _copy_beyond_rows(self, schedule: Schedule, anchor: DefinedStages, core: Tensor) -> Tensor:
        """What the sums read of x, with zeros beyond the end of its rows: the padded x has them, if it ends so."""
        if anchor.copies and self._rows_end_in_padding:
            return anchor.source
        source = schedule.cache_read(anchor.source, "local", [core], pad=0)
        for copy in anchor.copies:
            schedule[copy].compute_inline()
        return source

    @property
    def _rows_end_in_padding(self) -> bool:
        """Whether windows reach the padding behind the rows: their strides may end before it."""
        extent = const_int(self.problem.x.shape[-1])
        if self.is_open or extent is None:
            return False
        attrs = self.problem.attrs
        pads = attrs.padding[len(self.outputs) - 1], attrs.padding[-1]
        reach = (self.problem.window[-1] - 1) * attrs.dilation[-1]
        return last_read(self.outputs[-1], attrs.strides[-1], reach, extent, pads) - pads[0] >= extent

    def _stride_of_copy(self, anchor: DefinedStages) -> int:
        """By how many positions of a copy windows move, which stores those that far apart side by side: a vector of
        outputs then reads neighbours for each tap, not only where it is copied."""
        return self.problem.attrs.strides[-1] // anchor.steps[-1]

    def _tail_of_copy(self, copy: str) -> Tail:
        """Rows of a copy go on to the end of their last vector, unless the first cache then no longer has room for an
        image, its copy and its result."""
        if copy == "tile" or self.is_open:
            return "round_up"
        image = [const_int(extent) or 0 for extent in self.problem.x.shape[-len(self.outputs) :]]
        count = sum(map(math.prod, (image, self._extents_copied, self.outputs)))
        fits = count * self.problem.x.dtype.storage_bytes <= self.problem.target.l1_bytes
        return "round_up" if fits else "guard"

    @property
    def _extents_copied(self) -> list[int]:
        """The spatial extents of a copy of the padded x that all vectors of outputs read, in whole vectors."""
        attrs, window = self.problem.attrs, self.problem.window
        counts = (*self.outputs[:-1], math.ceil(self.outputs[-1] / self.lanes) * self.lanes)
        moves = zip(counts, attrs.strides, window, attrs.dilation, strict=True)
        *outer, row = ((o - 1) * s + (w - 1) * d + 1 for o, s, w, d in moves)
        return [*outer, math.ceil(row / self.problem.lanes) * self.problem.lanes]

    def _sum_rows(self, stage: StageView, by_columns: bool, height: int) -> None:
        (core,) = stage.op.outputs
        *outer, column = stage.loops[: core.ndim]
        channel, *taps = stage.loops[core.ndim :]
        t, lane = stage.split(column, factor=self.lanes, tail="round_up")
        rows = [outer.pop()] if len(taps) > 1 else []
        if self.is_open:
            rows = [stage.round_up(row, factor=height) for row in rows]
        if by_columns:
            taps = [taps[-1], *taps[:-1]]
        unrolled = taps[1:] if by_columns else self._unrolled(taps)
        _schedule_tile(stage, [*outer, t, channel, *taps], rows, lane, unrolled)

    # N, …, C: vectors of channels

    def schedule_channels(self, attrs: ConvAttrs, anchor: DefinedStages, outputs: Tensors, target: Target) -> Schedule:
        """Run rows of outputs in parallel; each computes tiles of vectors beside each other, and their epilogue. The
        weights of a tap are copied so that those of all channels follow each other."""
        kernel, window = attrs.kernel, spatial_axes(attrs.rank)

        def by_taps(*index: Expr) -> tuple[Expr, ...]:
            at = dict(zip(kernel.names, index, strict=True))
            return *(at[axis] for axis in window), at["O"]

        schedule, core, main = schedule_around_sums(anchor.result, anchor.sums, outputs, anchor.copies, target)
        weights = schedule.cache_read(anchor.weight, "local", [core], axes=by_taps)
        stage = schedule[main]
        n, *o, c = stage.loops[: main.ndim]
        lanes = target.lanes(main.dtype)
        vector, lane = stage.split(c, factor=lanes)
        widest = min(self.outputs[-1], max(MOST_ROWS, target.vector_registers // 2))
        columns = schedule.decide("columns", range(1, widest + 1), rows_for(self.outputs[-1]))
        block, row = stage.split(o[-1], factor=columns)
        stage.vectorize(lane)
        stage.reorder(n, *o[:-1], block, vector, row, lane)
        stage.parallel(stage.fuse(n, *o[:-1]) if len(o) > 1 else n)
        schedule[core].compute_at(stage, vector)
        *outer, row, c = schedule[core].loops[: core.ndim]
        *taps, channel = schedule[core].loops[core.ndim :]
        vector, lane = schedule[core].split(c, factor=lanes)
        _schedule_tile(schedule[core], [*outer, vector, *taps, channel], [row], lane, self._unrolled(taps))
        for copy in anchor.copies:
            schedule[copy].compute_inline()
        schedule_stage(schedule[weights], target)
        return schedule

    # Both

    def _unrolled(self, taps: Sequence[LoopView]) -> Sequence[LoopView]:
        """All loops of a window row by row, or the last one."""
        return taps if math.prod(self.problem.window) * MOST_ROWS <= MOST_UNROLLED else taps[-1:]


def _schedule_tile(
    stage: StageView, outer: Sequence[LoopView], rows: Sequence[LoopView], lane: LoopView, unrolled: Sequence[LoopView]
) -> None:
    """Keep a tile of vectors, some ``rows`` of them, in registers while the window is gone through, which is the last
    of the ``outer`` loops."""
    stage.reorder(*outer, *rows, lane)
    stage.vectorize(lane)
    for loop in (*unrolled, *rows):
        stage.unroll(loop)


def rows_for(extent: int) -> int:
    """How many outputs share a tile: preferably a divisor of their number."""
    divisor = largest_divisor(extent, MOST_ROWS)
    return divisor if divisor > 1 else min(extent, MOST_ROWS // 2)
