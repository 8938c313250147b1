"""Convolutions from N, C, … to the same whose vectors are of filters.

As for blocked channels, a vector is of filters, and a tile of sums, positions of a row times vectors, stays in
registers while the reduction runs: no vector crosses a row, elements of x are broadcast from where they are, and their
distance does not matter. The sums of some rows wait in the second cache. They are transposed in registers, square by
square, and written channel by channel: long pieces of few channels at a time are what memory is quick with.

Constant filters that are no whole vectors are filled up with zeros when the model is compiled, as the 258 filters of a
short-time Fourier transform, of 256 elements in one channel.

Of many channels and a wide window, what a tile reads of x may not stay in the first cache until the next one does. Then
it is fetched ahead, channel by channel. Where the window is one element, and positions follow each other as in x, they
are one row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ....base.dataclass import dataclass
from ....base.dtype import DType
from ....base.target import Target
from ....graph.types import TensorType, Type
from ....ir.constants import const_int
from ....ir.expr import Expr
from ....ir.makers import as_index
from ....ir.row_major import ravel_index
from ....lowering.nest.prefetches import CACHE_LINE
from ....lowering.schedule import LoopView, Schedule, StageView
from ....schedules.around import schedule_around, sums_over
from ....schedules.blocks import MANY_TASKS, evict_each_other, part_sizes
from ....schedules.channel_tile import ChannelTile, channel_tile, tile_cycles
from ....schedules.fetch_ahead import fetch_ahead
from ....schedules.machine import CORE
from ....schedules.register_transpose import turn_squares
from ....schedules.step_loops import step_loops
from ....schedules.vector_rows import vectorize_padded
from ....te.tensor import Tensors
from ...definition.cost import elements, moved
from ...definition.layout_rule import LayoutCandidate, Packed, ValueLayout
from ...definition.relations import tensor_argument
from ...definition.strategy import OpStrategy
from .attrs import ConvAttrs
from .definition import DefinedStages, definition, schedule_copies
from .layouts import kernel_layout
from .problem import ConvProblem
from .unblocked import TRANSPOSED_CYCLES, schedule_squares, split_places

CHANNELS_AHEAD = 4
"""How far ahead of their use rows of x are fetched, which processors do not foresee, as each is in another page."""
CYCLES_PER_ROW = 2.0
"""What a tile takes to begin with another row of x."""
EVICTED_CYCLES = 2.0
"""That a step waits for elements of x that others evicted from the first cache."""


def add_filter_vectors(strategy: OpStrategy, problem: ConvProblem) -> None:
    """Offer it for x and a result in N, C, …, and weights in panels of some vectors of filters."""
    panel, lanes = problem.attrs.kernel.factor("O"), problem.lanes
    if not problem.has_panels_of(panel) or panel % lanes or panel > _most_vectors(problem.target) * lanes:
        return
    made = _numbers(problem, [panel // lanes])
    if made is not None:
        cost = made.cost(problem.types)
        strategy.add_implementation(definition, made.schedule, "conv.filter_vectors", cost=cost)


def filter_vector_candidates(problem: ConvProblem, given: ValueLayout | None) -> Iterator[LayoutCandidate]:
    """The layout rule: x and the result are as they are, only the weights are in panels."""
    attrs, filters, lanes = problem.attrs, problem.filters, problem.lanes
    if not problem.has_plain_kernel or given is not None:
        return
    most = _most_vectors(problem.target)
    sides = [b for b in range(1, most + 1) if problem.constant_weight or filters % (b * lanes) == 0]
    made = _numbers(problem, sides) if sides else None
    if made is None:
        return
    weights = ValueLayout(problem.plain_kernel, kernel_layout(problem.rank, 1, made.width))
    if made.filters % made.width == 0:
        yield LayoutCandidate((None, weights), replace(attrs, kernel_layout=str(weights)), None)
    else:
        pack = FilledPanels(made.width)
        filled = replace(attrs, kernel_layout=str(weights), channels=made.filters)
        yield LayoutCandidate((None, Packed(pack, pack.type_of(problem.weight))), filled, None)


@dataclass(frozen=True, slots=True)
class FilledPanels:
    """Packs weights [K, C, window…] in panels of ``width`` filters, [panels, C, window…, width]; 0 beyond the last."""

    width: int

    def __call__(self, weight: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        missing = -len(weight) % self.width
        filled = np.concatenate([weight, np.zeros((missing, *weight.shape[1:]), weight.dtype)])
        return np.moveaxis(filled.reshape(-1, self.width, *weight.shape[1:]), 1, -1)

    def type_of(self, weight: TensorType) -> TensorType:
        """The type of a packed weight: [panels, C, window…, width], of the same dtype."""
        panels = math.ceil((const_int(weight.shape[0]) or 0) / self.width)
        return TensorType((as_index(panels), *weight.shape[1:], as_index(self.width)), weight.dtype)


def _most_vectors(target: Target) -> int:
    """How many vectors of filters a panel may have, so that there are registers for some positions of each."""
    return target.vector_registers // 4


def _numbers(problem: ConvProblem, sides: Sequence[int]) -> FilterVectors | None:
    """The numbers of a convolution from N, C, … to N, C, … whose extents are known but for N; None of others.

    A panel has one of these numbers of vectors, as takes the least time; the last one is filled up.
    """
    attrs, lanes, outputs = problem.attrs, problem.lanes, problem.outputs
    wide = problem.is_of_one_float and problem.dtype.storage_bits >= 32
    if not (problem.is_plain and attrs.groups == 1 and wide) or lanes == 1:
        return None
    channels, filters, registers = problem.group_channels, problem.filters, problem.target.vector_registers
    if outputs is None or not (all(outputs) and filters and channels):
        return None
    one_row = problem.is_pointwise and not problem.is_strided
    positions = (math.prod(outputs),) if one_row else outputs
    vectors = math.ceil(filters / lanes)

    def cycles(tile: ChannelTile) -> float:
        return math.ceil(vectors / tile.blocks) * tile_cycles(1, positions[-1], tile)

    tiles = (channel_tile(1, positions[-1], side, registers, side) for side in sides)
    tile = min(tiles, key=cycles)
    return FilterVectors(
        attrs, problem.window, outputs, positions, channels, filters, lanes, tile, problem.target, problem.dtype
    )


@dataclass(frozen=True, slots=True)
class FilterVectors:
    """The numbers of such a convolution. The sums' ``positions`` are the outputs, or all of these as one row."""

    attrs: ConvAttrs
    window: tuple[int, ...]
    outputs: tuple[int, ...]
    positions: tuple[int, ...]
    channels: int
    filters: int
    lanes: int
    tile: ChannelTile
    target: Target
    dtype: DType

    @property
    def width(self) -> int:
        """How many filters stand beside each other in the weights: those of a tile."""
        return self.tile.blocks * self.lanes

    @property
    def panels(self) -> int:
        """How many of them stand one after the other."""
        return math.ceil(self.filters / self.width)

    def cost(self, types: Sequence[Type]) -> float:
        """Cycles of the steps of all tiles, those to transpose, and to go through memory, twice through x."""
        x, weight, result = (tensor_argument(kind, "argument") for kind in types)
        rows = elements(result) // (self.filters * self.positions[-1]) * self.panels
        cycles = tile_cycles(1, self.positions[-1], self.tile, self.target.fma_per_cycle)
        tiles = math.ceil(self.positions[-1] / self.tile.columns)
        if evict_each_other(self.channels, math.prod(const_int(extent) or 1 for extent in x.shape[2:]), self.dtype):
            cycles += EVICTED_CYCLES * tiles
        if math.prod(self.window) > 1 and self.channels >= self.lanes:
            cycles += CYCLES_PER_ROW / self.window[-1] * tiles
        steps = self.channels * math.prod(self.window) * cycles
        copied = [x, x] if any(self.attrs.padding) else []
        return rows * steps + TRANSPOSED_CYCLES * elements(result) + moved([x, weight, result, *copied])

    @property
    def _from_afar(self) -> bool:
        """Whether rows of x, two lines of each, do not stay in the first cache from a tile to the next."""
        rows = self.channels * math.prod(self.window[:-1])
        return math.prod(self.window) > 1 and 2 * CACHE_LINE * rows >= self.target.l1_bytes

    def schedule(self, attrs: ConvAttrs, anchor: DefinedStages, outputs: Tensors, target: Target) -> Schedule:
        """Run chunks of rows by panels of filters in parallel; each computes all of its sums, then transposes its
        squares."""
        sums = anchor.sums
        schedule, main = schedule_around(anchor.result, outputs, [sums, *anchor.copies], target)
        columns, chunk_size = self._decide_sizes(schedule)
        core = sums_over(schedule, sums, main, self._in_vectors)
        squares = turn_squares(schedule, core, sums, 1 if self._is_row else 2, self.lanes)
        stage = schedule[main]
        n, k, *spatial = stage.loops[: main.ndim]
        panel, k = stage.split(k, factor=self.width)
        block, channel = stage.split(k, factor=self.lanes)
        outer, plane = spatial[: -len(self.plane)], spatial[-len(self.plane) :]
        chunk, square, lane = split_places(stage, plane, chunk_size, self.lanes)
        stage.reorder(n, *outer, chunk, panel, block, square, channel, lane)
        task = stage.fuse(n, *outer, chunk, panel)
        stage.parallel(task)
        schedule_squares(schedule, squares, stage, (square, channel, lane), self.lanes)
        schedule[core].compute_at(stage, task)
        read = schedule_copies(schedule, anchor, attrs, lambda copy: vectorize_padded(copy, False, target))
        panels_ahead, channels_ahead = self._decide_prefetches(schedule)
        reductions = self._schedule_sums(schedule[core], columns)
        if panels_ahead:
            fetch_ahead(schedule[core], anchor.weight, reductions[-1], panels_ahead)
        if channels_ahead:
            fetch_ahead(schedule[core], read, reductions[0], channels_ahead)
        return schedule

    def _in_vectors(self, n: Expr, k: Expr, *o: Expr) -> tuple[Expr, ...]:
        """The axes of the sums: filters in vectors, and positions, or all of these as one row."""
        positions = o if self.positions == self.outputs else [ravel_index(o, self.outputs)]
        return n, k // self.lanes, *positions, k % self.lanes

    @property
    def plane(self) -> tuple[int, ...]:
        """The last two axes of the result, the last one of rows by themselves, or all that are one row: their positions
        follow each other in memory."""
        if self.positions != self.outputs:
            return self.outputs
        return self.outputs[-1:] if self.outputs[-2:-1] == (1,) else self.outputs[-2:]

    @property
    def _is_row(self) -> bool:
        """Whether the plane is one row: its pieces need not end where rows do."""
        return self.positions != self.outputs or len(self.plane) == 1

    def _decide_sizes(self, schedule: Schedule) -> tuple[int, int]:
        """The positions of a register tile, whose vectors are those of a panel, and how many positions wait together:
        whole rows, or tiles of the only one, and squares; no more squares than the plane has."""
        side = schedule.decide("blocks", [self.tile.blocks], self.tile.blocks)
        most = max((self.target.vector_registers - 1) // side - 1, self.tile.columns)
        columns = schedule.decide("columns", range(1, min(self.positions[-1], most) + 1), self._columns)
        positions = math.prod(self.plane)
        whole = math.lcm(columns if self._is_row else math.prod(self.plane[1:]), self.lanes)
        default = math.ceil(positions / (self._chunks * whole))
        counts = part_sizes(math.ceil(positions / whole), default)
        all_positions = math.ceil(positions / self.lanes) * self.lanes
        sizes = {count: min(count * whole, all_positions) for count in (*counts, default)}
        return columns, schedule.decide("chunk", [sizes[count] for count in counts], sizes[default])

    @property
    def _columns(self) -> int:
        """The positions of a tile; of those of a row which is shared out in pieces too short for tiles and squares to
        end together, as many as divide a square."""
        columns, positions = self.tile.columns, math.prod(self.plane)
        squares = math.ceil(positions / (self._chunks * self.lanes))
        if not self._is_row or self._chunks == 1 or squares * self.lanes >= math.lcm(columns, self.lanes):
            return columns
        return max(n for n in range(1, columns + 1) if self.lanes % n == 0)

    @property
    def _chunks(self) -> int:
        """The number of parts in which positions are to wait: each in a quarter of the second cache if that can be."""
        most = self.target.l2_bytes // (4 * self.width * self.dtype.storage_bytes)
        return max(math.ceil(math.prod(self.plane) / max(most, 1)), math.ceil(MANY_TASKS / self.panels))

    def _decide_prefetches(self, schedule: Schedule) -> tuple[int, int]:
        """How many taps ahead of their use weights are fetched, and how many channels ahead what is read of x."""
        panel = self.channels * math.prod(self.window) * self.width * self.dtype.storage_bytes
        panels_ahead = CORE.far_steps if panel > self.target.l1_bytes // 4 else 0
        ahead = schedule.decide("ahead", [0, 1, 2, 4, 8, 16, 32], panels_ahead)
        return ahead, schedule.decide("channels_ahead", [0, 1, 2, 4, 8], CHANNELS_AHEAD if self._from_afar else 0)

    def _schedule_sums(self, stage: StageView, columns: int) -> Sequence[LoopView]:
        """Put positions outside, blocks inside: a broadcast factor serves all blocks, and needs a register no
        longer. Gives the loops of the reduction."""
        (core,) = stage.op.outputs
        n, block, *outer, position, lane = stage.loops[: core.ndim]
        reductions = step_loops(stage)
        if (const_int(core.shape[1]) or 1) % self.tile.blocks:
            block = stage.round_up(block, factor=self.tile.blocks)
        across, column = stage.split(position, factor=columns)
        stage.reorder(n, *outer, across, *reductions, column, block, lane)
        stage.vectorize(lane)
        stage.unroll(column)
        stage.unroll(block)
        return reductions
